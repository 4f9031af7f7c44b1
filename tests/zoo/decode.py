"""Decodes a stream of the zoo by the libraries everyone uses, none of them this project's own."""

from __future__ import annotations

import bz2
import hashlib
import lzma
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, Protocol

import zstandard

STEP = 1 << 20


class Undecodable(Exception):
    """The bytes do not decode to one whole stream."""


class Decoder(Protocol):
    """What zlib, bz2 and lzma have in common: one stream, and what came after its end."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def plain_digest(path: Path, container: str) -> tuple[int, str] | None:
    """Size and SHA-256 of the plain bytes; None for a container that holds several streams.
    Raises Undecodable."""
    if container not in CONTAINERS:
        return None
    size, digest = 0, hashlib.sha256()
    with path.open("rb") as file:
        try:
            for run in CONTAINERS[container](file):
                size += len(run)
                digest.update(run)
        except ERRORS as error:
            raise Undecodable(f"{path.name}: {error}") from error
    return size, digest.hexdigest()


def _streams(new: Callable[[], Decoder], file: BinaryIO) -> Iterator[bytes]:
    """Every stream in the file. Zeros after one are padding: gzip and xz both take them so."""
    decoder = new()
    rest = b""
    while run := rest or file.read(STEP):
        if decoder.eof:
            run = run.lstrip(b"\0")
            decoder = new() if run else decoder
        if run:
            yield decoder.decompress(run)
        rest = decoder.unused_data if decoder.eof and run else b""
    if not decoder.eof:
        raise EOFError("the stream ends early")


def _zstd(file: BinaryIO) -> Iterator[bytes]:
    decoder = zstandard.ZstdDecompressor(max_window_size=1 << 31)
    with decoder.stream_reader(file, read_across_frames=True) as plain:
        yield from iter(lambda: plain.read(STEP), b"")


ERRORS = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError, zstandard.ZstdError)
CONTAINERS: dict[str, Callable[[BinaryIO], Iterator[bytes]]] = {
    "gzip": partial(_streams, partial(zlib.decompressobj, 31)),
    "zlib": partial(_streams, partial(zlib.decompressobj, 15)),
    "deflate": partial(_streams, partial(zlib.decompressobj, -15)),
    "bzip2": partial(_streams, bz2.BZ2Decompressor),
    "xz": partial(_streams, lzma.LZMADecompressor),
    "lzma": partial(_streams, lzma.LZMADecompressor),
    "zstd": _zstd,
}
