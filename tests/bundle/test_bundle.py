"""Bundles, unpacked by GNU tar and compared with the tree they were made from."""

from __future__ import annotations

import os
import random
import resource
import socket
import stat
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cas.bundle import BundleReport, write_bundle
from cas.bundlefile import BundleFiles
from cas.entry import HOLE_DIGEST, Entry, Kind, Owner
from cas.errors import DamageError, RestoreError, StoreError
from cas.restore.select import without_prefix
from cas.store.store import Store
from cas.tarstream import header
from tests.pull.world import World

MIB = 2**20
NS = 1_234_567_890_123_456_789


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


class Bytes:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data


def _silent(_size: int, _files: int) -> None:
    pass


def _entries(store: Store, world: World) -> Iterator[Entry]:
    """The tier's entries, their paths beginning below the source tree."""
    return without_prefix(
        store.entries(store.latest("one")[1]), os.fsencode(world.source).strip(b"/")
    )


def _bundle(world: World, level: int = 3) -> tuple[bytes, BundleReport]:
    store = world.open()
    out = Bytes()
    report = write_bundle(_entries(store, world), store.reader, out, level=level, progress=_silent)
    store.reader.close()
    return out.data, report


def _unpack(bundle: bytes, into: Path) -> Path:
    """What GNU tar makes of it, as the manual says; it must have nothing to complain of."""
    into.mkdir()
    archive = into.with_suffix(".tar.zst")
    archive.write_bytes(bundle)
    options = ["--zstd", "--xattrs", "--xattrs-include=*", "--warning=no-timestamp"]
    words = ["tar", *options, "-xpf", str(archive), "-C", str(into)]
    done = subprocess.run(words, capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert (0, b"") == (done.returncode, done.stderr)
    return into


def _facts(root: Path) -> dict[bytes, tuple[object, ...]]:
    """All that must be the same of every name below `root`; inodes by their first name."""
    found: dict[bytes, tuple[object, ...]] = {}
    first: dict[int, bytes] = {}
    for folder, folders, names in os.walk(os.fsencode(root)):
        folders.sort()
        for name in sorted([*folders, *names]):
            path = os.path.join(folder, name)
            what = os.lstat(path)
            key = os.path.relpath(path, os.fsencode(root))
            content = b""
            if stat.S_ISREG(what.st_mode):
                with open(path, "rb") as file:
                    content = file.read()
            elif stat.S_ISLNK(what.st_mode):
                content = os.readlink(path)
            xattrs = {a: os.getxattr(path, a, follow_symlinks=False)
                      for a in os.listxattr(path, follow_symlinks=False)}  # fmt: skip
            inode = b"" if stat.S_ISDIR(what.st_mode) else first.setdefault(what.st_ino, key)
            found[key] = (stat.filemode(what.st_mode), what.st_uid, what.st_gid, what.st_rdev,
                          what.st_mtime_ns, content, inode, xattrs)  # fmt: skip
    return found


def _fill(root: Path) -> None:
    rng = random.Random(1)
    deep = root / "deep"
    for _ in range(4):
        deep = deep / ("d" * 60)
    deep.mkdir(parents=True)
    (deep / "grün").write_text("long names\n")
    (deep / "to").symlink_to("/" + "t" * 150)
    os.link(deep / "grün", root / "another name")
    (root / "random").write_bytes(rng.randbytes(3 * MIB + 17))
    (root / "empty").touch()
    (root / "one block").write_bytes(bytes(rng.choices(b"abc", k=512)))
    (root / "set id").write_bytes(b"#!/bin/sh\n")
    (root / "set id").chmod(0o4751)
    (Path(os.fsdecode(os.fsencode(root) + b"/latin-\xe4\n\\"))).write_bytes(b"no UTF-8")
    (root / "dangling").symlink_to("nowhere")
    os.mkfifo(root / "pipe", 0o640)
    (root / "closed").mkdir(0o555)
    for number, (folder, folders, names) in enumerate(os.walk(root, topdown=False)):
        for name in (*folders, *names):
            os.utime(Path(folder, name), ns=(0, NS + number), follow_symlinks=False)
    os.utime(root / "empty", ns=(0, -1_500_000_000))
    os.utime(root / "pipe", ns=(0, 5 * 10**9))


def test_tar_makes_the_same_tree(world: World, tmp_path: Path) -> None:
    _fill(world.source)
    world.sync(world.tier("one"))
    data, report = _bundle(world)
    assert [] == report.problems
    facts = _facts(world.source)
    assert len(facts) == report.names
    assert facts == _facts(_unpack(data, tmp_path / "out"))


def test_the_same_tier_gives_the_same_bytes(world: World) -> None:
    _fill(world.source)
    world.sync(world.tier("one"))
    first, _ = _bundle(world)
    assert first == _bundle(world)[0]
    assert first != _bundle(world, level=1)[0]


@pytest.mark.root
def test_what_only_root_can_make(world: World, tmp_path: Path) -> None:
    root = world.source
    (root / "file").write_bytes(b"1")
    os.chown(root / "file", 12345, 3_000_000)  # the group's number is over what ustar holds
    os.setxattr(root / "file", "user.bin=%", bytes(range(256)))
    os.setxattr(root / "file", "security.capability", struct.pack("<5I", 0x02000001, 1, 0, 0, 0))
    (root / "folder").mkdir()
    rows = [(1, 7, 2**32 - 1), (2, 6, 12345), (4, 5, 2**32 - 1), (16, 7, 2**32 - 1),
            (32, 5, 2**32 - 1)]  # fmt: skip
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)
    os.setxattr(root / "folder", "system.posix_acl_access", acl)
    os.setxattr(root / "folder", "system.posix_acl_default", acl)
    os.mknod(root / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(root / "disk", stat.S_IFBLK | 0o660, os.makedev(259, 2**20 - 1))
    world.sync(world.tier("one"))
    data, report = _bundle(world)
    assert [] == report.problems
    assert _facts(root) == _facts(_unpack(data, tmp_path / "out"))


def _sparse(path: Path, size: int, pieces: dict[int, bytes]) -> None:
    with path.open("wb") as file:
        file.truncate(size)
        for at, data in pieces.items():
            file.seek(at)
            file.write(data)


@pytest.mark.parametrize(
    "pieces",
    [
        {},
        {0: b"head" * 2000},
        {8 * MIB - 5: b"tail!"},
        {2 * MIB: b"a" * 9000, 5 * MIB: os.urandom(300_000)},
    ],
    ids=["nothing", "head", "tail", "islands"],
)
def test_holes_stay_holes(world: World, tmp_path: Path, pieces: dict[int, bytes]) -> None:
    _sparse(world.source / "holes", 8 * MIB, pieces)
    (world.source / "next").write_bytes(b"after it")
    world.sync(world.tier("one"))
    out = _unpack(_bundle(world)[0], tmp_path / "out")
    assert _facts(world.source) == _facts(out)
    assert (out / "holes").stat().st_blocks <= (world.source / "holes").stat().st_blocks


def test_a_hole_of_a_terabyte_is_no_work(world: World, tmp_path: Path) -> None:
    _sparse(world.source / "disk", 2**40, {2**39: b"in the middle"})
    world.sync(world.tier("one"))
    store = world.open()
    assert any(entry.flags & HOLE_DIGEST for entry in _entries(store, world))
    data, _ = _bundle(world)
    assert len(data) < 4096
    made = _unpack(data, tmp_path / "out") / "disk"
    assert 2**40 == made.stat().st_size
    assert made.stat().st_blocks < 100
    with made.open("rb") as file:
        file.seek(2**39)
        assert b"in the middle" == file.read(13)


def test_sockets_and_what_was_not_readable_are_listed(world: World) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        there = os.open(world.source, os.O_RDONLY)
        listening.bind(f"/proc/self/fd/{there}/socket")
        os.close(there)
        world.sync(world.tier("one"))
    _, report = _bundle(world)
    assert [b"socket"] == [problem.path for problem in report.problems]
    assert 0 == report.names


def test_content_that_has_not_come_is_listed(world: World, tmp_path: Path) -> None:
    (world.source / "here").write_bytes(b"here")
    (world.source / "there").write_bytes(os.urandom(MIB))
    world.sync(world.tier("one"))
    store = world.open()
    entries = {entry.path: entry for entry in _entries(store, world)}
    lost = next(store.chunks_of(entries[b"there"]))[0]
    located = world.index.locate_all
    world.index.locate_all = (  # type: ignore[method-assign]
        lambda chunks: [None if id_ == lost else at
                        for id_, at in zip(chunks, located(chunks), strict=True)]
    )  # fmt: skip
    data, report = _bundle(world)
    assert [b"there"] == [problem.path for problem in report.problems]
    assert 1 == report.missing
    assert ["here"] == os.listdir(_unpack(data, tmp_path / "out"))


def _damage(world: World) -> None:
    for pack in world.layout.packs.iterdir():
        data = bytearray(pack.read_bytes())
        data[len(data) // 2] ^= 1
        pack.write_bytes(data)


@pytest.mark.parametrize("shard_size", [0, MIB])
def test_damage_leaves_nothing(world: World, tmp_path: Path, shard_size: int) -> None:
    (world.source / "file").write_bytes(os.urandom(5 * MIB))
    world.sync(world.tier("one"))
    _damage(world)
    out = tmp_path / "out"
    out.mkdir()
    store = world.open()
    with pytest.raises(DamageError, match="/file"):
        _to_files(world, store, out / "b", shard_size=shard_size)
    assert [] == os.listdir(out)


def _to_files(
    world: World, store: Store, path: Path, *, shard_size: int = 0, overwrite: bool = False
) -> None:
    with BundleFiles(bytes(path), shard_size=shard_size, overwrite=overwrite) as files:
        write_bundle(_entries(store, world), store.reader, files, level=1, progress=_silent)
        files.commit()


@pytest.mark.parametrize("name", ["plain.tar.zst", "odd\n\\name.tar.zst"])
def test_the_sums_are_right_and_shards_join_to_the_whole(
    world: World, tmp_path: Path, name: str
) -> None:
    (world.source / "file").write_bytes(os.urandom(5 * MIB))
    world.sync(world.tier("one"))
    one, many = tmp_path / "one", tmp_path / "many"
    one.mkdir()
    many.mkdir()
    store = world.open()
    _to_files(world, store, one / name)
    _to_files(world, store, many / name, shard_size=MIB)
    assert [name, name + ".sha256"] == sorted(os.listdir(one))
    shards = [f"{name}.{number:03}" for number in range(6)]
    assert [*shards, name + ".sha256"] == sorted(os.listdir(many))
    joined = b"".join((many / shard).read_bytes() for shard in shards)
    assert (one / name).read_bytes() == joined
    assert all((many / shard).stat().st_size == MIB for shard in shards[:-1])
    for directory in (one, many):
        words = ["sha256sum", "--strict", "-c", name + ".sha256"]
        assert 0 == subprocess.run(words, cwd=directory, capture_output=True).returncode
    line = (one / (name + ".sha256")).read_bytes().lstrip(b"\\")
    assert line[:64] in (many / (name + ".sha256")).read_bytes()


def test_an_old_bundle_stays_unless_it_may_go(world: World, tmp_path: Path) -> None:
    (world.source / "file").write_bytes(os.urandom(3 * MIB))
    world.sync(world.tier("one"))
    out = tmp_path / "out"
    out.mkdir()
    (out / "b.tar.zst.txt").touch()
    store = world.open()
    _to_files(world, store, out / "b.tar.zst", shard_size=MIB)
    with pytest.raises(RestoreError, match=r"b.tar.zst.000: it exists already"):
        _to_files(world, store, out / "b.tar.zst")
    _to_files(world, store, out / "b.tar.zst", overwrite=True)
    assert ["b.tar.zst", "b.tar.zst.sha256", "b.tar.zst.txt"] == sorted(os.listdir(out))


def test_a_full_disk_leaves_nothing(world: World, tmp_path: Path) -> None:
    (world.source / "file").write_bytes(os.urandom(3 * MIB))
    world.sync(world.tier("one"))
    out = tmp_path / "out"
    out.mkdir()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    store = world.open()
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * MIB, hard))
    try:
        with pytest.raises(StoreError, match=r"b\.tar\.zst"):
            _to_files(world, store, out / "b.tar.zst")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [] == os.listdir(out)


def test_numbers_that_tar_cannot_hold_in_their_fields() -> None:
    owner = Owner(0o644, 2**32 - 1, 2**21, b"u" * 40, b"g")
    found = header(Entry(b"big", Kind.FILE, owner, -1, size=2**40))
    for record in (b"22 size=1099511627776\n", b"18 uid=4294967295\n", b"15 gid=2097152\n",
                   b"22 mtime=-0.000000001\n", b"uname=" + b"u" * 40 + b"\n"):  # fmt: skip
        assert record in found
    assert b"gname" not in found
    assert 0 == len(found) % 512
