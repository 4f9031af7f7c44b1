"""Which entries of a tier are meant, and under which paths."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import replace

from cas.entry import Entry, path_order


def matching(entries: Iterable[Entry], path: bytes) -> Iterator[Entry]:
    """The entry at `path` and all below it; every entry for an empty `path`. Slashes around `path`
    do not matter."""
    path = path.strip(b"/")
    below = path + b"/"
    for entry in entries:
        if not path or entry.path == path or entry.path.startswith(below):
            yield entry


def without_prefix(entries: Iterable[Entry], prefix: bytes) -> Iterator[Entry]:
    """The entries below the directory `prefix`, their paths beginning after it; others are left
    out. To restore `TIER:home/u/llm` as `TARGET/llm`, the prefix is `home/u`."""
    prefix = prefix.strip(b"/")
    below = prefix + b"/" if prefix else b""
    for entry in entries:
        if entry.path.startswith(below):
            yield replace(entry, path=entry.path[len(below) :]) if below else entry


def merged(tiers: Iterable[Iterable[Entry]]) -> Iterator[Entry]:
    """The entries of several tiers in one path order; of entries with the same path, that of the
    earlier tier."""
    last = None
    for entry in heapq.merge(*tiers, key=lambda entry: path_order(entry.path)):
        if entry.path != last:
            last = entry.path
            yield entry
