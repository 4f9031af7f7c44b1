"""Real trees: taken into a small store as entries, and told what they are for comparing."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from cas.entry import Content, Entry, Kind, Owner, path_order
from tests.store.build import BuiltStore

KINDS = {
    stat.S_IFREG: Kind.FILE,
    stat.S_IFDIR: Kind.DIRECTORY,
    stat.S_IFLNK: Kind.SYMLINK,
    stat.S_IFIFO: Kind.FIFO,
    stat.S_IFSOCK: Kind.SOCKET,
    stat.S_IFCHR: Kind.CHARACTER_DEVICE,
    stat.S_IFBLK: Kind.BLOCK_DEVICE,
}
MINE = Owner(0o644, os.geteuid(), os.getegid())


def names_below(root: Path) -> list[bytes]:
    """The paths of all that is below `root`, relative to it, in path order."""
    top = os.fsencode(root)
    found = []
    for folder, folders, files in os.walk(top):
        found += [os.path.relpath(os.path.join(folder, name), top) for name in folders + files]
    return sorted(found, key=path_order)


def take(root: Path, store: BuiltStore, *, chunk: int = 4096) -> list[Entry]:
    """What is below `root` as entries, its content in `store`."""
    entries = [take_one(root, path, store, chunk) for path in names_below(root)]
    store.flush()
    return entries


def take_one(root: Path, path: bytes, store: BuiltStore, chunk: int = 4096) -> Entry:
    """One name as an entry."""
    full = os.path.join(os.fsencode(root), path)
    found = os.lstat(full)
    kind = KINDS[stat.S_IFMT(found.st_mode)]
    content = store.sparse(pieces(full), chunk=chunk) if kind is Kind.FILE else None
    is_device = kind in (Kind.CHARACTER_DEVICE, Kind.BLOCK_DEVICE)
    linked = found.st_nlink > 1 and kind is not Kind.DIRECTORY
    return Entry(
        path,
        kind,
        Owner(stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid),
        found.st_mtime_ns,
        size=content.size if content else 0,
        content=content,
        target=os.readlink(full) if kind is Kind.SYMLINK else b"",
        device=(os.major(found.st_rdev), os.minor(found.st_rdev)) if is_device else None,
        link=b"%d:%d" % (found.st_dev, found.st_ino) if linked else b"",
        xattrs=tuple(sorted(xattrs(full))),
    )


def pieces(path: bytes) -> list[bytes | int]:
    """The data and the holes (their sizes) of a file."""
    found: list[bytes | int] = []
    with open(path, "rb") as file:
        fd, size, at = file.fileno(), os.fstat(file.fileno()).st_size, 0
        while at < size:
            try:
                start = os.lseek(fd, at, os.SEEK_DATA)
            except OSError:
                start = size
            if start > at:
                found.append(start - at)
            at = start
            if at < size:
                end = os.lseek(fd, at, os.SEEK_HOLE)
                found.append(os.pread(fd, end - at, at))
                at = end
    return found


def xattrs(path: bytes) -> list[tuple[bytes, bytes]]:
    """The extended attributes of a name itself."""
    names = os.listxattr(path, follow_symlinks=False)
    return [(os.fsencode(n), os.getxattr(path, n, follow_symlinks=False)) for n in names]


def facts(root: Path) -> dict[bytes, tuple[object, ...]]:
    """All that a restore should bring back, for each name below `root`."""
    told: dict[bytes, tuple[object, ...]] = {}
    inodes: dict[int, bytes] = {}
    for path in names_below(root):
        full = os.path.join(os.fsencode(root), path)
        found = os.lstat(full)
        kind = stat.S_IFMT(found.st_mode)
        content: object = None
        if kind == stat.S_IFREG:
            content = pieces(full)
        elif kind == stat.S_IFLNK:
            content = os.readlink(full)
        same = path if kind == stat.S_IFDIR else inodes.setdefault(found.st_ino, path)
        told[path] = (found.st_mode, found.st_uid, found.st_gid, found.st_mtime_ns, content,
                      found.st_rdev, sorted(xattrs(full)), same)  # fmt: skip
    return told


def file(path: bytes, content: Content | None, **more: object) -> Entry:
    """An entry of a plain file that is ours."""
    size = content.size if content else 0
    return Entry(path, Kind.FILE, MINE, 1_000_000_007, size, content, **more)  # type: ignore[arg-type]  # fields of Entry


def directory(path: bytes) -> Entry:
    """An entry of a directory that is ours."""
    return Entry(path, Kind.DIRECTORY, Owner(0o755, MINE.uid, MINE.gid), 1_000_000_007)


def symlink(path: bytes, target: bytes) -> Entry:
    """An entry of a symlink that is ours."""
    return Entry(path, Kind.SYMLINK, Owner(0o777, MINE.uid, MINE.gid), 5, target=target)
