"""Members of archives are restored like the entries of a tier."""

from __future__ import annotations

import gzip
import io
import os
import random
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cas.codec import registry
from cas.entry import HOLE_DIGEST
from cas.inside.entries import member_entries
from cas.inside.scratch import Scratch
from cas.restore.report import Existing, RestoreOptions, RestoreReport
from cas.restore.tree import restore_entries
from tests.inside.test_inside import CountingSource, some_files, taken, tar_of, zip_of
from tests.restore.trees import facts
from tests.store.build import BuiltStore
from tests.unpack.carry import JOINERS
from tests.unpack.taking import Taken


@pytest.fixture(autouse=True, scope="module")
def _toys() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for codec, place in JOINERS.items():
            patch.setitem(registry.JOINERS, codec, place)
        yield


def stored(archive: Taken, root: Path) -> BuiltStore:
    store = BuiltStore(root, segment_size=50_000, frame_segments=3)
    for data in [*archive.objects.values(), *archive.chunks.values()]:
        store.chunk(data)
    store.flush()
    return store


def restored(data: bytes, root: Path, path: bytes = b"", **options: object) -> RestoreReport:
    """`data` taken apart and stored, and what is at `path` in it restored below `root`/out."""
    archive = taken(data)
    store = stored(archive, root / f"store{len(list(root.iterdir()))}")
    root.joinpath("out").mkdir(exist_ok=True)
    with closing(Scratch(store.reader, root / "out")) as scratch:
        entries, problems = member_entries(archive.content, path, scratch)
        report = restore_entries(entries, scratch, root / "out", RestoreOptions(**options))  # type: ignore[arg-type]  # as it has them
    report.problems += problems
    return report


def found(root: Path) -> dict[str, bytes]:
    return {
        os.fspath(path.relative_to(root / "out")): path.read_bytes()
        for path in root.joinpath("out").rglob("*")
        if path.is_file()
    }


def test_a_tree_comes_out_as_tar_unpacks_it(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    rng = random.Random(1)
    for name, size in (("a/b/large", 700_000), ("a/one", 5000), ("a/tiny", 9), ("a/none", 0)):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(rng.randbytes(size))
    (tree / "a/hard").hardlink_to(tree / "a/b/large")
    (tree / "link").symlink_to("a/one")
    os.mkfifo(tree / "fifo")
    (tree / "a/one").chmod(0o4711)
    (tree / "a").chmod(0o750)
    subprocess.run(["tar", "-cf", "x.tar", "-C", "tree", "."], cwd=tmp_path, check=True)
    (tmp_path / "tar").mkdir()
    subprocess.run(["tar", "-xpf", "x.tar", "-C", "tar"], cwd=tmp_path, check=True)
    data = (tmp_path / "x.tar").read_bytes()
    for one in (data, gzip.compress(data)):
        report = restored(one, tmp_path, existing=Existing.OVERWRITE)
        assert [] == report.problems
        told, expected = facts(tmp_path / "out"), facts(tmp_path / "tar")
        seconds = {path: fact[3] for path, fact in told.items()}
        for path, fact in expected.items():
            assert fact[3] // 10**9 == seconds[path] // 10**9  # type: ignore[operator]
            assert (*fact[:3], *fact[4:]) == (*told[path][:3], *told[path][4:])


def test_parts_and_archives_in_archives(tmp_path: Path) -> None:
    inner = zip_of(some_files(2))
    files = {
        **some_files(1),
        "in.zip": inner,
        "x/layer.tar.gz": gzip.compress(tar_of(some_files(3))),
    }
    data = tar_of(files)
    assert [] == restored(data, tmp_path, b"d1").problems
    assert {path: data for path, data in files.items() if path.startswith("d1/")} == found(tmp_path)
    for at, expected in ((b"in.zip!/", some_files(2)), (b"x/layer.tar.gz!/d0", some_files(3)),
                         (b"x", files)):  # fmt: skip
        subprocess.run(["rm", "-r", tmp_path / "out"], check=True)
        assert [] == restored(data, tmp_path, at).problems
        part = at.rpartition(b"!/")[2].decode()
        wanted = {path: data for path, data in expected.items() if path.startswith(part)}
        assert wanted == found(tmp_path)


def test_what_is_whole_chunks_is_not_fetched_to_be_told(tmp_path: Path) -> None:
    files = {f"{n}": random.Random(n).randbytes(60_000 * n) for n in range(1, 6)}
    for data in (tar_of(files), gzip.compress(tar_of(files)), zip_of(files)):
        archive = taken(data)
        source = CountingSource(archive)
        with closing(Scratch(source, tmp_path)) as scratch:
            entries, _ = member_entries(archive.content, b"", scratch)
        assert source.fetched <= set(archive.objects)
        assert [len(files[entry.path.decode()]) for entry in entries] == [e.size for e in entries]
        assert all(entry.flags == HOLE_DIGEST for entry in entries if entry.size > 300_000)


def test_the_last_of_the_same_name_counts_and_wrong_names_are_listed(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in (("z", b"1" * 5000), ("../up", b"2"), ("/abs", b"3"), ("z", b"4" * 600)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for name, kind in (("dev", tarfile.CHRTYPE), ("second", tarfile.LNKTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "elsewhere"
            archive.addfile(info)
    report = restored(out.getvalue(), tmp_path)
    assert {"z": b"4" * 600, "abs": b"3"} == found(tmp_path)
    reasons = {problem.path: problem.reason for problem in report.problems}
    assert {b"../up", b"dev", b"second"} == set(reasons)
    assert "not a legal path" in reasons[b"../up"]
