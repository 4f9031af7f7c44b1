"""How much a scan costs beyond what it must: `cas scan` of plain data, nothing cached or stored,
beside a bare loop of FastCDC and SHA-256 over the same files, both from the page cache."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.bench.data import plain_data, source_tree, tree_size
from tests.bench.process import Usage, in_turns, measured
from tests.bench.product import Cas
from tests.bench.verdict import MIB, Setting, Verdict

LIMIT = 1.3
BARE = Path(__file__).with_name("bare_loop.py")


def run(setting: Setting) -> list[Verdict]:
    """See `Benchmark`."""
    plain, small = setting.work / "plain", setting.work / "small"
    plain_data(plain, (96 if setting.quick else 1024) * MIB, seed=1)
    source_tree(small, 2_000 if setting.quick else 30_000, seed=2)
    return [
        _compare(setting, "plain data", plain, LIMIT),
        _compare(setting, "small files", small, None),
    ]


def _compare(setting: Setting, what: str, data: Path, limit: float | None) -> Verdict:
    cas = Cas(setting.work / "cas", {"data": data})

    def scan() -> Usage:
        cas.forget()
        return cas.scan()

    def bare() -> Usage:
        root = str(BARE.parents[2])
        return measured([sys.executable, BARE, data], env={"PYTHONPATH": root})

    best = in_turns(setting.rounds, {"bare": bare, "cas": scan})
    count, size = tree_size(data)
    facts = {
        "files": count,
        "bytes": size,
        **{f"{name}_{kind}": getattr(usage, kind) for name, usage in best.items()
           for kind in ("wall", "cpu")},
    }  # fmt: skip
    return Verdict(
        f"scan of {what} / bare loop, wall",
        best["cas"].wall / best["bare"].wall,
        limit,
        detail=f"{count} files, {size / 1e6:.0f} MB: {best['cas'].wall:.2f} s beside "
        f"{best['bare'].wall:.2f} s; CPU {best['cas'].cpu:.2f} s beside {best['bare'].cpu:.2f} s",
        facts=facts,
    )
