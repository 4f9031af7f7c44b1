"""Table `recipes`: file digest -> the ids of the recipes that rebuild the file, end to end
(docs/index.md)."""

from __future__ import annotations

from collections.abc import Iterable

from cas.ids import Digest, split_digests
from indexes.view import Update, View

TABLE = b"recipes"


def recipes_of(view: View, file: Digest) -> tuple[Digest, ...] | None:
    """The ids of the recipes of the file of this digest, or None."""
    value = view.get(TABLE, file)
    return None if value is None else tuple(split_digests(value))


def put(update: Update, recipes: Iterable[tuple[Digest, tuple[Digest, ...]]]) -> None:
    """Write `recipes`, in place of older ones."""
    update.put(TABLE, ((file, b"".join(parts)) for file, parts in recipes))
