"""The most memory that the agent and the client take, for one large file and for many small ones.

Each is the peak of the process itself (VmHWM), of a first sync into an empty store, of the second
sync, and of the restore. Once more with zstd's level 19, whose tables are the largest that a plan
is likely to ask for.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.bench.data import large_file, source_tree
from tests.bench.process import Usage
from tests.bench.product import Cas
from tests.bench.verdict import MIB, Setting, Verdict

AGENT_LIMIT = 200.0  # MiB
CLIENT_LIMIT = 300.0


def run(setting: Setting) -> list[Verdict]:
    """See `Benchmark`."""
    size = (128 if setting.quick else 4096) * MIB
    hard = (48 if setting.quick else 128) * MIB
    count = 5_000 if setting.quick else 200_000
    large, many = setting.work / "large", setting.work / "many"
    large.mkdir()
    large_file(large / "file", hard, seed=4)
    verdicts = _peak_at_19(setting, f"a file of {hard // MIB} MiB", large)
    large_file(large / "file", size, seed=4)
    verdicts += _peaks(setting, f"a file of {size // MIB} MiB", large)
    shutil.rmtree(large)
    shutil.rmtree(setting.work / "large-restored")
    source_tree(many, count, seed=5, most=16 * 1024)
    return verdicts + _peaks(setting, f"{count} files", many)


def _peaks(setting: Setting, what: str, data: Path) -> list[Verdict]:
    cas = Cas(setting.work / "cas", {"data": data})
    cas.forget()
    verdicts = []
    for name in ("first sync", "second sync"):
        client = cas.sync()
        verdicts.append(_verdict(f"agent, {name} of {what}", cas.agent(), AGENT_LIMIT))
        verdicts.append(_verdict(f"client, {name} of {what}", client, CLIENT_LIMIT))
    restored = cas.restore("data", setting.work / f"{data.name}-restored")
    return [*verdicts, _verdict(f"restore of {what}", restored, CLIENT_LIMIT)]


def _peak_at_19(setting: Setting, what: str, data: Path) -> list[Verdict]:
    cas = Cas(setting.work / "cas", {"data": data}, level=19)
    cas.forget()
    client = cas.sync()
    return [
        _verdict(f"agent, first sync of {what} at level 19", cas.agent(), AGENT_LIMIT),
        _verdict(f"client, first sync of {what} at level 19", client, CLIENT_LIMIT),
    ]


def _verdict(who: str, usage: Usage, limit: float) -> Verdict:
    facts: dict[str, object] = {"wall": usage.wall, "cpu": usage.cpu}
    return Verdict(f"peak memory of the {who}", usage.peak / MIB, limit, "MiB", facts=facts)
