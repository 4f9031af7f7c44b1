"""Streams at the edges of their formats: none, several, cut short, with something after the end.

Each part is made by the real program; putting them one after another is what `cat` does.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

from tests.zoo.deflaters import BUILDAHS, GZIP, IGZIP, PIGZ, PY_LIBDEFLATE, ZLIB_NG
from tests.zoo.replayed import BZIP2, XZ, ZSTD
from tests.zoo.tools import Go, Node, Tool, Unavailable
from tests.zoo.workshop import BRIEF, CLOCK, Job, Made, Workshop, job

SKIPPABLE = bytes.fromhex("502a4d18") + (12).to_bytes(4, "little") + b"not a frame."
# A tool, the end of a name, what it is told, the container.
PACKERS: tuple[tuple[Tool, str, str, str], ...] = (
    (GZIP, "gz", "-n -6 -c", "gzip"),
    (BZIP2, "bz2", "-9 -c", "bzip2"),
    (XZ, "xz", "-6 -c", "xz"),
    (ZSTD, "zst", "-q -3 -c", "zstd"),
)
RUN = 10_000
MIXED: dict[str, tuple[Tool, str]] = {
    "gzip": (GZIP, "-n -6"),
    "pigz": (PIGZ, "-n -p 2 -6"),
    "go": (Go(), "std 6"),
    "pgzip": (Go(BUILDAHS), "pgzip -1"),
    "klauspost-1": (Go(BUILDAHS), "klauspost 1"),
    "igzip": (IGZIP, "-1"),
    "zlibng-2": (ZLIB_NG, "2"),
    "libdeflate": (PY_LIBDEFLATE, "6"),
    "node": (Node(), "6"),
}


def jobs() -> Iterator[Job]:
    """All of them."""
    for tool, suffix, arguments, container in PACKERS:
        yield _little(tool, suffix, arguments, container)
        yield _several(tool, suffix, arguments, container)
    yield from (mixed, tails, named, levels_in_turn, xz_padding, zstd_frames)


def _little(tool: Tool, suffix: str, arguments: str, container: str) -> Job:
    """Of no bytes, one byte, a mebibyte of zeros."""
    plains = {"empty": b"", "one-byte": b"a", "zeros": bytes(1 << 20)}

    @job(*(f"{word}.{suffix}" for word in plains))
    def make(shop: Workshop) -> Iterator[Made]:
        encoder = shop.get(tool)
        for word, plain in plains.items():
            path = shop.do(*encoder.command, *arguments.split(), stdin=_file(shop, plain))
            command = f"{encoder.shown} {arguments} <{word}"
            yield Made(f"{word}.{suffix}", path, container, encoder, command)

    return make


def _several(tool: Tool, suffix: str, arguments: str, container: str) -> Job:
    """Three streams in one file."""

    @job(f"members.{suffix}")
    def make(shop: Workshop) -> Iterator[Made]:
        encoder = shop.get(tool)
        name, _ = shop.plain(BRIEF)
        path = _file(shop, b"".join(_thirds(shop, tool, [arguments] * 3)), "joined")
        command = f"split -n 3 {name}; {encoder.shown} {arguments} of each | cat"
        yield Made(f"members.{suffix}", path, container, encoder, command, name)

    return make


def _thirds(shop: Workshop, tool: Tool, settings: list[str]) -> Iterator[bytes]:
    plain = shop.plain(BRIEF)[1].read_bytes()
    size = len(plain) // 3 + 1
    for number, arguments in enumerate(settings):
        third = _file(shop, plain[number * size : (number + 1) * size])
        command = shop.get(tool).command
        yield shop.do(*command, *arguments.split(), stdin=third).read_bytes()


@job(*(f"mixed-{word}.gz" for word in MIXED))
def mixed(shop: Workshop) -> Iterator[Made]:
    """Random bytes, text, random bytes: what makes encoders write stored blocks."""
    chance = random.Random(1951)
    text = shop.plain(BRIEF)[1].read_bytes()[-RUN:]
    plain = _file(shop, chance.randbytes(RUN * 2) + text + chance.randbytes(RUN * 2))
    for word, (tool, arguments) in MIXED.items():
        try:
            encoder = shop.get(tool)
        except Unavailable as why:
            print(f"left out mixed-{word}.gz: {why}", flush=True)
            continue
        path = shop.do(*encoder.command, *arguments.split(), stdin=plain)
        yield Made(f"mixed-{word}.gz", path, "gzip", encoder, f"{encoder.shown} {arguments} <mixed")


@job("trailing-zeros.gz", "trailing-text.gz", "truncated.gz", "truncated-trailer.gz")
def tails(shop: Workshop) -> Iterator[Made]:
    """A gzip stream with more after it, and with less."""
    gzip = shop.get(GZIP)
    name, plain = shop.plain(BRIEF)
    stream = shop.do(*gzip.command, "-n", "-6", stdin=plain).read_bytes()
    command = f"gzip -n -6 <{name}"
    for word, data, then, whole in (
        ("trailing-zeros", stream + bytes(1000), "; head -c 1000 /dev/zero", name),
        ("trailing-text", stream + b"This is no gzip member.\n", "; echo ...", ""),
        ("truncated", stream[: len(stream) * 4 // 7], " | head -c 57%", ""),
        ("truncated-trailer", stream[:-3], " | head -c -3", ""),
    ):
        path = _file(shop, data, word)
        yield Made(f"{word}.gz", path, "gzip", gzip, command + then, whole)


@job("named.gz", "pigz-named.gz")
def named(shop: Workshop) -> Iterator[Made]:
    """With the file's name and time in the header."""
    tree = shop.tree(shop.plain(BRIEF)[0])
    path = min(path for path in tree.rglob("*") if path.is_file())
    for tool, stream, level in ((GZIP, "named.gz", "-9"), (PIGZ, "pigz-named.gz", "-6")):
        encoder = shop.get(tool)
        made = shop.do(*encoder.command, level, "-c", path.name, cwd=path.parent)
        yield Made(stream, made, "gzip", encoder, f"{encoder.shown} {level} -c {path.name}")


