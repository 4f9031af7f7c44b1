"""The corpus of tests/tools/make_corpus.sh, ten tiers as a host has them."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from tests.bench.verdict import MIB, Skipped

MAKER = Path(__file__).parents[1] / "tools" / "make_corpus.sh"
DEPTH = 8
MEMBER_LIMIT = 512 * MIB


def tiers(corpus: Path) -> dict[str, Path]:
    """The tiers' directories by name, in order; the corpus is made where it is not. Raises Skipped
    where it cannot be."""
    if not (corpus / "MANIFEST.tsv").is_file():
        _make(corpus)
    return {path.name: path for path in sorted(corpus.glob("tier*"))}


def _make(corpus: Path) -> None:
    if os.geteuid():
        raise Skipped(f"the corpus is not at {corpus}, and only root can make it")
    cache = corpus.with_name(corpus.name + "-cache")
    command = ["bash", MAKER, "--size", "small", "--force", "--cache", cache, corpus]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if done.returncode:
        raise Skipped(f"the corpus cannot be made: {done.stderr.strip()[-500:]}")


def files(directory: Path) -> Iterator[Path]:
    """The regular files below `directory`, sorted."""
    for folder, folders, names in os.walk(directory):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield path


def unpacked(data: bytes, depth: int = DEPTH) -> Iterator[bytes]:
    """The plain streams in `data`: the files within gzip, tar and zip, each by itself, and `data`
    itself where it is none of them. What is cut short gives what is there."""
    if depth and data[:2] == b"\x1f\x8b":
        yield from unpacked(_gunzipped(data), depth - 1)
    elif depth and data[257:262] == b"ustar":
        yield from _tar_members(data, depth)
    elif depth and data[:4] == b"PK\x03\x04":
        yield from _zip_members(data, depth)
    else:
        yield data


def _gunzipped(data: bytes) -> bytes:
    plain = bytearray()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            while len(plain) < MEMBER_LIMIT and (piece := stream.read(MIB)):
                plain += piece
    except (OSError, EOFError, zlib.error):
        pass
    return bytes(plain)


def _tar_members(data: bytes, depth: int) -> Iterator[bytes]:
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                stream = archive.extractfile(member) if member.isreg() else None
                if stream is not None:
                    yield from unpacked(stream.read(), depth - 1)
    except (tarfile.TarError, OSError, EOFError):
        return


def _zip_members(data: bytes, depth: int) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                yield from unpacked(archive.read(member), depth - 1)
    except (zipfile.BadZipFile, OSError, zlib.error):
        yield data
