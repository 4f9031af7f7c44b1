"""Differences of snapshots are those of the trees, and equal pages are not read."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cas.diff import What, diff
from cas.entry import Content, Entry, Kind, Owner, path_order
from cas.ids import Digest, digest_of
from cas.pack import Origin
from cas.page import ENTRIES_LIMIT, Paginator, encode_page
from cas.snapshot import PageRef, Snapshot
from cas.store.layout import Layout
from cas.store.memory_index import MemoryIndex
from cas.store.store import Store, page_ref
from cas.store.writer import Writer

ORIGIN = Origin(bytes(16), "npu", "t", 0, 0, 0, ())
OWNER = Owner(0o644, 1, 1)

Tree = dict[bytes, Entry]


def file(path: bytes, data: bytes, mtime: int = 0) -> Entry:
    content = Content(len(data), digest_of(data), 1 if data else 0)
    return Entry(path, Kind.FILE, OWNER, mtime, len(data), content)


class Snapshots:
    """Makes snapshots of trees, and counts pages read."""

    def __init__(self, root: Path) -> None:
        layout = Layout(root)
        layout.create()
        index = MemoryIndex()
        self._writer = Writer(layout, index)
        self.store = Store(root, index)
        self.read: list[Digest] = []
        read = self.store.page

        def page(page_id: Digest) -> list[Entry]:
            self.read.append(page_id)
            return read(page_id)

        self.store.page = page  # type: ignore[method-assign]  # to look on

    def of(self, tree: Tree) -> Snapshot:
        refs: list[PageRef] = []
        paginator, page = Paginator(), list[Entry]()
        for path in sorted(tree, key=path_order):
            page.append(tree[path])
            if paginator.ends_after(tree[path]):
                refs.append(self._page(page))
                page = []
        if page:
            refs.append(self._page(page))
        self._writer.commit()
        return Snapshot("t", "npu", "host", (b"",), bytes(16), 0, 0, "", "", 0, tuple(refs), ())

    def _page(self, entries: list[Entry]) -> PageRef:
        return page_ref(self._writer.add_object(encode_page(entries), ORIGIN), entries)


def a_tree(rng: random.Random, count: int) -> Tree:
    names = [b"d%d/f%d" % (rng.randrange(9), rng.randrange(10**6)) for _ in range(count)]
    return {name: file(name, b"%d" % rng.randrange(count * 3)) for name in names}


def shuffled(rng: random.Random, tree: Tree) -> Tree:
    changed = dict(tree)
    for path in rng.sample(sorted(tree), min(len(tree), rng.randrange(12))):
        step = rng.randrange(4)
        if step == 0:
            del changed[path]
        elif step == 1:
            changed[path] = file(path, rng.randbytes(5))
        elif step == 2:
            changed[path] = file(path, b"", mtime=7)
        else:
            moved = b"z/" + path.rpartition(b"/")[2]
            entry = changed.pop(path)
            changed[moved] = Entry(moved, entry.kind, OWNER, 0, entry.size, entry.content)
    return changed


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 3000))
def test_a_diff_leads_from_one_tree_to_the_other(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int
) -> None:
    rng = random.Random(seed)
    old = a_tree(rng, count)
    new = shuffled(rng, old)
    snapshots = Snapshots(tmp_path_factory.mktemp("s") / "s")
    changes = list(diff(snapshots.store, snapshots.of(old), snapshots.of(new)))
    made = dict(old)
    for change in changes:
        if change.before is not None:
            assert old[change.before.path] == made.pop(change.before.path)
    for change in changes:
        if change.after is not None:
            assert change.after.path not in made
            made[change.after.path] = change.after
    assert new == made
    plain = [change for change in changes if change.what is not What.MOVED]
    kept = {change.path for change in plain if change.before and change.after}
    assert all(old[path] != new[path] for path in kept)
    gone = {_digest(c.before) for c in plain if c.what is What.REMOVED} - {None}
    added = {_digest(c.after) for c in plain if c.what is What.ADDED} - {None}
    assert not gone & added  # that would have moved


def _digest(entry: Entry | None) -> Digest | None:
    """The digest of a file that is not empty."""
    return entry.content.digest if entry and entry.content and entry.size else None


def test_equal_pages_are_not_read(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path / "s")
    old = a_tree(random.Random(1), 20 * ENTRIES_LIMIT)
    new = dict(old)
    path = sorted(old)[5000]
    new[path] = file(path, b"other")
    one, other = snapshots.of(old), snapshots.of(new)
    (change,) = diff(snapshots.store, one, other)
    assert (What.CHANGED, path, ("content",)) == (change.what, change.path, change.fields)
    assert len(one.pages) > 10
    assert {ref.id for ref in one.pages} ^ {ref.id for ref in other.pages} == set(snapshots.read)
    assert [] == list(diff(snapshots.store, one, one))


def test_each_kind_of_change_is_told(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path / "s")
    link = Entry(b"link", Kind.SYMLINK, OWNER, 0, target=b"a")
    old: Tree = {b"x": file(b"x", b"x"), b"y": file(b"y", b"y"), b"link": link,
                 b"dir/a": file(b"dir/a", b"moved"), b"b": file(b"b", b"moved"),
                 b"gone": file(b"gone", b"gone"), b"kind": file(b"kind", b"")}  # fmt: skip
    new: Tree = {
        b"x": Entry(b"x", Kind.FILE, Owner(0o600, 2, 1), 5, 1, old[b"x"].content, b"", None, b"",
                    ((b"user.a", b"1"),)),
        b"y": Entry(b"y", Kind.FILE, OWNER, 0, 1, old[b"y"].content, link=b"another inode"),
        b"link": Entry(b"link", Kind.SYMLINK, OWNER, 0, target=b"b"),
        b"new/a": file(b"new/a", b"moved", mtime=3), b"new/z": file(b"new/z", b"new"),
        b"kind": Entry(b"kind", Kind.DIRECTORY, OWNER, 0),
    }  # fmt: skip
    changes = {c.path: c for c in diff(snapshots.store, snapshots.of(old), snapshots.of(new))}
    assert {
        b"x": (What.METADATA, ("mode", "owner", "mtime", "xattrs")),
        b"link": (What.CHANGED, ("target",)),
        b"kind": (What.CHANGED, ("kind", "content")),
        b"gone": (What.REMOVED, ()),
        b"new/z": (What.ADDED, ()),
        b"new/a": (What.MOVED, ("mtime",)),
        b"b": (What.REMOVED, ()),
    } == {path: (change.what, change.fields) for path, change in changes.items()}
    assert changes[b"new/a"].before == old[b"dir/a"]  # the one of the same name, not `b`
    below = list(diff(snapshots.store, snapshots.of(old), snapshots.of(new), b"dir"))
    assert [(What.REMOVED, b"dir/a")] == [(change.what, change.path) for change in below]
