"""Measures what the documents claim of bad links (docs/benchmarks.md, "Bad links"); needs root.

    python tests/bench/link/run.py [NAME...] [--keep FILE] [--json FILE] [--work DIR]
                                   [--corpus DIR] [--quick] [--link WORD] [--times N]
                                   [-- OPTION...]

The links are made by tests/tools/badlink.py, congestion control is cubic. Every speed is a ratio
to something else in the same run; `--keep` takes what the others did from an earlier one. Options
after `--` are given to `cas sync` where a benchmark has none of its own. The exit code is 1 when a
claim does not hold.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

ROOT = Path(__file__).resolve().parents[3]

if TYPE_CHECKING:
    from tests.bench.link.setting import LinkSetting
    from tests.bench.verdict import Verdict

BENCHMARKS = {
    "goodput": "data that does not compress, beside raw streams",
    "tools": "beside scp, rsync and sftp",
    "faults": "blackouts, forgotten and reset connections, a dead lane, a slow link",
    "unattended": "the corpus with a fault every 20 s",
    "rekeys": "3 GiB through one lane with many key exchanges, and 24 lanes",
    "clean": "links without loss, beside scp",
}


class Benchmark(Protocol):
    """A module of this directory that is named above."""

    def run(self, setting: LinkSetting) -> Iterable[Verdict]:
        """Measure, each when it is asked for; raises CommandFailed."""


def main() -> int:
    """See above."""
    from tests.link.site import missing

    options = _options()
    if reason := missing():
        print(f"bench-link: skipped: {reason}")
        return 0
    results: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="cas-bench-link.", dir=options.work) as work:
        os.chmod(work, 0o755)
        for name in options.names or list(BENCHMARKS):
            results += _run(name, Path(work, name), options)
            if options.json is not None:
                options.json.write_text(json.dumps(results, indent=1) + "\n")
    failed = [result for result in results if not result["ok"]]
    print(f"{len(results)} claims, {len(failed)} not met")
    return 1 if failed else 0


def _run(name: str, work: Path, options: argparse.Namespace) -> list[dict[str, object]]:
    from tests.bench.link.setting import Keep, LinkSetting
    from tests.bench.process import CommandFailed

    benchmark: Benchmark = importlib.import_module(f"tests.bench.link.{name}")
    work.mkdir()
    setting = LinkSetting(
        work,
        options.corpus,
        Keep(options.keep),
        tuple(options.more),
        options.quick,
        options.link,
        options.times,
    )
    started = time.monotonic()
    results: list[dict[str, object]] = []
    try:
        for verdict in benchmark.run(setting):
            print(f"{name}: {verdict.line()}", flush=True)
            results.append({"benchmark": name, **verdict.as_json()})
    except CommandFailed as error:
        print(f"{name}: FAILED: {error}", flush=True)
        results.append({"benchmark": name, "ok": False, "failed": str(error)})
    seconds = round(time.monotonic() - started)
    print(f"{name}: took {seconds} s, load average now {os.getloadavg()[0]:.1f}", flush=True)
    return results


def _options() -> argparse.Namespace:
    temporary = Path(tempfile.gettempdir())
    summary = "\n".join(f"  {name:12} {what}" for name, what in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        description="Measure what the documents claim of bad links.",
        epilog=f"benchmarks:\n{summary}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which, all by default")
    parser.add_argument("--quick", action="store_true", help="short runs, to see that all works")
    parser.add_argument(
        "--link", metavar="WORD", default="", help="goodput: only on links that are named so"
    )
    parser.add_argument(
        "--times",
        type=int,
        metavar="N",
        default=1,
        help="goodput: so many of cas, the worst counts",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="what others did, kept there")
    parser.add_argument("--work", type=Path, metavar="DIR", default=temporary)
    parser.add_argument(
        "--corpus", type=Path, metavar="DIR", default=temporary / "cas-bench-corpus",
        help="the small corpus, made there if it is not [default: %(default)s]",
    )  # fmt: skip
    arguments, more = _split(sys.argv[1:])
    options = parser.parse_args(arguments)
    options.more = more
    if unknown := set(options.names) - set(BENCHMARKS):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}")
    return options


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """What stands before `--`, and what after it."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]


if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # instead of this directory, whose names are nobody's top level
    sys.exit(main())
