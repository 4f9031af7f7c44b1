"""`cas redundancy` on a million chunks, and what `cas plan` foretells beside what then crosses.

The tiers of the corpus are only scanned at first: their snapshots, pages and recipes are taken from
another store. Then they are fetched one by one, and before each it is asked what it will cost: once
by a store that holds nothing (`before any`), and by the one that holds the tiers before it.

    python -m tests.bench.redundancy STORE    what learning makes of each label in a store
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cas.redundancy.count import count
from cas.redundancy.labels import Labeller
from cas.redundancy.learn import Sample, learn
from cas.redundancy.priors import prior
from cas.store.layout import Layout
from cas.store.store import Store
from cli import wiring
from indexes.index import LmdbIndex
from tests.bench.corpus import tiers
from tests.bench.process import Usage, measured
from tests.bench.product import CAS, Cas, summary
from tests.bench.verdict import MIB, Setting, Verdict
from tests.redundancy.made import Chunk, MadeStore, copy_scans

LEVEL = 9
CHUNKS = 1_000_000
TIERS = 9
LEAST = 1_000_000  # wire bytes; of less a few files decide, and it is not judged by itself


@dataclass(frozen=True, slots=True)
class Foretold:
    """A tier: what was measured on the wire, and what had been foretold."""

    wire: int
    before_any: int
    before: int

    def line(self, name: str) -> str:
        """For people."""
        both = (self.before_any, self.before)
        told = ", ".join(f"{size / 1e6:.2f} ({self.error(size):+.1%})" for size in both)
        return f"{name} {self.wire / 1e6:.2f} MB, foretold {told}"

    def error(self, foretold: int) -> float:
        """As a share of what was measured."""
        return foretold / max(1, self.wire) - 1


def run(setting: Setting) -> list[Verdict]:
    """See `Benchmark`."""
    return [*_speed(setting), *_foretelling(setting)]


def _speed(setting: Setting) -> list[Verdict]:
    root = setting.work / "million"
    chunks = CHUNKS // 20 if setting.quick else CHUNKS
    places = fill(root, chunks)
    usage = measured([*CAS, "redundancy", "--store", root, "--json", "--top", "10"])
    found = [json.loads(line) for line in usage.output.splitlines()]
    assert places == sum(event["chunks"] for event in found if event["event"] == "tier")
    seconds = usage.cpu * CHUNKS / places
    return [
        Verdict(f"cas redundancy, {TIERS} tiers, for a million chunks", seconds, 10.0, "CPU s",
                detail=f"{places} places of {chunks} chunks: {usage.cpu:.1f} CPU s"),
        Verdict("peak memory of that", usage.peak / MIB, 300.0, "MiB"),
    ]  # fmt: skip


def fill(root: Path, chunks: int) -> int:
    """Make a store of TIERS tiers of files of one and of several chunks, a third of them of tiers
    before; how many chunks its files have, duplicates counted."""
    root.mkdir()
    made = MadeStore(root, LmdbIndex(root / "index", create=True))
    rng = random.Random(1)
    each, places = chunks // TIERS, 0
    for tier in range(TIERS):
        first = tier * each
        numbers = [*range(first, first + each), *rng.sample(range(first), min(each // 2, first))]
        files: dict[str, list[Chunk]] = {}
        at = 0
        while at < len(numbers):
            size = 1 if len(files) % 3 else rng.randrange(2, 12)
            name = f"t{tier}/d{len(files) // 200:04}/f{len(files) % 200:03}.{'cso'[len(files) % 3]}"
            files[name] = [(number, 1000 + number % 60_000) for number in numbers[at : at + size]]
            at += size
        places += len(numbers)
        made.tier(f"tier{tier}", files)
    made.writer.close()
    made.index.close()
    return places


def _foretelling(setting: Setting) -> list[Verdict]:
    corpus = tiers(setting.corpus)
    whole = Cas(setting.work / "whole", corpus, LEVEL)
    whole.forget()
    whole.sync()
    scanned = Cas(setting.work / "scanned", corpus, LEVEL)
    scanned.forget()
    shutil.copytree(whole.home / "cache", scanned.home / "cache")
    _only_scans(whole.store, scanned.store)
    found = _fetch_and_compare(scanned, corpus)
    wire = sum(tier.wire for tier in found.values())
    judged = [tier for tier in found.values() if tier.wire >= LEAST]
    facts: dict[str, object] = {
        name: [tier.wire, tier.before_any, tier.before] for name, tier in found.items()
    }
    for name, foretold in found.items():
        print(f"redundancy: {foretold.line(name)}", flush=True)
    together = {
        "before any": sum(tier.before_any for tier in found.values()),
        "before each": sum(tier.before for tier in found.values()),
    }
    worst = {
        "before any": max(abs(tier.error(tier.before_any)) for tier in judged),
        "before each": max(abs(tier.error(tier.before)) for tier in judged),
    }
    return [
        *(Verdict(f"all tiers, foretold {when} came", abs(size / wire - 1), 0.15, "",
                  detail=f"{size / 1e6:.1f} MB, and then it was {wire / 1e6:.1f}",
                  facts=facts if when == "before any" else {})
          for when, size in together.items()),
        *(Verdict(f"the worst tier of 1 MB and more, foretold {when} came", error, 0.15, "")
          for when, error in worst.items()),
    ]  # fmt: skip


def _only_scans(source: Path, target: Path) -> None:
    layout = Layout(target)
    layout.root.mkdir(parents=True)
    LmdbIndex(layout.index, create=True).close()
    layout.create()
    index = LmdbIndex(layout.index)
    with wiring.reading(source) as store:
        copy_scans(store, layout, index)
    index.close()


def _fetch_and_compare(cas: Cas, corpus: Mapping[str, Path]) -> dict[str, Foretold]:
    before_any = _plan(cas)
    found = {}
    for name in corpus:
        before = _plan(cas, name)[name]
        said = summary(_run(cas, "sync", "--json", name))
        found[name] = Foretold(said["wire_in"] + said["wire_out"], before_any[name], before)
    return found


def _plan(cas: Cas, *names: str) -> dict[str, int]:
    lines = _run(cas, "plan", "--json", *names).output.splitlines()
    events = [json.loads(line) for line in lines]
    return {event["tier"]: event["wire"] for event in events if event["event"] == "tier"}


def _run(cas: Cas, *arguments: str) -> Usage:
    environment = {"XDG_CACHE_HOME": str(cas.home / "cache")}
    return measured([*CAS, *arguments], env=environment, cwd=cas.home)


def print_labels(store: Store) -> None:
    """What learning makes of each label, and what it began with."""
    snapshots = [store.latest(tier)[1] for tier in store.tiers()]
    labeller, sample = Labeller(store), Sample(store)
    counted = count(store, snapshots, labels=labeller, seen=sample.add)
    priors = [prior(label, LEVEL) for label in labeller.labels]
    learnt = learn(priors, [MIB] * len(priors), sample.segments())
    sizes = [0] * len(priors)
    for (_, label), group in counted.groups.items():
        sizes[label] += group.bytes
    for number in sorted(range(len(sizes)), key=lambda number: -sizes[number]):
        it = labeller.labels[number]
        which = f"{it.sort.value} {it.width.value} {it.ratio:.2f} {it.kind.decode()}"
        print(f"{sizes[number] / 1e6:9.2f} MB {learnt[number]:.3f} {priors[number]:.3f} {which}")


if __name__ == "__main__":
    with wiring.reading(Path(sys.argv[1])) as opened:
        print_labels(opened)
