"""How far taking apart goes. No archive can make it take memory, disk or time without end.

Past a limit nothing fails: what is left stays as it is, and a note says so. The limits depend on
the archive alone, never on the clock, so that the same archive has the same recipe every time.
"""

from __future__ import annotations

from cas.program import DEPTH_LIMIT, Codec

NESTED_LIMIT = 16  # archives in each other; of those, as many codecs as a program may have levels

# Below so many bytes a file is cheaper as a chunk than as a recipe with two. Measured with manual
# pages: of 2 to 3 KiB they take 18 % less at level 1, 32 % at level 3. That is without the index,
# which eats up what smaller ones gain. Inside an archive a member costs a few operations only.
LEAST_FILE = 2048
LEAST_MEMBER = 512
LEAST_STREAM = 128  # bytes of a compressed member; measured with a jar and a wheel of small files

LEAST_NOTED = 64 * 1024  # bytes: what is smaller and stays as it is needs no explanation
NOTES_ALIKE = 20  # with the same reason

# A smaller hole, in a file or in a sparse file inside an archive, is zeros of one run with what is
# around it: so both have the same chunks.
HOLE_LEAST = 2**20

TINY = 128  # bytes: a chunk's id and its places in lists and indexes cost as much
FRAME_LIMIT = 4096  # bytes between members that nobody understands: longer ones are content

# What all streams of a file may hold together, and one of them by itself, in plain bytes. A layer
# of an image is seldom more than 20 times as large as its compressed form; deflate can do 1032.
EXPANSION_FREE, EXPANSION = 64 * 2**20, 100
STREAM_FREE, STREAM_EXPANSION = 16 * 2**20, 200

# Compressed streams, of which each costs some work however short it is: of one file; and how often
# a parser begins again on what follows an archive.
STREAMS_FREE, STREAM_SIZE = 100_000, 2048
RESTARTS = 64

# Skeletons are kept by whoever takes apart, until they are asked for.
SKELETON_FREE, SKELETON_SHARE = 64 * 2**20, 2  # and as much as half of the file

# Of a processor's time for a plain byte: a codec that needs more is not asked. That of xz -6 takes
# 500, and a link of 400 kB/s brings as much of a tarball in the time that it takes to unpack it.
PATIENCE_NS = 600

# The same for any file and each byte of it, by what codecs need on the average. So a gigabyte
# of .tar.xz may take half an hour; what comes after that stays as it is.
WORK_FREE_NS, WORK_NS = 300 * 10**9, 2000
COSTS_NS = {Codec.DEFLATE: 20, Codec.BZIP2: 80, Codec.XZ: 500, Codec.ZSTD: 20}


class Budget:
    """What is left for one file of `size` bytes."""

    def __init__(self, size: int, patience_ns: int = PATIENCE_NS) -> None:
        self.plain_left = EXPANSION_FREE + EXPANSION * size
        self.skeleton_left = SKELETON_FREE + size // SKELETON_SHARE
        self.streams_left = STREAMS_FREE + size // STREAM_SIZE
        self.patience_ns = patience_ns
        self.work_left_ns = WORK_FREE_NS + WORK_NS * size

    def plain(self, count: int, codec: Codec) -> None:
        """Count plain bytes of a stream, and the work that they are."""
        self.plain_left -= count
        self.work_left_ns -= count * COSTS_NS[codec]

    def skeleton(self, count: int) -> None:
        """Count bytes of skeleton."""
        self.skeleton_left -= count

    def stream(self) -> bool:
        """Count a stream; whether there may be another one."""
        self.streams_left -= 1
        return self.streams_left >= 0

    @property
    def is_spent(self) -> bool:
        """Whether nothing more may be taken apart."""
        return min(self.plain_left, self.skeleton_left, self.work_left_ns) <= 0


def is_too_much(plain: int, compressed: int) -> bool:
    """Whether a stream of so many bytes holds more than any honest one does."""
    return plain > STREAM_FREE + STREAM_EXPANSION * compressed


def is_too_deep(levels: int, nested: int) -> bool:
    """Whether no further archive may be taken apart inside `nested` ones, `levels` of them
    compressed."""
    return levels >= DEPTH_LIMIT or nested >= NESTED_LIMIT
