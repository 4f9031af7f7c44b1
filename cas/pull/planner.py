"""Which chunks of a tier are missing here: pages come in, wants and totals go out.

A page whose recipes are not all here waits for them. The memory of a whole tier's chunks is one
set of 64-bit numbers, hashes of their ids: enough to count each chunk once. They are keyed with
what only this process knows (SipHash, PEP 456), so nobody can make two chunks that are taken for
one, of which the second would never be asked for.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import or_
from typing import Protocol

from cas.archive import AnyRecipe, ArchiveRecipe, decode_any_recipe
from cas.entry import Content, Entry
from cas.errors import PeerError
from cas.ids import DIGEST_SIZE, Digest
from cas.interfaces import Index
from cas.page import decode_page, page_id
from cas.recipe import recipe_id

_WIDE_HASHES = sys.hash_info.width >= 64  # else the ids themselves are kept


class Holdings(Protocol):
    """What is here already: the index and what waits for its commit."""

    def held(self, chunks: Sequence[Digest]) -> list[bool]:
        """For each of `chunks` whether it is here."""

    def has_recipe(self, part: Digest) -> bool:
        """Whether the recipe of this id can be read."""

    def recipe(self, part: Digest) -> bytes:
        """The encoded recipe of this id; raises NotHeldError."""


@dataclass(slots=True)
class Counts:
    """What is known of a tier so far, in bytes (names: entries)."""

    names: int = 0
    logical: int = 0
    unique: int = 0
    missing: int = 0
    packed: int = 0  # no bytes: notes on what was left as it is in archives


@dataclass(slots=True)
class Expected:
    """The wanted chunks of one page: their indexes in its chunk space (ascending), lengths, and
    ids end to end; packed, since a large tier wants many."""

    page: Digest
    indexes: array[int]
    lengths: array[int]
    ids: bytes
    settled: bytearray  # one byte for each: 1 once it came or was missed
    left: int  # how many are not settled

    def settle(self, index: int) -> Digest:
        """The wanted chunk `index` came, or will not come; raises PeerError the second time."""
        place = self.place(index)
        if self.settled[place]:
            raise PeerError(f"chunk {index} of a page was sent twice")
        self.settled[place] = 1
        self.left -= 1
        return self.id_at(place)

    def place(self, index: int) -> int:
        """Where `index` stands among the wanted ones; raises PeerError when it was not wanted."""
        low = bisect_left(self.indexes, index)
        if low == len(self.indexes) or self.indexes[low] != index:
            raise PeerError(f"chunk {index} of a page was sent and never wanted")
        return low

    def id_at(self, place: int) -> Digest:
        """The id of the chunk at a place."""
        return Digest(self.ids[place * DIGEST_SIZE : (place + 1) * DIGEST_SIZE])


@dataclass(slots=True)
class PlannedPage:
    """A page that is understood: its entries, and what to want of it (None: nothing)."""

    number: int
    id: Digest
    encoded: bytes
    entries: list[Entry]
    expected: Expected | None


See = Callable[[Sequence[Entry]], None]


def _nothing(_: Sequence[Entry]) -> None:
    pass


@dataclass(slots=True)
class _Waiting:
    encoded: bytes
    entries: list[Entry]
    lacking: set[Digest] = field(default_factory=set)


class Planner:
    """Plans one scan of one tier. Not thread-safe; does index look-ups. `see` is given the entries
    of every page that is looked at: of all pages, once one differs from the last snapshot's."""

    def __init__(self, holdings: Holdings, see: See = _nothing) -> None:
        self._holdings = holdings
        self._see = see
        self._seen: set[int | Digest] = set()
        self._waiting: dict[int, _Waiting] = {}
        self._asked: set[Digest] = set()
        self._fresh: dict[Digest, bytes] = {}  # recipes that came and whose pages still wait
        self.counts = Counts()

    @property
    def is_waiting(self) -> bool:
        """Whether any page waits for recipes."""
        return bool(self._waiting)

    def page(self, number: int, encoded: bytes) -> tuple[PlannedPage | None, tuple[Digest, ...]]:
        """Take a page in: what it comes to, or None and the recipes that must be asked for."""
        entries = decode_page(encoded)
        lacking = {
            part
            for entry in entries
            if entry.content is not None
            for part in entry.content.parts
            if part not in self._fresh and not self._holdings.has_recipe(part)
        }
        if lacking:
            self._waiting[number] = _Waiting(encoded, entries, lacking)
            ask = tuple(sorted(lacking - self._asked))
            self._asked.update(ask)
            return None, ask
        return self._plan(number, encoded, entries), ()

    def recipes(self, encoded: Sequence[bytes]) -> list[PlannedPage]:
        """Take recipes in: the pages that were waiting for the last of them. Raises PeerError for
        one that was not asked for, FormatError for one that is wrong."""
        for data in encoded:
            id_ = recipe_id(data)
            if id_ not in self._asked:
                raise PeerError("a recipe came that was not asked for")
            decode_any_recipe(data)
            self._fresh[id_] = data
        ready = []
        for number, waiting in list(self._waiting.items()):
            waiting.lacking.difference_update(self._fresh)
            if not waiting.lacking:
                del self._waiting[number]
                ready.append(self._plan(number, waiting.encoded, waiting.entries))
        return ready

    def drop_recipes(self, stored: Sequence[Digest]) -> None:
        """Forget recipes that can now be had from the holdings."""
        for id_ in stored:
            self._fresh.pop(id_, None)

    def fresh_recipes(self, entries: list[Entry]) -> list[bytes]:
        """The recipes of a planned page that came in this scan, to be kept with it."""
        parts = [part for e in entries if e.content is not None for part in e.content.parts]
        return [self._fresh[part] for part in dict.fromkeys(parts) if part in self._fresh]

    def _plan(self, number: int, encoded: bytes, entries: list[Entry]) -> PlannedPage:
        self._see(entries)
        counts = self.counts
        counts.names += len(entries)
        new: list[tuple[int, Digest, int]] = []
        at = 0
        for entry in entries:
            content = entry.content
            if content is None:
                continue
            counts.logical += content.size
            at = self._new_chunks(content, at, new)
        held = self._holdings.held([id_ for _, id_, _ in new])
        counts.unique += sum(length for _, _, length in new)
        missing = [row for row, here in zip(new, held, strict=True) if not here]
        counts.missing += sum(length for _, _, length in missing)
        id_ = page_id(encoded)
        expected = _expected(id_, missing) if missing else None
        return PlannedPage(number, id_, encoded, entries, expected)

    def _new_chunks(self, content: Content, at: int, new: list[tuple[int, Digest, int]]) -> int:
        """Add the chunks not seen before in this scan; returns where the next content begins."""
        if not content.parts:
            if content.size and self._is_new(content.digest):
                new.append((at, content.digest, content.size))
            return at + content.chunk_count
        size = 0
        start = at
        for part in content.parts:
            recipe = self._recipe(part)
            size += recipe.size
            if isinstance(recipe, ArchiveRecipe):
                self.counts.packed += len(recipe.notes)
            for id_, length in zip(recipe.ids, recipe.lengths, strict=True):
                if self._is_new(id_):
                    new.append((at, id_, length))
                at += 1
        if size != content.size or at - start != content.chunk_count:
            raise PeerError("a file's recipes do not come out at its size")
        return at

    def _is_new(self, id_: Digest) -> bool:
        short = hash(id_) if _WIDE_HASHES else id_
        if short in self._seen:
            return False
        self._seen.add(short)
        return True

    def _recipe(self, part: Digest) -> AnyRecipe:
        return decode_any_recipe(self._fresh.get(part) or self._holdings.recipe(part))


