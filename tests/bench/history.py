"""What the history within a frame saves: the corpus's distinct chunks, in the order in which they
first come, compressed at the same level each by itself, in segments of 1 MiB without history, in
frames of 4 MiB, and as cas does it, in frames of 32 MiB flushed every 1 MiB. Archives are unpacked
first. Chunks that do not compress are left out: they are stored as they are each way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from cas.chunker import cut_whole
from cas.frame import (
    FRAME_LIMIT,
    SEGMENT_SIZE,
    FrameEncoder,
    Sampler,
    compress_small,
)
from cas.ids import Digest, digest_of
from tests.bench.corpus import files, tiers, unpacked
from tests.bench.verdict import MIB, Setting, Verdict

OURS = "32 MiB"
# Plain bytes after which history begins anew.
HISTORIES = {"1 MiB": MIB, "4 MiB": 4 * MIB, OURS: FRAME_LIMIT}


def run(setting: Setting) -> list[Verdict]:
    """See `Benchmark`."""
    chunks = list(_compressible(_distinct(tiers(setting.corpus))))
    if setting.quick:
        chunks = chunks[: max(1, len(chunks) // 4)]
    plain = sum(map(len, chunks))
    verdicts = []
    for level in (3,) if setting.quick else (3, 9, 19):
        sizes = {"each chunk": sum(len(compress_small(chunk, level)) for chunk in chunks)}
        for name, history in HISTORIES.items():
            sizes[name] = compressed_size(chunks, level, history)
        verdicts.append(_verdict(level, plain, len(chunks), sizes))
    return verdicts


def _verdict(level: int, plain: int, count: int, sizes: Mapping[str, int]) -> Verdict:
    others = [size for name, size in sizes.items() if name != OURS]
    gains = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in sizes.items())
    return Verdict(
        f"frames with 32 MiB of history / best without, level {level}",
        sizes[OURS] / min(others),
        1.0,
        detail=f"{count} chunks, {plain / 1e6:.1f} MB: {gains}",
        facts={"level": level, "chunks": count, "bytes": plain, "sizes": dict(sizes)},
    )


def _distinct(corpus: Mapping[str, Path]) -> Iterator[bytes]:
    seen: set[Digest] = set()
    for directory in corpus.values():
        for path in files(directory):
            for stream in unpacked(path.read_bytes()):
                yield from _new_chunks(stream, seen)


def _new_chunks(stream: bytes, seen: set[Digest]) -> Iterator[bytes]:
    at = 0
    for length in cut_whole(stream):
        chunk = stream[at : at + length]
        at += length
        digest = digest_of(chunk)
        if digest not in seen:
            seen.add(digest)
            yield chunk


def _compressible(chunks: Iterator[bytes]) -> Iterator[bytes]:
    sampler = Sampler()
    return (chunk for chunk in chunks if sampler.is_compressible(chunk))


def compressed_size(chunks: list[bytes], level: int, history: int) -> int:
    """The bytes of `chunks` in frames that end once they hold `history` plain bytes, flushed
    about every MiB."""
    return sum(map(len, _payloads(chunks, level, history)))


def _payloads(chunks: list[bytes], level: int, history: int) -> Iterator[bytes]:
    encoder = FrameEncoder(level)
    segment: list[bytes] = []
    size = 0
    for chunk in chunks:
        segment.append(chunk)
        size += len(chunk)
        ends = encoder.plain_size + size >= history
        if ends or size >= SEGMENT_SIZE:
            yield encoder.segment(segment, last=ends)
            segment, size = [], 0
        if ends:
            encoder = FrameEncoder(level)
    if segment:
        yield encoder.segment(segment, last=True)
