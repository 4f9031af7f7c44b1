"""The first sync of local data (scan, transfer, store, fsync) beside `borg create` and `restic
backup`, and writing it out again beside `borg extract` and `restic restore`. For plain data, and
for a tree of small source files."""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.bench.data import plain_data, source_tree, tree_size
from tests.bench.peers import Borg, Restic, require, version
from tests.bench.process import CommandFailed, Usage, in_turns
from tests.bench.product import Cas, stored_size, summary
from tests.bench.verdict import MIB, Setting, Verdict

CREATE_LIMIT = 1.0
RESTORE_LIMIT = 1.5


def run(setting: Setting) -> list[Verdict]:
    """See `Benchmark`."""
    require("borg", "restic")
    plain, tree = setting.work / "plain", setting.work / "tree"
    plain_data(plain, (96 if setting.quick else 1024) * MIB, seed=1)
    source_tree(tree, 2_000 if setting.quick else 30_000, seed=2)
    return _compare(setting, "plain data", plain) + _compare(setting, "source tree", tree)


class _Contest:
    """The contestants over one directory of data."""

    def __init__(self, work: Path, data: Path) -> None:
        self.data = data
        self.cas = Cas(work / "cas", {"data": data})
        self.borg = Borg(work / "borg")
        self.borg_encrypted = Borg(work / "borg-repokey", encryption="repokey")
        self.restic = Restic(work / "restic")
        self._restored = work / "restored"

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
        }

    def _sync(self) -> Usage:
        self.cas.forget()
        return self.cas.sync()

    def _create(self, peer: Borg | Restic) -> Usage:
        peer.begin()
        os.sync()
        return peer.create("data", self.data)

    def _extract(self, extract: Callable[[Path], Usage]) -> Usage:
        shutil.rmtree(self._restored, ignore_errors=True)
        self._restored.mkdir()
        os.sync()
        usage = extract(self._restored)
        check_same(self.data, self._restored)
        shutil.rmtree(self._restored)
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


def _compare(setting: Setting, what: str, data: Path) -> list[Verdict]:
    contest = _Contest(setting.work, data)
    created = in_turns(setting.rounds, contest.creators())
    sizes = {
        "cas": stored_size(contest.cas.store),
        "borg": contest.borg.size(),
        "restic": contest.restic.size(),
    }
    count, size = tree_size(data)
    about = {"data": what, "files": count, "bytes": size, "stored": sizes, **_versions()}
    if summary(created["cas"])["exit"] != 0:
        raise CommandFailed("the sync was not complete")
    extracted = in_turns(setting.rounds, contest.extractors())
    return [
        *(_created(what, created, name, about) for name in ("borg", "restic", "borg repokey")),
        *(_restored(what, extracted, name, about) for name in ("borg", "restic")),
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


def _restored(
    what: str, used: Mapping[str, Usage], peer: str, about: Mapping[str, object]
) -> Verdict:
    return Verdict(
        f"{peer} / restore of {what}, wall",
        used[peer].wall / used["cas"].wall,
        RESTORE_LIMIT,
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
