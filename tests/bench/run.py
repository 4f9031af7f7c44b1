"""Measures what the documents claim (docs/benchmarks.md).

    python tests/bench/run.py [NAME...] [--quick] [--json FILE] [--work DIR] [--corpus DIR]

Every speed is a ratio to something else in the same run. The exit code is 1 when a claim does not
hold. `--quick` takes small sizes, to see that everything works: its numbers mean little.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

BENCHMARKS = {
    "scan": "scan beside a bare loop of FastCDC and SHA-256",
    "first_sync": "first sync and restore beside borg and restic",
    "second_sync": "a sync with nothing changed",
    "memory": "peak memory of agent and client",
    "wire_bytes": "bytes for a corpus beside rsync, restic, borg and casync",
    "streams": "side information and speed on streams of real encoders",
    "history": "what history within a frame saves",
    "report": "the page of a store of a million chunks",
    "redundancy": "counting a million chunks, and what tiers cost beside what was foretold",
}


def main() -> int:
    """See above."""
    options = _options()
    names = options.names or list(BENCHMARKS)
    results: list[dict[str, object]] = []
    # Removed as a whole at the end: files that go away slow down who makes new ones meanwhile.
    with tempfile.TemporaryDirectory(prefix="cas-bench.", dir=options.work) as work:
        for name in names:
            results += _run(name, Path(work, name), options)
            if options.json is not None:
                report = {"machine": _machine(options), "results": results}
                options.json.write_text(json.dumps(report, indent=1) + "\n")
    failed = [result for result in results if not result["ok"]]
    print(f"{len(results)} claims, {len(failed)} not met")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    summary = "\n".join(f"  {name:12} {what}" for name, what in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        description="Measure what the documents claim.",
        epilog=f"benchmarks:\n{summary}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which, all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes, a few minutes in all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument(
        "--work",
        type=Path,
        metavar="DIR",
        default=Path(tempfile.gettempdir()),
        help="a temporary directory is made in it [default: %(default)s]; up to 40 GB",
    )
    parser.add_argument(
        "--corpus",
        type=Path,
        metavar="DIR",
        default=Path(tempfile.gettempdir(), "cas-bench-corpus"),
        help="the corpus, made there if it is not [default: %(default)s]",
    )
    parser.add_argument(
        "--zoo",
        type=Path,
        metavar="DIR",
        default=Path(tempfile.gettempdir(), "cas-bench-zoo"),
        help="streams made by `python -m tests.zoo.make --size large DIR` [default: %(default)s]",
    )
    options = parser.parse_args()
    if unknown := set(options.names) - set(BENCHMARKS):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}")
    return options


def _run(name: str, work: Path, options: argparse.Namespace) -> list[dict[str, object]]:
    from tests.bench.process import CommandFailed
    from tests.bench.verdict import Benchmark, Setting, Skipped

    benchmark: Benchmark = importlib.import_module(f"tests.bench.{name}")
    work.mkdir()
    started = time.monotonic()
    try:
        verdicts = benchmark.run(Setting(work, options.corpus, options.zoo, options.quick))
    except Skipped as reason:
        print(f"{name}: skipped: {reason}", flush=True)
        return []
    except CommandFailed as error:
        print(f"{name}: FAILED: {error}", flush=True)
        return [{"benchmark": name, "ok": False, "failed": str(error)}]
    for verdict in verdicts:
        print(f"{name}: {verdict.line()}", flush=True)
    seconds = round(time.monotonic() - started)
    print(f"{name}: took {seconds} s, load average now {os.getloadavg()[0]:.1f}", flush=True)
    return [{"benchmark": name, **verdict.as_json()} for verdict in verdicts]


def _machine(options: argparse.Namespace) -> dict[str, object]:
    return {
        "cores": os.cpu_count(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "load": os.getloadavg(),
        "quick": options.quick,
    }


if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # instead of this directory, whose names are nobody's top level
    sys.exit(main())
