"""A count that has nothing of cas: archives by the tools that everybody has, chunks by FastCDC,
SHA-256 by hashlib, tiers as dictionaries.

What cas leaves as it is for its size is left here too: archives of few bytes, and compressed
members of fewer.

    python -m tests.redundancy.independent DIR...    what each has, and what each two have both
"""

from __future__ import annotations

import hashlib
import itertools
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import fastcdc

MIN, AVERAGE, MAX = 16 * 1024, 64 * 1024, 256 * 1024
FILTERS = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
PACK = b"PACK\0\0\0"
ARCHIVES = (b"PK\x03\x04", b"!<arch>\n", PACK)
STREAM = "a stream without a name"  # what a compressed stream is extracted to
LEAST_FILE, LEAST_MEMBER, LEAST_STREAM = 2048, 512, 128  # bytes that are taken apart
FRAMED = 4096  # bytes that are no file's, in one piece
ZLIB_FRAME = 6
TABLE = "a table of ar"  # what `ar x` does not extract
EXTRACT = ("tar", "--no-same-owner", "--delay-directory-restore", "--warning=none", "-xf")


@dataclass(frozen=True, slots=True)
class Piece:
    """One chunk of a plain file: of `path` itself, or of `inner`, what lies in archives there.

    `is_linked`: the archive may have it under other names too.
    """

    path: str
    inner: str
    offset: int
    length: int
    digest: str
    is_linked: bool


def chunks_of(directory: Path, *, unpack: bool) -> dict[str, int]:
    """The distinct chunks of all regular files below `directory`, digest and length; with `unpack`
    those of what is in archives instead of the archives'."""
    return {piece.digest: piece.length for piece in pieces_of(directory, unpack=unpack)}


def pieces_of(directory: Path, *, unpack: bool) -> Iterator[Piece]:
    """The chunks of all regular files below `directory`, with their places."""
    for path in _files(directory):
        plain = _unpacked(path, path.name) if unpack else iter([(path, "")])
        for inner_path, inner in plain:
            yield from _cut(inner_path, os.fsdecode(path), inner)


def _cut(path: Path, outer: str, inner: str) -> Iterator[Piece]:
    data = path.read_bytes()
    is_linked = path.stat().st_nlink > 1
    start = _git_header(data)
    data = data[start:]
    for cut in fastcdc.fastcdc(data, MIN, AVERAGE, MAX) if data else ():
        digest = hashlib.sha256(data[cut.offset : cut.offset + cut.length]).hexdigest()
        yield Piece(outer, inner, start + cut.offset, cut.length, digest, is_linked)


def _git_header(data: bytes) -> int:
    """How long the header of an object of git is, of which the file follows."""
    header, found, _ = data[:32].partition(b"\0")
    size = len(header) + 1
    return size if found and header == b"blob %d" % (len(data) - size) else 0


def both(one: Mapping[str, int], other: Mapping[str, int]) -> int:
    """Bytes of the chunks that are in both."""
    return sum(length for digest, length in one.items() if digest in other)


