"""Which other files hold a chunk: the newest snapshots of all tiers, looked through.

No table of the index leads from a chunk to the files that have it: such a table would be as large
as all others together, to be kept right by every sync, for a question that is seldom asked. Looking
through takes as long as reading all pages and recipes does (`docs/audit.md`). A recipe is only
decoded if it has one of the chunks: few of them are searched for in its encoded form.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from cas.archive import decode_any_recipe
from cas.audit.pages import UNREADABLE, Pages, Place
from cas.entry import Content
from cas.ids import Digest
from cas.store.store import Store

KEPT = 100  # places of one chunk; further ones are counted
FEW = 24  # chunks that are searched for one by one: past that, decoding is quicker


@dataclass(slots=True)
class Places:
    """The places of one chunk: how many there are, and the first of them, with their tiers."""

    count: int = 0
    first: list[tuple[str, Place]] = field(default_factory=list)

    def add(self, tier: str, place: Place) -> None:
        """One more."""
        self.count += 1
        if len(self.first) < KEPT:
            self.first.append((tier, place))


def find_places(store: Store, pages: Pages, wanted: Collection[Digest]) -> dict[Digest, Places]:
    """Every place of each of `wanted` in the newest snapshots. What cannot be read is passed over;
    raises DamageError where a snapshot's file is damaged."""
    found = {chunk: Places() for chunk in wanted}
    holding = _Holding(store, frozenset(wanted))
    for tier in store.tiers():
        for ref in store.latest(tier)[1].pages:
            for path, content in _contents(store, ref.id):
                if not holding.has_any(content):
                    continue
                where = pages.map(content, path)
                for number, chunk in enumerate(where.ids):
                    if chunk in found:
                        found[chunk].add(tier, Place(path, where.extent(number)))
    return found


def other_chunks(store: Store, tiers: Collection[str], wanted: set[Digest]) -> None:
    """Take from `wanted` all chunks that the newest snapshots of `tiers` have."""
    seen: set[Digest] = set()  # recipes
    for tier in tiers:
        for ref in store.latest(tier)[1].pages:
            for _, content in _contents(store, ref.id):
                if not content.parts:
                    wanted.discard(content.digest)
                for part in content.parts:
                    if part not in seen:
                        seen.add(part)
                        wanted.difference_update(_ids(store, part))


class _Holding:
    """Says which contents have any of some chunks."""

    def __init__(self, store: Store, wanted: frozenset[Digest]) -> None:
        self._store = store
        self._wanted = wanted
        self._known: dict[Digest, bool] = {}  # recipes

    def has_any(self, content: Content) -> bool:
        """Whether it has; False if its recipes cannot be read."""
        if not content.parts:
            return content.digest in self._wanted
        return any(map(self._recipe, content.parts))

    def _recipe(self, part: Digest) -> bool:
        known = self._known.get(part)
        if known is None:
            known = self._known[part] = self._look(part)
        return known

    def _look(self, part: Digest) -> bool:
        if len(self._wanted) > FEW:
            return not self._wanted.isdisjoint(_ids(self._store, part))
        try:
            encoded = self._store.reader.object(part)
        except UNREADABLE:
            return False
        return any(encoded.find(chunk) >= 0 for chunk in self._wanted)


def _contents(store: Store, page: Digest) -> Iterator[tuple[bytes, Content]]:
    """Paths and contents of a page's files that have any."""
    try:
        entries = store.page(page)
    except UNREADABLE:
        return
    for entry in entries:
        if entry.content is not None and entry.content.size:
            yield entry.path, entry.content


def _ids(store: Store, part: Digest) -> tuple[Digest, ...]:
    try:
        return decode_any_recipe(store.reader.object(part)).ids
    except UNREADABLE:
        return ()