def _expected(page: Digest, missing: list[tuple[int, Digest, int]]) -> Expected:
    return Expected(
        page,
        array("L", (index for index, _, _ in missing)),
        array("L", (length for _, _, length in missing)),
        b"".join(id_ for _, id_, _ in missing),
        bytearray(len(missing)),
        len(missing),
    )


def bitmap(indexes: Sequence[int]) -> bytes:
    """The WANT bitmap of ascending `indexes`."""
    bits = bytearray(indexes[-1] // 8 + 1) if indexes else bytearray()
    for index in indexes:
        bits[index >> 3] |= 1 << (index & 7)
    return bytes(bits)


class IndexHoldings:
    """Holdings of a store: its index, its objects, and what its writer has pending."""

    def __init__(self, index: Index, read: _ReadObject, pending: _Held | None = None) -> None:
        self._index = index
        self._read = read
        self._pending = pending

    def held(self, chunks: Sequence[Digest]) -> list[bool]:
        """See `Holdings.held`."""
        # Pending first: what is committed in between is then found in the index.
        waiting = None if self._pending is None else self._pending(chunks)
        here = self._index.held(chunks)
        return here if waiting is None else list(map(or_, waiting, here))

    def has_recipe(self, part: Digest) -> bool:
        """See `Holdings.has_recipe`."""
        return self._index.locate(part) is not None

    def recipe(self, part: Digest) -> bytes:
        """See `Holdings.recipe`."""
        return self._read(part)


class Promises:
    """What the tiers of a dry run would bring, so that a later tier counts it as here."""

    def __init__(self) -> None:
        self._earlier: set[Digest] = set()
        self._now: set[Digest] = set()

    def begin_round(self) -> None:
        """The tier under way is scanned, perhaps again."""
        self._now = set()

    def end_tier(self) -> None:
        """What it would bring is there for the tiers that follow."""
        self._earlier |= self._now
        self._now = set()

    def held(self, chunks: Sequence[Digest]) -> list[bool]:
        """For each of `chunks` whether an earlier tier would bring it; this one brings the rest."""
        self._now.update(chunks)
        return [chunk in self._earlier for chunk in chunks]


class _ReadObject(Protocol):
    def __call__(self, object_id: Digest, /) -> bytes: ...


class _Held(Protocol):
    def __call__(self, chunks: Sequence[Digest], /) -> list[bool]: ...
