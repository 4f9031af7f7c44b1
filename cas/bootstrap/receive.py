"""The far end of `cas bootstrap`: takes the kit in, checks it, and puts it in its place.

This file is sent as text and run by the host's Python, `-I -S`, so it imports nothing but the
standard library, and speaks JSON lines over standard input and output (see `cas.bootstrap.talk`).
Everything it writes is below one directory, `agent/`:

    0.1.0-1a2b3c4d/           a kit, complete and checked before it has this name
    0.1.0-1a2b3c4d.partial    as much of its archive as has come
    0.1.0-1a2b3c4d.new.PID/   being unpacked
    cas-0.1.0                 starts the kit that was put there last for this version

Two of it at a time do no harm: both write the same bytes at the same places.
"""

from __future__ import annotations

import compileall
import contextlib
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import stat
import sys
import tarfile
from typing import Any, BinaryIO

MARK = "cas-receive "
MANIFEST = "MANIFEST"
PIECE = 64 * 1024
PACKED_LIMIT = 256 * 2**20
PLAIN_LIMIT = 512 * 2**20
_KIT = re.compile(r"[0-9][0-9A-Za-z.+]*-[0-9a-f]{8}")
_LEFT_OVER = re.compile(_KIT.pattern + r"\.(?:partial|new\.[0-9]+)")
_LAUNCHER = re.compile(r"cas-[0-9][0-9A-Za-z.+]*")


class Refusal(Exception):
    """Something is not as it has to be; the text is for the user."""