def _files(directory: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(directory):
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield path


def _unpacked(path: Path, name: str, inner: str = "") -> Iterator[tuple[Path, str]]:
    """The plain files in a file of this `name`, each with its place in there; the file itself where
    no tool takes it apart. Each is there until the next is asked for."""
    with path.open("rb") as file:
        head = file.read(512)
    with tempfile.TemporaryDirectory() as directory:
        into = Path(directory)
        is_small = path.stat().st_size < (LEAST_MEMBER if inner else LEAST_FILE)
        if is_small or not _extract(path, head, into):
            yield path, inner
            return
        for held in _files(into):
            at = os.fsdecode(held.relative_to(into))
            if at != STREAM or held.parent != into:
                yield from _unpacked(held, held.name, f"{inner}!/{at}" if inner else at)
            elif _is_archive(held):
                yield from _unpacked(held, _uncompressed(name), inner)
            else:
                plain = _uncompressed(name)
                yield held, f"{inner}!/{plain}" if inner else plain


def _is_archive(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(512)
    return head[257:262] == b"ustar" or head.startswith((*FILTERS, *ARCHIVES))


def _uncompressed(name: str) -> str:
    for suffix in (".gz", ".bz2", ".xz", ".zst"):
        name = name.removesuffix(suffix) or "content"
    return name


def _extract(path: Path, head: bytes, into: Path) -> bool:
    """Take `path` apart as far as it goes: one that was cut off gives what is there."""
    for magic, tool in FILTERS.items():
        if head.startswith(magic):
            with path.open("rb") as packed, (into / STREAM).open("wb") as plain:
                subprocess.run([tool, "-dc"], stdin=packed, stdout=plain, stderr=subprocess.DEVNULL)
            return True
    if head[257:262] == b"ustar":
        subprocess.run([*EXTRACT, path, "-C", into], stderr=subprocess.DEVNULL)
    elif head.startswith(b"PK\x03\x04"):
        subprocess.run(["unzip", "-qq", "-o", path, "-d", into], stderr=subprocess.DEVNULL)
        _drop_small(path, into)
    elif head.startswith(b"!<arch>\n"):
        subprocess.run(["ar", "x", path.absolute()], cwd=into, stderr=subprocess.DEVNULL)
        _tables(path, into)
    elif head.startswith(PACK):
        _objects(path, into)
    elif head[:1] == b"\x78" and int.from_bytes(head[:2], "big") % 31 == 0:
        return _inflate(path, into)  # an object of git, for which there is no such tool
    else:
        return False
    return True


def _drop_small(path: Path, into: Path) -> None:
    """Remove the files of members that stay compressed."""
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if info.compress_type and info.compress_size < LEAST_STREAM and not info.is_dir():
                (into / info.filename).unlink(missing_ok=True)


def _tables(path: Path, into: Path) -> None:
    """The symbols and the long names of a library."""
    data, at = path.read_bytes(), 8
    while data[at : at + 16].strip() in (b"/", b"//", b"/SYM64/"):
        size = int(data[at + 48 : at + 58])
        (into / f"{TABLE} {at}").write_bytes(data[at + 60 : at + 60 + size])
        at += 60 + size + size % 2


def _objects(pack: Path, into: Path) -> None:
    """What a git pack holds, by the places that git tells: blobs, and what else is long, as it lies
    there."""
    with tempfile.TemporaryDirectory() as directory:
        git = ["git", f"--git-dir={directory}"]
        subprocess.run([*git, "init", "-q", "--bare"], check=True)
        with pack.open("rb") as file:
            quiet = subprocess.DEVNULL
            subprocess.run([*git, "index-pack", "--stdin"], check=True, stdin=file, stdout=quiet)
        (copy,) = Path(directory, "objects/pack").glob("*.pack")
        told = [*git, "verify-pack", "-v", os.fspath(copy)]
        lines = subprocess.run(told, check=True, stdout=subprocess.PIPE).stdout.decode()
    data = pack.read_bytes()
    for words in map(str.split, lines.splitlines()):
        if len(words) in (5, 7) and len(words[0]) >= 40:
            _object(data, into, "delta" if words[5:] else words[1], *map(int, words[2:5]))


def _object(data: bytes, into: Path, type_: str, size: int, packed: int, at: int) -> None:
    """Write an object at its place in a pack; where its header ends is tried out."""
    for start in range(at + 1, at + packed):
        inflater = zlib.decompressobj()
        try:
            plain = inflater.decompress(data[start : at + packed])
        except zlib.error:
            continue
        if inflater.eof and len(plain) == size:
            is_file = type_ == "blob" or size > FRAMED
            if is_file and at + packed - start - ZLIB_FRAME >= LEAST_STREAM:
                (into / f"{type_}-{at}").write_bytes(plain)
            return


def _inflate(path: Path, into: Path) -> bool:
    try:
        (into / STREAM).write_bytes(zlib.decompress(path.read_bytes()))
    except zlib.error:
        return False
    return True


def main() -> None:
    """See above."""
    tiers = {name: chunks_of(Path(name), unpack=True) for name in sys.argv[1:]}
    for name, chunks in tiers.items():
        print(f"{sum(chunks.values()):14,} {name}")
    for one, other in itertools.combinations(tiers, 2):
        print(f"{both(tiers[one], tiers[other]):14,} {one} {other}")


if __name__ == "__main__":
    main()
