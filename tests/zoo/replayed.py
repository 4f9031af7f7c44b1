"""bzip2, xz and zstd streams: the formats that are rebuilt by running the encoder again."""

from __future__ import annotations

from collections.abc import Iterator

from tests.zoo.deflaters import COMPRESS
from tests.zoo.tools import Debian, Go, Python
from tests.zoo.workshop import BRIEF, USUAL, VARIANT, Choice, Filter

BZIP2 = Debian("bzip2", "bzip2")
PBZIP2 = Debian("pbzip2", "pbzip2")
LBZIP2 = Debian("lbzip2", "lbzip2")
XZ = Debian("xz", "xz-utils")
PIXZ = Debian("pixz", "pixz")
ZSTD = Debian("zstd", "zstd")
PZSTD = Debian("pzstd", "zstd")
ZSTANDARD = Python("zstandard", "zstandard==0.25.0")

# What each is called after the encoder's name, what it is told, and the plain file it gets.
XZ_SETTINGS: tuple[tuple[str, str, Choice], ...] = (
    ("0", "-0", VARIANT),
    ("6", "-6", USUAL),
    ("9", "-9", BRIEF),
    ("6e", "-6e", BRIEF),
    ("6-two-threads", "-6 -T2", VARIANT),
    ("6-blocks64k", "-6 --block-size=65536", VARIANT),
    ("6-two-threads-blocks32k", "-6 -T2 --block-size=32768", BRIEF),
    ("6-block-list", "-6 --block-list=10000,20000,0", BRIEF),
    ("1-no-check", "-1 --check=none", BRIEF),
    ("1-crc32", "-1 --check=crc32", BRIEF),
    ("1-sha256", "-1 --check=sha256", BRIEF),
    ("x86", "--x86 --lzma2=preset=6", BRIEF),
    ("delta", "--delta=dist=4 --lzma2=preset=6,lc=0,pb=0", BRIEF),
)
ZSTD_SETTINGS: tuple[tuple[str, str, Choice], ...] = (
    ("fast1", "--fast=1", VARIANT),
    ("1", "-1", VARIANT),
    ("3", "-3", USUAL),
    ("9", "-9", VARIANT),
    ("19", "-19", BRIEF),
    ("22", "--ultra -22", BRIEF),
    ("3-long27", "-3 --long=27", VARIANT),
    ("3-two-threads", "-3 -T2", VARIANT),
    ("3-one-thread", "-3 --single-thread", VARIANT),
    ("3-rsyncable", "-3 -T2 --rsyncable", VARIANT),
    ("3-no-check", "-3 --no-check", BRIEF),
)


def filters() -> Iterator[Filter]:
    """All of them."""
    for level in (1, 9):
        yield Filter(f"bzip2-{level}.bz2", BZIP2, f"-{level}", "bzip2", VARIANT)
    yield Filter("bzip2-1-whole.bz2", BZIP2, "-1", "bzip2")
    yield Filter("pbzip2-1.bz2", PBZIP2, "-c -p2 -b1 -1", "bzip2")
    yield Filter("lbzip2-1.bz2", LBZIP2, "-c -n 2 -1", "bzip2")
    for word, arguments, choice in XZ_SETTINGS:
        yield Filter(f"xz-{word}.xz", XZ, f"{arguments} -c", "xz", choice)
    yield Filter("xz-6.lzma", XZ, "--format=lzma -6 -c", "lzma", BRIEF)
    yield Filter("pixz.xz", PIXZ, "-t -p 2", "xz", BRIEF)
    yield from _zstd()


def _zstd() -> Iterator[Filter]:
    for word, arguments, choice in ZSTD_SETTINGS:
        yield Filter(f"zstd-{word}.zst", ZSTD, f"-q -c {arguments}", "zstd", choice)
    yield Filter("pzstd-3.zst", PZSTD, "-q -p 2 -3 -c", "zstd", VARIANT)
    for level in (3, 19):
        yield Filter(f"zstandard-{level}.zst", ZSTANDARD, str(level), "zstd", BRIEF)
    for level in (1, 3, 9, 11):
        yield Filter(f"klauspost-{level}.zst", Go(), f"zstd {level}", "zstd", VARIANT)
    yield Filter(f"klauspost-9-{COMPRESS[0]}.zst", Go(COMPRESS[0]), "zstd 9", "zstd", VARIANT)
