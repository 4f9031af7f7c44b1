"""What a small stream took is free as soon as it is done: nothing waits for the collector, since an
image has thousands of them, and each takes tens of KiB."""

from __future__ import annotations

import bz2
import gc
import gzip
import io
import lzma
import weakref
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import zstandard

from cas.codec.base import Splitter
from cas.unpack import driver
from cas.unpack.detect import Form
from cas.unpack.driver import Splitters
from cas.unpack.limits import Budget
from cas.unpack.splitters import CodecSplitters
from cas.unpack.stream import Stream
from tests.unpack.files import some_files
from tests.unpack.taking import take_apart
from tests.unpack.test_tar import archive as tar_of

TEXT = some_files()["b/text"]


def zip_of(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("text", data)
    return out.getvalue()


MEMBERS = {
    "a.gz": gzip.compress(TEXT),
    "b.bz2": bz2.compress(TEXT),
    "c.xz": lzma.compress(TEXT),
    "d.zst": zstandard.ZstdCompressor().compress(TEXT),
    "e.zip": zip_of(TEXT),
    "f.gz": gzip.compress(TEXT)[:-3000],  # cut off
    "g.gz": gzip.compress(TEXT)[:60] + bytes(900),  # broken
}


class Watched(CodecSplitters):
    """The splitters, each remembered weakly."""

    def __init__(self, pool: ThreadPoolExecutor, alive: weakref.WeakSet[object]) -> None:
        super().__init__(pool)
        self._alive = alive

    def deflate(self) -> Splitter | None:
        return self._seen(super().deflate())

    def other(self, form: Form, head: bytes, budget: Budget) -> Splitter | None:
        return self._seen(super().other(form, head, budget))

    def _seen(self, splitter: Splitter | None) -> Splitter | None:
        if splitter is not None:
            self._alive.add(splitter)
        return splitter


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("name", MEMBERS)
def test_nothing_is_left_of_a_stream(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alive: weakref.WeakSet[object] = weakref.WeakSet()
    begun = 0

    class Seen(Stream):
        def __init__(self, *arguments: object) -> None:
            nonlocal begun
            super().__init__(*arguments)  # type: ignore[arg-type]  # handed on
            alive.add(self)
            begun += 1

    monkeypatch.setattr(driver, "Stream", Seen)
    with ThreadPoolExecutor(1) as pool:
        splitters: Splitters = Watched(pool, alive)
        data = tar_of({f"{number}{name}": MEMBERS[name] for number in range(5)})
        assert take_apart(data, splitters) is not None
    assert begun >= 5
    assert not alive
