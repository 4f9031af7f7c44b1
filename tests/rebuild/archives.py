"""Archives made at random, with codecs that are toys: what a program must write is known."""

from __future__ import annotations

import random
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from cas.chunker import Chunker
from cas.codec.base import Piece
from cas.entry import Content
from cas.errors import FormatError, NotHeldError
from cas.ids import Digest, digest_of
from cas.interfaces import Location, Read
from cas.program import Codec
from cas.unpack.builder import Builder

TOYS = {
    Codec.DEFLATE: ("tests.rebuild.archives", "XorJoiner"),
    Codec.XZ: ("tests.rebuild.archives", "ZlibJoiner"),
}


class XorJoiner:
    """Every span has a key, its side information; its bytes are those of the plain ones, xored."""

    def __init__(self, params: bytes, pool: Executor) -> None:
        if params != b"xor":
            raise FormatError("parameters that mean nothing")
        self._pool = pool
        self._plain = bytearray()
        self._steps: deque[tuple[int, bytes] | bytes] = deque()

    def write(self, plain: bytes) -> Sequence[Piece]:
        self._plain += plain
        return self._ready()

    def span(self, plain: int, side: bytes) -> Sequence[Piece]:
        if len(side) != 1:
            raise FormatError("a key has one byte")
        self._steps.append((plain, side))
        return self._ready()

    def verbatim(self, data: bytes) -> Sequence[Piece]:
        self._steps.append(data)
        return self._ready()

    def end(self) -> Sequence[Piece]:
        if self._plain or self._steps:
            raise FormatError("plain bytes or spans are left over")
        return []

    def _ready(self) -> list[Piece]:
        pieces: list[Piece] = []
        while self._steps:
            step = self._steps[0]
            if isinstance(step, bytes):
                pieces.append(step)
            elif step[0] <= len(self._plain):
                pieces.append(self._pool.submit(xored, bytes(self._plain[: step[0]]), step[1]))
                del self._plain[: step[0]]
            else:
                break
            self._steps.popleft()
        return pieces


class ZlibJoiner:
    """Streams: all is one span, and comes out as it is written."""

    def __init__(self, params: bytes, pool: Executor) -> None:
        if params != b"6":
            raise FormatError("parameters that mean nothing")
        self._squeezer = zlib.compressobj(6)
        self._left = 0

    def write(self, plain: bytes) -> Sequence[Piece]:
        self._left += len(plain)
        return [self._squeezer.compress(plain)]

    def span(self, plain: int, side: bytes) -> Sequence[Piece]:
        self._left -= plain
        return []

    def verbatim(self, data: bytes) -> Sequence[Piece]:
        raise FormatError("nothing lies between spans here")

    def end(self) -> Sequence[Piece]:
        if self._left:
            raise FormatError("plain bytes or spans are left over")
        return [self._squeezer.flush()]


def xored(data: bytes, key: bytes) -> bytes:
    return data.translate(bytes(byte ^ key[0] for byte in range(256)))


Step = Callable[[Builder], object]


