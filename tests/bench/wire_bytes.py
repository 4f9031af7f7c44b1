"""The bytes that a corpus of ten tiers costs, tier by tier in order: on the wire for cas and for
`rsync -az` (each tier into a directory of its own), growth of the repository for restic, borg and
casync. What cas sends counts everything that crosses, in both directions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.bench.corpus import tiers
from tests.bench.peers import Borg, Casync, Restic, Rsync, require, version
from tests.bench.process import CommandFailed
from tests.bench.product import Cas, summary
from tests.bench.verdict import Setting, Verdict

LEVEL = 9  # as the strongest peer has it
LIMITS = {LEVEL: 0.42, 19: 0.36}  # of the best peer's bytes


def run(setting: Setting) -> list[Verdict]:
    """See `Benchmark`."""
    require("borg", "restic", "casync", "rsync")
    corpus = tiers(setting.corpus)
    peers = {
        "rsync -az": _rsync(setting.work, corpus),
        "restic": _grown(Restic(setting.work / "restic"), corpus),
        "borg zstd,9": _grown(Borg(setting.work / "borg", "zstd,9"), corpus),
        "casync": _grown(Casync(setting.work / "casync"), corpus),
    }
    levels = (LEVEL,) if setting.quick else (LEVEL, 3, 19)
    ours = {level: _wire(setting.work / f"cas-{level}", corpus, level) for level in levels}
    best = min(peers, key=lambda peer: sum(peers[peer].values()))
    limit_total = sum(peers[best].values())
    versions = [version("rsync"), version("borg"), version("restic", "version"), version("casync")]
    facts: dict[str, object] = {"peers": peers, "cas": ours, "versions": versions}
    return [
        Verdict(
            f"wire bytes at level {level} / {best}, the best peer",
            sum(tiers_.values()) / limit_total,
            LIMITS.get(level),
            detail=_totals({"cas": tiers_, **peers}),
            facts=facts if level == LEVEL else {},
        )
        for level, tiers_ in ours.items()
    ]


def _wire(home: Path, corpus: Mapping[str, Path], level: int) -> dict[str, int]:
    cas = Cas(home, corpus, level)
    cas.forget()
    said = summary(cas.sync())
    if said["exit"] or not all(tier["complete"] for tier in said["tiers"]):
        raise CommandFailed("the sync was not complete")
    return {tier["name"]: tier["wire_in"] + tier["wire_out"] for tier in said["tiers"]}


def _grown(peer: Restic | Borg | Casync, corpus: Mapping[str, Path]) -> dict[str, int]:
    """How much each tier made the repository grow; the empty one counts to the first."""
    peer.begin()
    sizes, before = {}, 0
    for name, path in corpus.items():
        peer.create(name, path)
        size = peer.size()
        sizes[name], before = size - before, size
    return sizes


def _rsync(work: Path, corpus: Mapping[str, Path]) -> dict[str, int]:
    peer = Rsync(work / "rsync")
    peer.begin()
    return {name: peer.transferred(name, path) for name, path in corpus.items()}


def _totals(all_sizes: Mapping[str, Mapping[str, int]]) -> str:
    return ", ".join(f"{who} {sum(s.values()) / 1e6:.1f} MB" for who, s in all_sizes.items())
