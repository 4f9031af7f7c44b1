"""From places in chunk spaces to files, and what is not here any more."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cas.audit.pages import Pages
from cas.codec import registry
from cas.entry import Content, Entry, Kind, Owner
from cas.ids import Digest, digest_of
from cas.interfaces import Changes
from cas.pack import Origin
from cas.page import encode_page
from cas.store.layout import Layout
from cas.store.memory_index import MemoryIndex
from cas.store.store import Store
from cas.store.writer import Writer
from tests.unpack.carry import JOINERS
from tests.unpack.taking import take_apart

ORIGIN = Origin(bytes(16), "npu", "t", 0, 0, 0, ())
OWNER = Owner(0o644, 1, 1)


@pytest.fixture(autouse=True, scope="module")
def _toys() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for codec, place in JOINERS.items():
            patch.setitem(registry.JOINERS, codec, place)
        yield


class Held:
    """A store with some pages."""

    def __init__(self, root: Path) -> None:
        layout = Layout(root)
        layout.create()
        index = MemoryIndex()
        self.writer = Writer(layout, index)
        self.store = Store(root, index)

    def page(self, *entries: Entry) -> Digest:
        page = self.writer.add_object(encode_page(list(entries)), ORIGIN)
        self.writer.commit()
        return page


def file(path: bytes, content: Content | None) -> Entry:
    return Entry(path, Kind.FILE, OWNER, 0, content.size if content else 0, content,
                 flags=0 if content else 2)  # fmt: skip


def test_a_place_in_a_page_is_a_place_in_a_file(tmp_path: Path) -> None:
    held = Held(tmp_path / "s")
    text = os.urandom(150_000).hex().encode()
    archive = take_apart(gzip.compress(text, mtime=0))
    assert archive is not None
    for data in archive.objects.values():
        held.writer.add_object(data, ORIGIN)
    one = Content(5, digest_of(b"small"), 1)
    page = held.page(
        Entry(b"a", Kind.DIRECTORY, OWNER, 0), file(b"a/empty", Content(0, digest_of(b""), 0)),
        file(b"a/first", one), file(b"a/notes.gz", archive.content),
        file(b"a/other.gz", archive.content), file(b"a/unread", None), file(b"last", one),
    )  # fmt: skip
    pages = Pages(held.store)
    count = archive.content.chunk_count
    spaces = [pages.place(page, index) for index in range(2 * count + 2)]
    places = [place for place in spaces if place is not None]
    assert len(spaces) == len(places)
    wanted = [b"a/first", *[b"a/notes.gz"] * count, *[b"a/other.gz"] * count, b"last"]
    assert wanted == [place.path for place in places]
    assert [0, *range(count), *range(count), 0] == [place.extent.number for place in places]
    assert {b"", b"notes", b"other"} == {place.extent.inner for place in places}
    assert pages.place(page, 2 * count + 2) is None
    # What it takes to know is gone: that is no error.
    assert pages.place(digest_of(b"no page"), 0) is None
    lost = held.page(file(b"b", archive.content))
    held.store.index.commit(Changes(forgotten_chunks=list(archive.content.parts)))
    assert Pages(held.store).place(lost, 0) is None
    held.store.close()
