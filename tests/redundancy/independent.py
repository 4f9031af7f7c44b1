"""A count that has nothing of cas: archives by the tools that everybody has, chunks by FastCDC,
SHA-256 by hashlib, tiers as dictionaries.

    python -m tests.redundancy.independent DIR...    what each has, and what each two have both
"""

from __future__ import annotations

import hashlib
import itertools
import os
import subprocess
import sys
import tempfile
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
    for cut in fastcdc.fastcdc(data, MIN, AVERAGE, MAX) if data else ():
        digest = hashlib.sha256(data[cut.offset : cut.offset + cut.length]).hexdigest()
        yield Piece(outer, inner, cut.offset, cut.length, digest, is_linked)


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
        if not _extract(path, head, into):
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
    elif head.startswith(b"!<arch>\n"):
        subprocess.run(["ar", "x", path.absolute()], cwd=into, stderr=subprocess.DEVNULL)
    elif head.startswith(PACK):
        _blobs(path, into)
    elif head[:1] == b"\x78" and int.from_bytes(head[:2], "big") % 31 == 0:
        return _inflate(path, into)  # an object of git, for which there is no such tool
    else:
        return False
    return True


def _blobs(pack: Path, into: Path) -> None:
    """The files that a git pack holds whole."""
    with tempfile.TemporaryDirectory() as directory:

        def git(*words: str | Path, data: bytes | None = None) -> bytes:
            command = ["git", *words]
            done = subprocess.run(
                command, cwd=directory, input=data, check=True, capture_output=True
            )
            return done.stdout

        git("init", "-q", "--bare", ".")
        git("index-pack", "--stdin", data=pack.read_bytes())
        for packed in Path(directory, "objects/pack").glob("*.pack"):
            for line in git("verify-pack", "-v", packed).decode().splitlines():
                words = line.split()
                if len(words) == 5 and words[1] == "blob":
                    (into / f"blob-{words[4]}").write_bytes(git("cat-file", "blob", words[0]))


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