@job("levels-in-turn.gz")
def levels_in_turn(shop: Workshop) -> Iterator[Made]:
    """Members of different levels: one choice for the whole file is the wrong one."""
    gzip, (name, _) = shop.get(GZIP), shop.plain(BRIEF)
    data = b"".join(_thirds(shop, GZIP, ["-n -1", "-n -9", "-n -4"]))
    command = f"split -n 3 {name}; gzip -n -1, -9, -4 of each | cat"
    yield Made("levels-in-turn.gz", _file(shop, data, "joined"), "gzip", gzip, command, name)


@job("padded.xz")
def xz_padding(shop: Workshop) -> Iterator[Made]:
    """Two streams with the padding between and after that the format allows."""
    xz, (name, _) = shop.get(XZ), shop.plain(BRIEF)
    data = b"".join(part + bytes(8) for part in _thirds(shop, XZ, ["-6", "-0", "-6e"]))
    command = f"split -n 3 {name}; xz -6, -0, -6e of each, eight zeros after each"
    yield Made("padded.xz", _file(shop, data, "joined"), "xz", xz, command, name)


@job("skippable.zst", "skippable-last.zst", "sized.zst", "dictionary.zst")
def zstd_frames(shop: Workshop) -> Iterator[Made]:
    """Skippable frames, a frame that states its plain size, one that needs a dictionary."""
    zstd, (name, plain) = shop.get(ZSTD), shop.plain(BRIEF)
    command = f"zstd -3 <{name}"
    stream = shop.do(*zstd.command, "-q", "-3", "-c", stdin=plain).read_bytes()
    first = _file(shop, SKIPPABLE + stream, "first")
    yield Made("skippable.zst", first, "zstd", zstd, f"a skippable frame; {command}", name)
    last = _file(shop, stream + SKIPPABLE, "last")
    yield Made("skippable-last.zst", last, "zstd", zstd, f"{command}; a skippable frame", name)
    sized = shop.do(*zstd.command, "-q", "-3", "-c", plain)
    yield Made("sized.zst", sized, "zstd", zstd, f"zstd -3 {name}", name)
    words = _file(shop, plain.read_bytes()[:4096], "words")
    made = shop.do(*zstd.command, "-q", "-3", "-c", "-D", words, plain)
    command = f"head -c 4096 {name} >words; zstd -3 -D words {name}"
    yield Made("dictionary.zst", made, "zstd", zstd, command)


def _file(shop: Workshop, data: bytes, name: str = "input") -> Path:
    path = shop.bench / name
    path.write_bytes(data)
    os.utime(path, (CLOCK, CLOCK))  # igzip and others put it into the header
    return path
