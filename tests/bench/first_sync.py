"""The first sync of local data (scan, transfer, store, fsync) beside `borg create` and `restic
backup`, and writing it out again beside `borg extract` and `restic restore`. For plain data, and
for a tree of small source files. cas compresses as fast as it does on its own accord for data of
this machine; so that nobody wins by storing more, the sizes are compared too.

None of them flushes what it wrote out. For information, `cas restore --sync` is also measured
beside the peers with a `sync` after them."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.bench.data import plain_data, source_tree, tree_size
from tests.bench.peers import Borg, Restic, require, version
from tests.bench.process import CommandFailed, Usage, in_turns, measured
from tests.bench.product import Cas, stored_size, summary
from tests.bench.verdict import MIB, Setting, Verdict

CREATE_LIMIT = 1.0
RESTORE_LIMIT = 1.5


def run(setting: Setting) -> list[Verdict]:
    """See `Benchmark`."""
    require("borg", "restic")
    plain, tree = setting.work / "plain", setting.work / "tree"
    # The tree first: the plain data is written out many times, some 20 GB, and a disk that has
    # just taken that in is slower for whoever flushes while it works, which here is cas alone.
    source_tree(tree, 2_000 if setting.quick else 30_000, seed=2)
    verdicts = _compare(setting.work / "1", "source tree", tree, setting.rounds)
    plain_data(plain, (96 if setting.quick else 1024) * MIB, seed=1)
    return verdicts + _compare(setting.work / "2", "plain data", plain, setting.rounds)


class _Contest:
    """The contestants over one directory of data."""

    def __init__(self, work: Path, data: Path) -> None:
        self.data = data
        self.cas = Cas(work / "cas", {"data": data})
        self.borg = Borg(work / "borg")
        self.borg_encrypted = Borg(work / "borg-repokey", encryption="repokey")
        self.restic = Restic(work / "restic")
        self._restored = work / "restored"
        self._count = 0

    def creators(self) -> Mapping[str, Callable[[], Usage]]:
        """What takes the data in, each time into nothing."""
        return {
            "cas": self._sync,
            "borg": lambda: self._create(self.borg),
            "restic": lambda: self._create(self.restic),
            "borg repokey": lambda: self._create(self.borg_encrypted),
        }

    def extractors(self) -> Mapping[str, Callable[[], Usage]]:
        """What writes out what the last creators took in, and is checked against it."""
        return {
            "cas": lambda: self._extract(lambda to: self.cas.restore("data", to)),
            "borg": lambda: self._extract(lambda to: self.borg.extract("data", to)),
            "restic": lambda: self._extract(lambda to: self.restic.extract("data", to)),
            "cas, sync": lambda: self._extract(lambda to: self.cas.restore("data", to, "--sync")),
            "borg, sync": lambda: self._extract(lambda to: self._synced(self.borg, to)),
            "restic, sync": lambda: self._extract(lambda to: self._synced(self.restic, to)),
        }

    def _sync(self) -> Usage:
        self.cas.forget()
        os.sync()  # as for the others: what beginning anew removed is not theirs to wait for
        return self.cas.sync()

    def _create(self, peer: Borg | Restic) -> Usage:
        peer.begin()
        os.sync()
        return peer.create("data", self.data)

    def _synced(self, peer: Borg | Restic, to: Path) -> Usage:
        wrote, flushed = peer.extract("data", to), measured(["sync"])
        return Usage(wrote.wall + flushed.wall, wrote.cpu + flushed.cpu, wrote.peak)

    def _extract(self, extract: Callable[[Path], Usage]) -> Usage:
        # Never removed before the end: ext4 without a journal looks for long at every inode that
        # was freed a moment ago, and whoever comes next would pay.
        self._count += 1
        to = self._restored / str(self._count)
        to.mkdir(parents=True)
        os.sync()
        usage = extract(to)
        check_same(self.data, to)
        return usage


def check_same(data: Path, restored: Path) -> None:
    """Raises CommandFailed unless the files of `data` are below `restored`, at their whole path or
    from its last part on, with the same bytes."""
    places = (restored / data.relative_to("/"), restored / data.name, restored)
    found = next(place for place in places if place.is_dir() and _names(place) == _names(data))
    names = _names(data)
    _, different, missing = filecmp.cmpfiles(data, found, names, shallow=False)
    if different or missing:
        raise CommandFailed(f"not restored as it was: {(different + missing)[:3]}")


def _names(directory: Path) -> list[str]:
    return sorted(
        os.path.relpath(os.path.join(folder, name), directory)
        for folder, _, names in os.walk(directory)
        for name in names
    )


def _compare(work: Path, what: str, data: Path, rounds: int) -> list[Verdict]:
    contest = _Contest(work, data)
    created = in_turns(rounds, contest.creators())
    sizes = {
        "cas": stored_size(contest.cas.store),
        "borg": contest.borg.size(),
        "restic": contest.restic.size(),
    }
    count, size = tree_size(data)
    about = {"data": what, "files": count, "bytes": size, "stored": sizes, **_versions()}
    if summary(created["cas"])["exit"] != 0:
        raise CommandFailed("the sync was not complete")
    extracted = in_turns(rounds, contest.extractors())
    return [
        *(_created(what, created, name, about) for name in ("borg", "restic", "borg repokey")),
        *(_stored(what, sizes, name) for name in ("borg", "restic")),
        *(_restored(what, extracted, name, about) for name in extracted if "cas" not in name),
    ]


def _created(
    what: str, used: Mapping[str, Usage], peer: str, about: Mapping[str, object]
) -> Verdict:
    return Verdict(
        f"first sync of {what} / {peer}, wall",
        used["cas"].wall / used[peer].wall,
        None if peer == "borg repokey" else CREATE_LIMIT,
        detail=_beside(used, peer),
        facts={**about, **_times(used, peer)},
    )


def _stored(what: str, sizes: Mapping[str, int], peer: str) -> Verdict:
    beside = f"{sizes['cas'] / 1e6:.1f} MB beside {sizes[peer] / 1e6:.1f} MB"
    ratio = sizes["cas"] / sizes[peer]
    return Verdict(f"stored of {what} / {peer}", ratio, CREATE_LIMIT, detail=beside)


def _restored(
    what: str, used: Mapping[str, Usage], peer: str, about: Mapping[str, object]
) -> Verdict:
    flushed = "sync" in peer
    used = {**used, "cas": used["cas, sync"]} if flushed else used
    return Verdict(
        f"{peer} / restore of {what}, wall",
        used[peer].wall / used["cas"].wall,
        None if flushed else RESTORE_LIMIT,
        at_least=True,
        detail=_beside(used, peer),
        facts={**about, **_times(used, peer)},
    )


def _beside(used: Mapping[str, Usage], peer: str) -> str:
    ours, theirs = used["cas"], used[peer]
    return (
        f"{ours.wall:.2f} s beside {theirs.wall:.2f} s; "
        f"CPU {ours.cpu:.2f} s beside {theirs.cpu:.2f} s"
    )


def _times(used: Mapping[str, Usage], peer: str) -> dict[str, object]:
    ours, theirs = used["cas"], used[peer]
    return {
        "cas_wall": ours.wall,
        "cas_cpu": ours.cpu,
        "peer": peer,
        "peer_wall": theirs.wall,
        "peer_cpu": theirs.cpu,
    }


def _versions() -> dict[str, object]:
    return {"versions": [version("borg"), version("restic", "version")]}