@dataclass
class Maker:
    """Makes one archive: `steps` for a builder, while the bytes are put together."""

    rng: random.Random
    chunks: dict[Digest, bytes] = field(default_factory=dict)
    pool: list[bytes] = field(default_factory=list)  # contained files, to come again
    biggest: int = 40_000

    def level(self, number: int) -> tuple[list[Step], bytes]:
        steps: list[Step] = []
        plain = b""
        for _ in range(self.rng.randrange(1, 6 - number // 2)):
            more, data = self._member(number)
            steps += more
            plain += data
        return steps, plain

    def _member(self, number: int) -> tuple[list[Step], bytes]:
        kind = self.rng.randrange(5)
        if kind == 0:
            data = self.rng.randbytes(self.rng.randrange(1, 600))
            return [lambda b: b.skeleton(data)], data
        if kind <= 2 or number == 8:
            return self._file()
        return self.codec(number + 1)

    def _file(self) -> tuple[list[Step], bytes]:
        if self.pool and self.rng.random() < 0.5:
            data = self.rng.choice(self.pool)
        else:
            data = self.rng.randbytes(self.rng.randrange(self.biggest))
            self.pool.append(data)
        return self.file(data)

    def file(self, data: bytes) -> tuple[list[Step], bytes]:
        """A contained file."""
        chunker = Chunker()
        for chunk in (*chunker.feed(data), *chunker.finish()):
            self.chunks[digest_of(chunk)] = bytes(chunk)

        def content(builder: Builder) -> None:
            builder.content(data)
            builder.end_content()

        return [content], data

    def codec(self, number: int) -> tuple[list[Step], bytes]:
        """A level, and what its codec makes of it."""
        inner, plain = self.level(number)
        if self.rng.random() < 0.5:
            codec, params, (own, made) = Codec.DEFLATE, b"xor", self._xor(number, plain)
        else:
            codec, params, made = Codec.XZ, b"6", zlib.compress(plain, 6)
            own = [lambda b: b.span(number, len(plain), b"")]
        begin: Step = lambda b: b.begin(codec, params)  # noqa: E731  # as all the others are
        return [begin, *self.mixed(inner, own), lambda b: b.end(len(made))], made

    def mixed(self, inner: list[Step], own: list[Step]) -> list[Step]:
        """Both, each in its order."""
        steps: list[Step] = []
        while inner or own:
            from_own = own and (not inner or self.rng.random() < 0.5)
            steps.append((own if from_own else inner).pop(0))
        return steps

    def _xor(self, number: int, plain: bytes) -> tuple[list[Step], bytes]:
        steps: list[Step] = []
        made = b""
        while plain or self.rng.random() < 0.2:
            key = self.rng.randbytes(1)
            taken, plain = self.cut(plain)
            steps.append(partial(_span, number, len(taken), key))
            made += xored(taken, key)
            if self.rng.random() < 0.3:
                between = self.rng.randbytes(self.rng.randrange(1, 40))
                steps.append(partial(_verbatim, number, between))
                made += between
        return steps, made

    def cut(self, plain: bytes) -> tuple[bytes, bytes]:
        at = self.rng.randrange(len(plain) + 1)
        if len(plain) < 1000 or self.rng.random() < 0.2:
            at = len(plain)
        return plain[:at], plain[at:]


@dataclass
class Made:
    """An archive, and what a store needs of it; `recipes` encoded, in order."""

    data: bytes
    content: Content
    objects: dict[Digest, bytes]
    chunks: dict[Digest, bytes]

    @property
    def recipes(self) -> list[bytes]:
        return [self.objects[part] for part in self.content.parts]

    @property
    def skeletons(self) -> dict[Digest, bytes]:
        """What the agent keeps besides recipes."""
        return {id_: data for id_, data in self.objects.items() if id_ not in self.content.parts}


def _span(level: int, plain: int, side: bytes, builder: Builder) -> None:
    builder.span(level, plain, side)


def _verbatim(level: int, data: bytes, builder: Builder) -> None:
    builder.verbatim(level, data)


def build(steps: Sequence[Step], data: bytes, chunks: dict[Digest, bytes]) -> Made:
    """The recipes of an archive that `steps` describe."""
    objects: dict[Digest, bytes] = {}
    taken = 0
    builder = Builder(objects.__setitem__, lambda: taken)
    for number, step in enumerate(steps):
        taken = len(data) * (number + 1) // len(steps)
        step(builder)
    return Made(data, builder.finish(digest_of(data)), objects, chunks)


def random_archive(rng: random.Random, biggest: int = 40_000) -> Made:
    """One that is an archive for sure: a skeleton comes first."""
    maker = Maker(rng, biggest=biggest)
    steps, data = maker.level(0)
    head: Step = lambda b: b.skeleton(b"head")  # noqa: E731  # as all the others are
    return build([head, *steps], b"head" + data, maker.chunks)


class DictSource:
    """A `ContentSource` over a dict, all in one frame."""

    def __init__(self, *made: Made) -> None:
        self.held: dict[Digest, bytes] = {}
        for one in made:
            self.held |= one.chunks | one.objects

    def object(self, object_id: Digest) -> bytes:
        return self.chunk(object_id)

    def chunk(self, chunk_id: Digest) -> bytes:
        if chunk_id not in self.held:
            raise NotHeldError("not held", where=chunk_id.hex())
        return self.held[chunk_id]

    def locate(self, chunk_ids: Sequence[Digest]) -> list[Location | None]:
        self._ids = list(self.held)
        numbers = {id_: number for number, id_ in enumerate(self._ids)}
        return [
            Location(0, numbers[id_], 0, len(self.held[id_])) if id_ in numbers else None
            for id_ in chunk_ids
        ]

    def read(self, location: Location) -> memoryview:
        return memoryview(self.held[self._ids[location.segment]])

    def stands_alone(self, location: Location) -> bool:
        return location.segment % 3 == 0

    @contextmanager
    def scan(self, start: Location) -> Iterator[Read]:
        yield self.read
