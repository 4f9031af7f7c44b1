"""An archive's program writes the archive again, or says what is wrong with it."""

from __future__ import annotations

import dataclasses
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cas import wire
from cas.archive import MAGIC, ArchiveRecipe, decode_archive_recipe, encode_archive_recipe
from cas.codec import registry
from cas.entry import Content
from cas.errors import DamageError, FormatError, LimitError, NotHeldError
from cas.ids import digest_of
from cas.program import Begin, Codec, End, Op, Skeleton, Span, Verbatim, encode_op
from cas.rebuild import chunks, levels
from cas.rebuild.program import run_program
from cas.rebuild.run import block_data, content_blocks
from cas.recipe import Copy, encode_recipe, single_chunk
from cas.unpack import builder
from tests.rebuild.archives import TOYS, DictSource, Made, build, random_archive

SEEDS = st.integers(0, 2**32)


@pytest.fixture(autouse=True, scope="module")
def _toys() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for codec, place in TOYS.items():
            patch.setitem(registry.JOINERS, codec, place)
        yield


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every limit that only costs waiting is reached, and every archive has many parts."""
    monkeypatch.setattr(builder, "PART_OPS", 3)
    monkeypatch.setattr(chunks, "WINDOW_LEAST", 30_000)
    monkeypatch.setattr(chunks, "WINDOW_CHUNKS", 3)
    monkeypatch.setattr(levels, "PIECES_AHEAD", 1)
    monkeypatch.setattr(levels, "QUEUED_MOST", 20_000)


def rebuilt(content: Content, source: DictSource) -> bytes:
    blocks = content_blocks(content, source)
    return b"".join(piece for block in blocks for piece in block_data(block))


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_any_archive_is_rebuilt(seed: int) -> None:
    made = random_archive(random.Random(seed))
    assert made.data == rebuilt(made.content, DictSource(made))


@settings(max_examples=60, deadline=None, suppress_health_check=[
    HealthCheck.function_scoped_fixture, HealthCheck.too_slow])  # fmt: skip
@given(SEEDS)
def test_so_it_is_in_many_parts_and_little_memory(small: None, seed: int) -> None:
    made = random_archive(random.Random(seed))
    assert made.data == rebuilt(made.content, DictSource(made))


def mutated(rng: random.Random, ops: list[Op]) -> None:
    """Change the program in one place, mostly so that its sums still come out."""
    at = rng.randrange(len(ops))
    other = rng.randrange(len(ops))
    kind = rng.randrange(6)
    if kind == 0:
        ops[at], ops[other] = ops[other], ops[at]
    elif kind == 1:
        ops.insert(at, ops.pop(other))
    elif kind == 2:
        del ops[at]
    elif kind == 3:
        ops.insert(at, ops[other])
    else:
        ops[at] = changed(rng, ops[at])


def changed(rng: random.Random, op: Op) -> Op:
    def more(number: int) -> int:
        return max(0, number + rng.choice([-1, 1, -number, 2**20, 2**40, rng.randrange(99)]))

    match op:
        case Span(level, plain, side):
            return rng.choice([Span(level, more(plain), side), Span(more(level), plain, side),
                               Span(level, plain, more(side))])  # fmt: skip
        case Verbatim(level, size):
            return rng.choice([Verbatim(more(level), size), Verbatim(level, more(size))])
        case Begin(codec, params):
            other = Begin(rng.choice([Codec.DEFLATE, Codec.XZ]), params)
            return rng.choice([other, Begin(codec, more(params))])
        case End(size):
            return End(more(size))
        case Skeleton(size):
            return Skeleton(more(size))
        case Copy(count):
            return Copy(more(count))


def with_program(made: Made, part: int, ops: list[Op]) -> Made:
    """The same archive with another program in a part, be it one that no reader accepts."""
    recipe = decode_archive_recipe(made.recipes[part])
    encoded = MAGIC + wire.encode([
        recipe.size, recipe.digest, list(recipe.lengths), b"".join(recipe.ids), recipe.skeleton,
        [encode_op(op) for op in ops], [],
    ])  # fmt: skip
    return with_part(made, part, encoded)


def with_part(made: Made, part: int, encoded: bytes) -> Made:
    parts = list(made.content.parts)
    parts[part] = digest_of(encoded)
    content = dataclasses.replace(made.content, parts=tuple(parts))
    objects = made.objects | {parts[part]: encoded}
    return dataclasses.replace(made, content=content, objects=objects)


@settings(max_examples=400, deadline=None)
@given(SEEDS)
def test_a_changed_program_is_an_error_or_no_change(seed: int) -> None:
    rng = random.Random(seed)
    made = random_archive(rng, biggest=3000)
    ops = list(decode_archive_recipe(made.recipes[0]).program)
    for _ in range(rng.randrange(1, 3)):
        if ops:
            mutated(rng, ops)
    wrong = with_program(made, 0, ops)
    with suppress(FormatError, DamageError):
        assert made.data == rebuilt(wrong.content, DictSource(wrong))


def archive(*ops: Op, data: bytes = b"", skeleton: bytes = b"", copied: bytes = b"") -> Made:
    """An archive with this program and at most one chunk of each sort."""
    some = [chunk for chunk in (skeleton, copied) if chunk]
    recipe = ArchiveRecipe(
        len(data), digest_of(data), tuple(map(digest_of, some)), tuple(map(len, some)),
        len(some[:1]) if skeleton else 0, ops,
    )  # fmt: skip
    encoded = encode_archive_recipe(recipe)
    content = Content(len(data), digest_of(data), len(some), (digest_of(encoded),))
    objects = {digest_of(encoded): encoded}
    return Made(data, content, objects, {digest_of(chunk): chunk for chunk in some})


XOR = Begin(Codec.DEFLATE, 3)
WRONG = [
    ("does not end", archive(XOR, skeleton=b"xor")),
    ("did not begin", archive(End(0))),
    ("level 1, which is not there", archive(Span(1, 0, 0))),
    ("level 2, which is not there", archive(XOR, Verbatim(2, 1), End(0), skeleton=b"xor!")),
    ("left over", archive(XOR, Copy(1), End(0), skeleton=b"xor", copied=b"a")),
    ("left over", archive(XOR, Span(1, 1, 1), End(0), skeleton=b"xor!")),
    ("compressed size", archive(XOR, Skeleton(1), Span(1, 1, 1), End(2), skeleton=b"xor!!")),
    ("mean nothing", archive(Begin(Codec.DEFLATE, 2), End(0), skeleton=b"no")),
    ("more than 8 levels", archive(*(XOR,) * 9, *(End(0),) * 9, skeleton=b"xor" * 9)),
    ("over the limit", archive(XOR, Span(1, 2**40, 1), End(0), skeleton=b"xor!")),
    ("cannot be rebuilt here", archive(Begin(Codec.ZSTD, 0), End(0))),
]  # fmt: skip


@pytest.mark.parametrize(("words", "made"), WRONG, ids=[words for words, _ in WRONG])
def test_a_wrong_program_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, words: str, made: Made
) -> None:
    monkeypatch.setitem(registry.JOINERS, Codec.ZSTD, ("cas.codec.none_such", "Joiner"))
    with pytest.raises(FormatError, match=words):
        rebuilt(made.content, DictSource(made))


def test_what_waits_at_a_level_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = archive(XOR, Copy(1), End(9), skeleton=b"xor", copied=b"too early")
    monkeypatch.setattr(levels, "PLAIN_LIMIT", 8)
    with pytest.raises(LimitError, match="plain bytes before their spans"):
        rebuilt(waits.content, DictSource(waits))
    spans = archive(XOR, *(Span(1, 1, 0),) * 9, End(0), skeleton=b"xor")
    monkeypatch.setattr(levels, "SPANS_LIMIT", 8)
    monkeypatch.setattr("tests.rebuild.archives.XorJoiner.span", lambda *_: [])
    with pytest.raises(LimitError, match="spans before their plain bytes"):
        rebuilt(spans.content, DictSource(spans))


def test_a_part_of_the_other_sort_is_an_error() -> None:
    made = random_archive(random.Random(3))
    plain = DictSource(made)
    chunk = next(iter(made.chunks))
    recipe = encode_recipe(single_chunk(chunk, len(made.chunks[chunk])))
    plain.held[digest_of(recipe)] = recipe
    for parts in (
        (*made.content.parts, digest_of(recipe)),
        (digest_of(recipe), *made.content.parts),
    ):
        mixed = Content(2**40, made.content.digest, 1, parts)
        with pytest.raises(FormatError, match="has a part that is"):
            rebuilt(mixed, plain)


def test_what_is_not_held_or_not_right_is_named() -> None:
    made = random_archive(random.Random(4))
    chunk = list(made.chunks)[-1]
    source = DictSource(made)
    length = len(source.held.pop(chunk))
    with pytest.raises(NotHeldError, match=chunk.hex()):
        rebuilt(made.content, source)
    source.held[chunk] = bytes(length + 1)
    with pytest.raises(FormatError, match="wrong length for a chunk"):
        rebuilt(made.content, source)


def test_another_archive_is_damage() -> None:
    made = archive(Skeleton(3), data=b"not", skeleton=b"yes")
    with pytest.raises(DamageError, match="rebuild something else"):
        rebuilt(made.content, DictSource(made))
    longer = archive(Skeleton(3), data=b"no", skeleton=b"yes")
    with pytest.raises(DamageError, match="come out at its size"):
        rebuilt(longer.content, DictSource(longer))


def test_whoever_stops_early_leaves_no_thread_behind() -> None:
    steps: list[Callable[[builder.Builder], object]] = [lambda b: b.skeleton(bytes(2**20))] * 9
    made = build(steps, bytes(9 * 2**20), {})
    before = threading.active_count()
    with closing(run_program(map(decode_archive_recipe, made.recipes), DictSource(made))) as pieces:
        next(pieces)
        assert threading.active_count() > before
    assert threading.active_count() == before
