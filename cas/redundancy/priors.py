"""By how much content compresses that nothing is known of but its label: zstd level 9, in frames of
32 MiB, as ratios of compressed to plain size.

Measured, not thought up: `python -m tests.bench.redundancy STORE` prints what `learn` makes of a
store of the corpus (tests/tools/make_corpus.sh, small and full) that a sync at level 9 filled.
Rounded from there, with what is common knowledge of formats added (`PACKED`). They are a beginning:
what a store holds counts for more as soon as it holds some MiB of a label.
"""

from __future__ import annotations

from cas.agent.pace import COSTS, FITS, LEVELS
from cas.redundancy.labels import Label, Sort, Width

SKELETON, FILL = 0.025, 0.04

# Of what the source's own compressor made of it. Small files find their like in the frame's
# history, which deflate with its 32 KiB does not.
LEVEL = {Width.SMALL: 0.62, Width.MIDDLE: 0.83, Width.LARGE: 0.64}

UNKNOWN = {Width.SMALL: 0.25, Width.MIDDLE: 0.3, Width.LARGE: 0.35}  # of plain files

TEXT = 0.21
BINARY = 0.33
DENSE = 0.97
PACKED = frozenset(
    b"7z apk bz2 deb flac gguf gif gz jar jpeg jpg mkv mov mp3 mp4 npz onnx png pt pth rar rpm "
    b"safetensors tar.bz2 tar.gz tar.xz tar.zst tgz webm webp whl xz zip zst".split()
)  # formats that are compressed, or numbers that do not compress
KINDS = {
    **dict.fromkeys(
        b"c cc cpp css csv cu go h hpp html java js json log lua md patch php pl py rb rs sh sql "
        b"svg tex toml ts tsv txt xml yaml yml".split(),
        TEXT,
    ),
    **dict.fromkeys(b"csv tsv".split(), 0.3),
    **dict.fromkeys(b"log".split(), 0.2),
    **dict.fromkeys(b"txt".split(), 0.07),  # most of it is written by programs
    **dict.fromkeys(b"a dll dylib elf exe ko o pdb so wasm".split(), BINARY),
    **dict.fromkeys(PACKED, DENSE),
}
# Weights and the like when it is large, tables and small models when it is not.
BIN = {Width.SMALL: 0.4, Width.MIDDLE: 0.6, Width.LARGE: 0.95}

# What the small corpus came to at a level of zstd beside level 9, its weights left out; between
# them the next lower one counts. What does not compress is the same at all of them.
BY_LEVEL = {1: 1.23, 3: 1.13, 6: 1.014, 9: 1.0, 12: 0.994, 17: 0.95, 19: 0.92}
FASTEST = 230e6  # plain bytes a second at the first of the levels that a link chooses from
USUAL = 0.28  # of plain bytes, that cross the wire
HARDLY = 0.9  # ratios from which a level makes no difference


def prior(label: Label, level: int) -> float:
    """The ratio to expect of chunks with `label` at a level of zstd, before any were seen."""
    ratio = _at_nine(label)
    if ratio >= HARDLY:
        return ratio
    return ratio * BY_LEVEL[max(known for known in BY_LEVEL if known <= max(1, level))]


def _at_nine(label: Label) -> float:
    if label.sort is Sort.SKELETON:
        return SKELETON
    if label.sort is Sort.FILL:
        return FILL
    if label.sort is Sort.DENSE:
        return 1.0
    if label.sort is Sort.LEVEL:
        return min(1.0, label.ratio * LEVEL[label.width]) if label.ratio < HARDLY else 1.0
    if label.kind == b"bin":
        return BIN[label.width]
    return KINDS.get(label.kind, UNKNOWN[label.width])


def level_at(rate: float) -> int:
    """The level that the agent will come to where the link chooses (`cas/agent/pace.py`), given its
    rate in wire bytes a second."""
    needed = FITS * USUAL * FASTEST / rate  # of the first level's time for a plain byte
    return max((level for level, cost in zip(LEVELS, COSTS, strict=True) if cost <= needed),
               default=LEVELS[0])  # fmt: skip
