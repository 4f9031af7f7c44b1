"""Which chunks of an archive are which member's, as counting wants to know it (`records.Inside`).

Headers are read for that, as for a listing. Where they are not here, the tier having only been
scanned, or cannot be read, the archive stays one file.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import count

from cas.archive import ArchiveRecipe
from cas.audit.members import members_of
from cas.entry import Content, path_order
from cas.errors import DamageError, FormatError, NotHeldError
from cas.redundancy.chunks import Part
from cas.store.store import Store


class Inside:
    """Looks into the archives whose parts it is given, one after another."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._content: Content | None = None  # of the archive in hand
        self._paths: list[bytes] | None = None
        self._numbers = array("l")
        self._passed = 0  # chunks that the parts before copied
        self.closed = 0  # archives that could not be looked into

    def __call__(self, part: Part) -> tuple[Sequence[bytes], Sequence[int]] | None:
        """The paths in the archive, and for each chunk of the part the number of its own."""
        if not isinstance(part.recipe, ArchiveRecipe):
            return None
        if part.content is not self._content:
            self._begin(part)
        if self._paths is None:
            return None
        copied = len(part.ids) - part.skeleton
        own = self._numbers[self._passed : self._passed + copied]
        self._passed += copied
        return self._paths, [0] * part.skeleton + own.tolist()

    def _begin(self, part: Part) -> None:
        self._content, self._passed = part.content, 0
        self._paths, self._numbers = None, array("l")
        name = part.entry.path.rpartition(b"/")[2]
        try:
            members = members_of(part.content, self._store.reader, name)
        except (NotHeldError, DamageError, FormatError):
            self.closed += 1
            return
        found = [members.piece(number).path for number in range(self._copied(part.content))]
        self._paths = sorted({b"", *found}, key=path_order)
        number_of = dict(zip(self._paths, count(), strict=False))
        self._numbers = array("l", map(number_of.__getitem__, found))

    def _copied(self, content: Content) -> int:
        recipes = map(self._store.recipe, content.parts)
        return sum(len(r.ids) - r.skeleton for r in recipes if isinstance(r, ArchiveRecipe))
