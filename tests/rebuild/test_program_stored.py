"""Archives come out of a real store by every way that plain files do."""

from __future__ import annotations

import io
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cas.bundle import write_bundle
from cas.codec import registry
from cas.entry import Entry
from cas.errors import DamageError, NotHeldError
from cas.rebuild import chunks, write
from cas.rebuild.run import content_recipes, copy_content
from cas.restore.report import Existing, RestoreOptions
from cas.restore.tree import restore_entries
from tests.rebuild.archives import TOYS, Made, random_archive
from tests.restore.trees import directory, file
from tests.store.build import BuiltStore


@pytest.fixture(autouse=True)
def _toys(monkeypatch: pytest.MonkeyPatch) -> None:
    for codec, place in TOYS.items():
        monkeypatch.setitem(registry.JOINERS, codec, place)


@pytest.fixture(params=["small", "large", "small windows"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param != "small":
        monkeypatch.setattr(write, "LARGE", 0)
    if request.param == "small windows":
        monkeypatch.setattr(chunks, "WINDOW_LEAST", 30_000)
        monkeypatch.setattr(chunks, "FRAME_LIMIT", 60_000)
    return str(request.param)


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    return BuiltStore(tmp_path / "store", segment_size=20_000, frame_segments=3)


@pytest.fixture
def archives(store: BuiltStore) -> list[Made]:
    """Some archives, their chunks all over the store and some in plain segments."""
    rng = random.Random(5)
    made = [random_archive(rng, biggest=200_000) for _ in range(12)]
    wanted = [data for one in made for data in one.chunks.values()]
    rng.shuffle(wanted)
    for number, data in enumerate(wanted):
        if number % 7:
            store.chunk(data)
        else:
            store.plain([data])
    for one in made:
        for data in one.objects.values():
            store.chunk(data)
    store.flush()
    return made


def entries(archives: list[Made]) -> Iterator[Entry]:
    for number, made in enumerate(archives):
        yield file(b"d/%02d.tar.gz" % number, made.content)


def test_archives_are_restored_and_kept(
    store: BuiltStore, archives: list[Made], tmp_path: Path, way: str
) -> None:
    plain = store.content(os.urandom(100_000))
    store.flush()
    wanted = [directory(b"d"), *entries(archives), file(b"d/plain", plain)]
    total = sum(entry.size for entry in wanted)
    told = [0, 0]

    def progress(size: int, files: int) -> None:
        told[0] += size
        told[1] += files

    options = RestoreOptions(progress=progress)
    report = restore_entries(wanted, store.reader, tmp_path / "out", options)
    assert [] == report.problems
    assert [total, 13] == told == [report.bytes, report.files]
    for number, made in enumerate(archives):
        assert made.data == (tmp_path / f"out/d/{number:02d}.tar.gz").read_bytes()
    again = RestoreOptions(Existing.KEEP_IDENTICAL)
    assert 13 == restore_entries(wanted, store.reader, tmp_path / "out", again).kept


def test_damage_is_found_before_a_name_appears(
    store: BuiltStore, archives: list[Made], tmp_path: Path, way: str
) -> None:
    chunk = max(archives[3].chunks, key=lambda id_: len(archives[3].chunks[id_]))
    store.damage(chunk)
    hurt = {n for n, made in enumerate(archives) if chunk in made.chunks}
    report = restore_entries(entries(archives), store.reader, tmp_path / "out")
    assert report.damaged >= len(hurt) > 0
    names = {int(path.name[:2]) for path in (tmp_path / "out/d").iterdir()}
    assert names == set(range(12)) - {int(p.path[2:4]) for p in report.problems}
    assert not names & hurt
    with pytest.raises(DamageError):
        copy_content(archives[3].content, store.reader, io.BytesIO(), hashed=True)


def test_an_archive_that_has_not_come_is_missing(
    store: BuiltStore, archives: list[Made], tmp_path: Path, way: str
) -> None:
    for gone in (next(iter(archives[2].chunks)), archives[4].content.parts[0]):
        del store.index.located[gone]
    hurt = {n for n, m in enumerate(archives) if next(iter(archives[2].chunks)) in m.chunks} | {4}
    report = restore_entries(entries(archives), store.reader, tmp_path / "out")
    assert len(hurt) == report.missing == len(report.problems)
    with pytest.raises(NotHeldError):
        copy_content(archives[2].content, store.reader, io.BytesIO(), hashed=True)


def test_archives_are_bundled(store: BuiltStore, archives: list[Made], tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.tar.zst"
    with bundle.open("wb") as out:
        report = write_bundle(entries(archives), store.reader, out, level=1,
                              progress=lambda *_: None)  # fmt: skip
    assert ([], 12) == (report.problems, report.files)
    subprocess.run(["tar", "--zstd", "-xf", bundle, "-C", tmp_path], check=True)
    for number, made in enumerate(archives):
        assert made.data == (tmp_path / f"d/{number:02d}.tar.gz").read_bytes()


def test_archives_come_out_as_a_stream(store: BuiltStore, archives: list[Made]) -> None:
    for made in archives:
        out = io.BytesIO()
        copy_content(made.content, store.reader, out, hashed=True)
        assert made.data == out.getvalue()
        assert len(made.recipes) == len(list(content_recipes(made.content, store.reader)))