def main(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """Hold the conversation. What goes wrong is told, and ends it."""

    def tell(**fields: object) -> None:
        outgoing.write((MARK + json.dumps(fields) + "\n").encode())
        outgoing.flush()

    def hear() -> Any:
        return json.loads(incoming.readline(PIECE))

    try:
        _converse(incoming, hear, tell)
    except Refusal as error:
        tell(error=str(error))
    except OSError as error:
        tell(error=f"{error.filename or 'the host'}: {error.strerror or error}")


def _converse(incoming: BinaryIO, hear: Any, tell: Any) -> None:
    order = hear()
    directory, name = order["directory"], order["name"]
    if not _KIT.fullmatch(name) or not _LAUNCHER.fullmatch(order["launcher"]):
        raise Refusal("a name that is none of ours")
    _own_directory(directory)
    kit, partial = os.path.join(directory, name), os.path.join(directory, name + ".partial")
    if _is_whole(kit, order["manifest"]):
        tell(state="there")
    else:
        have = _read(partial)
        tell(state="absent", have=len(have), sha256=hashlib.sha256(have).hexdigest())
        del have
        offer = hear()
        _receive(incoming, partial, offer, tell)
        _unpack(partial, kit, offer, order["manifest"])
    compileall.compile_dir(kit, quiet=2)
    launcher = _write_launcher(directory, order["launcher"], kit, order["python"])
    removed = _clean(directory, name) if order["clean"] else []
    tell(state="done", kit=kit, launcher=launcher, removed=removed)


def _own_directory(path: str) -> None:
    """Make it, ours alone; it may lie in a directory where everybody can write."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    for each, open_to in ((os.path.dirname(path), 0o002), (path, 0o022)):
        found = os.lstat(each)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise Refusal(f"{each} is not a directory of ours")
        if found.st_mode & open_to:
            raise Refusal(f"{each} can be written by others (chmod go-w {each})")


def _is_whole(kit: str, manifest: str) -> bool:
    """Whether the kit is there, and each of its files as it was sent."""
    text = _read(os.path.join(kit, MANIFEST))
    if hashlib.sha256(text).hexdigest() != manifest:
        return False
    return all(_digest(os.path.join(kit, path)) == wanted for path, wanted in _listed(text))


def _listed(manifest: bytes) -> list[tuple[str, str]]:
    rows = [line.partition("  ") for line in manifest.decode().splitlines()]
    return [(path, digest) for digest, _, path in rows]


def _digest(path: str) -> str:
    return hashlib.sha256(_read(path)).hexdigest()


def _read(path: str) -> bytes:
    """All of a file of ours; nothing if it is not there."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    with open(fd, "rb") as file:
        return file.read(PLAIN_LIMIT)


def _receive(incoming: BinaryIO, partial: str, offer: Any, tell: Any) -> None:
    """Write what comes from `offset` on, until `size` bytes are there; a connection that ends
    before leaves what has come."""
    offset, size = offer["offset"], offer["size"]
    if not 0 <= offset <= size <= PACKED_LIMIT:
        raise Refusal("the kit is too large")
    fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        os.ftruncate(fd, offset)
        while offset < size:
            piece = incoming.read(min(PIECE, size - offset))
            if not piece:
                raise Refusal("the connection ended")
            os.pwrite(fd, piece, offset)
            offset += len(piece)
            tell(state="receiving", have=offset)
        os.fsync(fd)
    finally:
        os.close(fd)


def _unpack(partial: str, kit: str, offer: Any, manifest: str) -> None:
    """Check the archive, unpack it, check that too; only then the kit gets its name."""
    packed = _read(partial)
    if hashlib.sha256(packed).hexdigest() != offer["sha256"]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
        raise Refusal("what has come is not what was sent; nothing of it is kept")
    files = _files(packed)
    listed = _listed(files.get(MANIFEST, b""))
    good = hashlib.sha256(files.get(MANIFEST, b"")).hexdigest() == manifest
    if not good or {MANIFEST, *(path for path, _ in listed)} != set(files):
        raise Refusal("the kit does not hold what its manifest says")
    new = f"{kit}.new.{os.getpid()}"
    try:
        for path, data in files.items():
            _write(os.path.join(new, path), data)
        if not _is_whole(new, manifest):
            raise Refusal("a file is not what its manifest says")
        _settle(new, kit, manifest)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(partial)


def _files(packed: bytes) -> dict[str, bytes]:
    """The files of the archive: plain ones, below where they are unpacked, not too many bytes."""
    files: dict[str, bytes] = {}
    left = PLAIN_LIMIT
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:xz") as tar:
        for member in tar:
            parts = member.name.split("/")
            left -= member.size
            if not member.isreg() or {"", ".", ".."} & set(parts) or left < 0:
                raise Refusal("the kit holds something that it must not")
            file = tar.extractfile(member)
            files[member.name] = file.read() if file else b""
    return files


def _write(path: str, data: bytes) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(fd)


def _settle(new: str, kit: str, manifest: str) -> None:
    """Give the kit its name; one of that name that is not whole goes first."""
    if _is_whole(kit, manifest):
        return
    if os.path.lexists(kit):
        aside = f"{new}.old"
        os.rename(kit, aside)
        shutil.rmtree(aside, ignore_errors=True)
    os.rename(new, kit)
    fd = os.open(os.path.dirname(kit), os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def _write_launcher(directory: str, name: str, kit: str, python: str) -> str:
    """What starts the kit. It is read by `sh`, so it need not be executable; -B, for the agent
    writes nothing but its cache."""
    start = shlex.join([python, "-I", "-S", "-B", os.path.join(kit, "cli", "__main__.py")])
    path = os.path.join(directory, name)
    text = f'#!/bin/sh\nexec {start} "$@"\n'.encode()
    if _read(path) == text:
        return path
    new = f"{path}.{os.getpid()}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new)
    _write(new, text)
    os.rename(new, path)
    return path


def _clean(directory: str, current: str) -> list[str]:
    """Remove other kits and what broken runs have left; whatever has another name stays."""
    removed = []
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        is_kit = _KIT.fullmatch(name) and os.path.isfile(os.path.join(path, MANIFEST))
        if name == current or not (is_kit or _LEFT_OVER.fullmatch(name)):
            continue
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)
        removed.append(name)
    return [*removed, *_stale_launchers(directory)]


def _stale_launchers(directory: str) -> list[str]:
    """Remove those that start nothing any more."""
    removed = []
    for name in sorted(filter(_LAUNCHER.fullmatch, os.listdir(directory))):
        path = os.path.join(directory, name)
        words = shlex.split(_read(path).decode("utf-8", "replace"), comments=True)
        if len(words) > 5 and words[0] == "exec" and not os.path.exists(words[5]):
            os.unlink(path)
            removed.append(name)
    return removed


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
