"""The encoders of one deflate stream: programs and libraries, at their levels and settings.

Settings of one library that only shift its parameters (VARIANT) get the shorter plain file in the
small zoo. The frame is part of the variety: zlib's strategies come in zlib frames, its levels of
memory in none.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.zoo.tools import Debian, Go, Node, Python, Rust
from tests.zoo.workshop import BRIEF, USUAL, VARIANT, Choice, Filter

GZIP = Debian("gzip", "gzip")
PIGZ = Debian("pigz", "pigz")
IGZIP = Debian("igzip", "isal")
LIBDEFLATE = Debian("libdeflate-gzip", "libdeflate-tools")
SEVEN_ZIP = Debian("7z", "p7zip-full")
BGZIP = Debian("bgzip", "tabix")
ZLIB = Python("zlib")
ZLIB_NG = Python("zlib_ng", "zlib-ng==1.1.0")
ISAL = Python("isal", "isal==1.9.1")
PY_LIBDEFLATE = Python("deflate", "deflate==0.9.0")
ZOPFLI = Python("zopfli", "zopfli==0.4.3")
COMPRESS = ("v1.13.6", "v1.14.4", "v1.15.12", "v1.18.4", "v1.20.4")  # klauspost/compress
BUILDAHS = "v1.15.12"  # the version in Debian 12's buildah and umoci
MINIZ = Rust("miniz_oxide")
ZLIB_RS = Rust("zlib-rs")

STRATEGIES = {"filtered": 1, "huffman": 2, "rle": 3, "fixed": 4}
FLUSHES = {"partial": 1, "sync": 2, "full": 3, "block": 5}


def filters() -> Iterator[Filter]:
    """All of them."""
    yield from _programs()
    yield from _zlib()
    yield from _libraries()
    yield from _go()


def _usual(level: int) -> Choice:
    """The levels people ask for get the longer plain file."""
    return USUAL if level in (1, 6, 9) else VARIANT


def _programs() -> Iterator[Filter]:
    for level in range(1, 10):
        yield Filter(f"gzip-{level}.gz", GZIP, f"-n -{level}", choice=_usual(level))
    yield Filter("gzip-9-rsyncable.gz", GZIP, "-n -9 --rsyncable")
    for level in (1, 6, 9):
        choice = USUAL if level == 6 else VARIANT
        yield Filter(f"pigz-{level}.gz", PIGZ, f"-n -p 2 -{level}", choice=choice)
    yield Filter("pigz-i.gz", PIGZ, "-n -p 2 -i")
    yield Filter("pigz-11.gz", PIGZ, "-n -p 2 -11", choice=BRIEF)
    yield Filter("pigz-rsyncable.gz", PIGZ, "-n -p 2 --rsyncable", choice=VARIANT)
    yield Filter("pigz-one-thread.gz", PIGZ, "-n -p 1", choice=VARIANT)
    yield Filter("pigz-z.zz", PIGZ, "-n -p 2 -z", "zlib", VARIANT)
    yield Filter("pigz-comment.gz", PIGZ, "-n -p 2 --comment made-for-tests", choice=VARIANT)
    for level in range(4):
        choice = USUAL if level == 1 else VARIANT
        yield Filter(f"igzip-{level}.gz", IGZIP, f"-{level}", choice=choice)
    for level in (1, 6, 12):
        yield Filter(f"libdeflate-gzip-{level}.gz", LIBDEFLATE, f"-{level} -c", choice=VARIANT)
    yield Filter("7z-5.gz", SEVEN_ZIP, "a -si -so -tgzip -mx=5 anonymous", choice=VARIANT)
    yield Filter("7z-9.gz", SEVEN_ZIP, "a -si -so -tgzip -mx=9 anonymous", choice=BRIEF)
    yield Filter("bgzip.gz", BGZIP, "-c", choice=VARIANT)


def _zlib() -> Iterator[Filter]:
    for level in range(10):
        yield Filter(f"zlib-{level}.gz", ZLIB, str(level), choice=_usual(level))
    for word, number in STRATEGIES.items():
        name, arguments = f"zlib-6-{word}.zz", f"6 wbits=15 strategy={number}"
        yield Filter(name, ZLIB, arguments, "zlib", VARIANT)
    yield Filter("zlib-1-rle.zz", ZLIB, "1 wbits=15 strategy=3", "zlib", VARIANT)
    for bits in range(9, 15):
        yield Filter(f"zlib-6-window{bits}.zz", ZLIB, f"6 wbits={bits}", "zlib", VARIANT)
    yield Filter("zlib-1-window9.zz", ZLIB, "1 wbits=9", "zlib", VARIANT)
    for memory in range(1, 10):
        name, arguments = f"zlib-6-memory{memory}.deflate", f"6 wbits=-15 memory={memory}"
        yield Filter(name, ZLIB, arguments, "deflate", VARIANT)
    yield Filter("zlib-9-memory9.deflate", ZLIB, "9 wbits=-15 memory=9", "deflate", VARIANT)
    for word, number in FLUSHES.items():
        arguments = f"6 flush={number} every=10007"
        yield Filter(f"zlib-6-{word}-flush.gz", ZLIB, arguments, choice=VARIANT)
    yield Filter("zlib-1-sync-flush.gz", ZLIB, "1 flush=2 every=4099", choice=VARIANT)


def _libraries() -> Iterator[Filter]:
    for level in (1, 2, 3, 6, 9):
        choice = USUAL if level in (1, 2, 6) else VARIANT
        yield Filter(f"zlibng-{level}.gz", ZLIB_NG, str(level), choice=choice)
    for level in range(4):
        yield Filter(f"isal-{level}.gz", ISAL, str(level), choice=VARIANT)
    for level in (1, 6, 9, 12):
        choice = USUAL if level in (1, 6) else VARIANT
        yield Filter(f"libdeflate-{level}.gz", PY_LIBDEFLATE, str(level), choice=choice)
    yield Filter("zopfli.gz", ZOPFLI, "5", choice=BRIEF)
    for level in (1, 6, 9):
        choice = USUAL if level == 6 else VARIANT
        yield Filter(f"node-{level}.gz", Node(), str(level), choice=choice)
        yield Filter(f"miniz-oxide-{level}.gz", MINIZ, str(level), choice=VARIANT)
        yield Filter(f"zlib-rs-{level}.gz", ZLIB_RS, str(level), choice=VARIANT)


def _go() -> Iterator[Filter]:
    for level in (-1, 1, 6, 9):
        name = "go-default.gz" if level < 0 else f"go-{level}.gz"
        yield Filter(name, Go(), f"std {level}", choice=USUAL if level in (1, 6) else VARIANT)
    yield Filter("go-huffman.gz", Go(), "std -2", choice=VARIANT)
    for version in COMPRESS:
        tool, buildahs = Go(version), version == BUILDAHS
        for level in (1, 3, 5, 6, 9):
            name = f"klauspost-{level}-{version}.gz"
            choice = USUAL if buildahs and level in (1, 5) else VARIANT
            yield Filter(name, tool, f"klauspost {level}", choice=choice)
        for level in (-1, 1, 9):
            word = "default" if level < 0 else str(level)
            choice = USUAL if buildahs and level < 0 else VARIANT
            yield Filter(f"pgzip-{word}-{version}.gz", tool, f"pgzip {level}", choice=choice)
    tool = Go(BUILDAHS)
    for level in (2, 4, 7, 8, -2):
        name = f"klauspost-{level}-{BUILDAHS}.gz".replace("--2", "-huffman")
        yield Filter(name, tool, f"klauspost {level}", choice=VARIANT)
    yield Filter("pgzip-default-blocks256k.gz", tool, "pgzip -1 262144")
    yield Filter("pgzip-default-blocks64k.gz", tool, "pgzip -1 65536", choice=VARIANT)
