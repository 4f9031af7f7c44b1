"""Paths of a tier, one directory at a time, for a shell's completion.

A tier may have a million names and a shell waits: pages that lie wholly below a name that is listed
already are passed over, and after `SECONDS` what was found so far is all there is.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator

from cas.entry import Kind, path_order
from cas.snapshot import Snapshot
from cas.store.store import Store
from cli import output
from cli.options import parse_target
from cli.selection import snapshot_of

SECONDS = 1.0
MOST = 1000  # names that are offered


def complete_target(store: Store, text: str) -> list[str]:
    """Targets that begin with `text`, which has a tier and a colon; directories end in a slash.

    Where there is only one directory to go into, it is gone into. Names that have to be spelt out
    are left out. Raises CasError where there is no such tier.
    """
    directory, _, begun = text.rpartition("/" if "/" in text.partition(":")[2] else ":")
    before = text[: len(directory) + 1]
    target = parse_target(directory if ":" in directory else before)
    if before.endswith(":"):
        before += "/"
    snapshot = snapshot_of(store, target.tier)
    until = time.monotonic() + SECONDS
    found = _names(store, snapshot, target.path, begun, until)
    path = target.path
    while len(found) == 1 and found[0].endswith("/") and time.monotonic() < until:
        path = b"/".join([*([path] if path else []), found[0].rstrip("/").encode()])
        before += found[0]
        found = _names(store, snapshot, path, "", until) or [""]
    return [before + name for name in found]


def _names(store: Store, snapshot: Snapshot, path: bytes, begun: str, until: float) -> list[str]:
    found: dict[str, str] = {}
    for name, is_directory in _children(store, snapshot, path, until):
        try:
            text = name.decode()
        except UnicodeDecodeError:
            continue
        if text.startswith(begun) and output.printable(text) == text:
            found[text] = text + "/" if is_directory else found.get(text, text)
        if len(found) == MOST:
            break
    return list(found.values())


def _children(
    store: Store, snapshot: Snapshot, path: bytes, until: float
) -> Iterator[tuple[bytes, bool]]:
    """What lies directly in the directory `path`, and whether it is one itself; a name may come
    twice."""
    base = path + b"/" if path else b""
    order = path_order(path)
    pages = snapshot.pages
    at = max(bisect_right(pages, order, key=lambda ref: path_order(ref.first)) - 1, 0)
    last = b""
    for number in range(at if path else 0, len(pages)):
        following = pages[number + 1].first if number + 1 < len(pages) else b""
        if time.monotonic() > until:
            return
        if last and following.startswith(base + last + b"/"):
            continue  # all of this page lies below the name that came last
        for entry in store.page(pages[number].id):
            if path and path_order(entry.path)[: len(order)] > order:
                return
            if not entry.path.startswith(base):
                continue
            last, deeper, _ = entry.path[len(base) :].partition(b"/")
            yield last, bool(deeper) or entry.kind is Kind.DIRECTORY
