"""Makes many files in the order in which their bytes are stored, frame by frame.

A file that was edited, or copied in part, has most of its chunks in old frames and a few in new
ones, and so has the next file, in other frames. File by file, each would open its frames again, and
to reach a chunk half a frame is decoded: for files of some hundred kB that is a hundred times what
is taken. So a *batch* of files is made together: what they need of one frame is read while that
frame is decoded, once, from front to back, and each run of bytes is written where it belongs, and
hashed once all before it is. So several threads are at work on a large file, and none waits for
another. A file is finished by whoever writes its last run.
"""

from __future__ import annotations

import contextlib
import os
import resource
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from cas.entry import HOLE_DIGEST, Entry
from cas.errors import CasError
from cas.interfaces import ContentSource, Location, Read
from cas.rebuild.spans import Span, joined, windows
from cas.rebuild.write import LARGE
from cas.recipe import Recipe
from cas.restore.names import Means, Names, OpenFile, Work
from cas.restore.report import Tally
from cas.restore.small import SmallFiles, is_small

FAILURES = (CasError, OSError, ValueError, OverflowError)  # what a name may fail with
OPEN_LEAST = 64


def open_most() -> int:
    """How many files of several frames may be in one batch: they are open at the same time."""
    return max(OPEN_LEAST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)


@dataclass(slots=True)
class Gathered:
    """A file of several runs that is being made. Its first writer opens it; `left` runs are to be
    written yet; once it `failed`, no more is done for it."""

    work: Work
    left: int
    holes: list[tuple[int, int]]  # from, to: in no run
    file: OpenFile | None = None
    begun: bool = False
    failed: bool = False
    guard: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to do in a frame: a whole file that is in one place, or a run of a gathered one."""

    location: Location
    work: Work
    span: Span | None = None
    target: Gathered | None = None

    @property
    def place(self) -> tuple[int, int]:
        """What to sort by within a frame."""
        return (self.location.segment, self.location.offset)


class Batch:
    """The files of one batch, as items by frames."""

    def __init__(self, source: ContentSource) -> None:
        self._source = source
        self._frames: dict[int, list[Item]] = {}
        self.scattered = 0  # files with bytes in several frames

    def frames(self) -> list[tuple[Location, list[Item]]]:
        """What there is to do in each frame, in the frame's order, and where that begins."""
        found = []
        for frame in sorted(self._frames):
            items = sorted(self._frames[frame], key=lambda item: item.place)
            found.append((items[0].location, items))
        return found

    def add_single(self, work: Work, location: Location) -> None:
        """A file all of which is at `location`."""
        self._add(Item(location, work))

    def add_runs(self, work: Work, recipe: Recipe | None) -> None:
        """A file of several chunks; `recipe` as of `windows`, whose errors it raises."""
        content = work.entry.content
        if content is None:
            return
        whole = list(windows(content, self._source, recipe))
        spans = list(joined(chain.from_iterable(window.spans for window in whole)))
        written = sum(span.location.length for span in spans)
        if len(spans) == 1 and written == content.size < LARGE:
            self.add_single(work, spans[0].location)
            return
        holes = [hole for window in whole for hole in window.holes()]
        target = Gathered(work, len(spans), holes)
        self.scattered += len({span.location.frame for span in spans}) > 1
        for span in spans:
            self._add(Item(span.location, work, span, target))

    def _add(self, item: Item) -> None:
        self._frames.setdefault(item.location.frame, []).append(item)


class Gatherer:
    """Does the items of a frame; from several threads at once, for several frames."""

    def __init__(self, names: Names, tally: Tally) -> None:
        self._names = names
        self._tally = tally
        self._open: set[OpenFile] = set()

    def close(self) -> None:
        """Give up what was begun and not finished; no thread may be at it any more."""
        for file in self._open:
            file.new.close()
        self._open.clear()

    def make(self, items: Iterable[Item], read: Read, means: Means) -> None:
        """Do `items`, in order, with `read`. What fails is listed, and the rest goes on."""
        small = SmallFiles(self._names, means, partial(self._make_one, means))
        for item in items:
            work, content = item.work, item.work.entry.content
            if item.target is not None and item.span is not None:
                self._write(item.target, item.span, read, means)
            elif content is not None and is_small(work, self._names):
                self._try(work.entry, small.add, work, content, item.location, read)
            else:
                self._make_one(means, work)
        small.make()

    def _make_one(self, means: Means, work: Work) -> None:
        self._try(work.entry, self._names.make, work, means)

    def _write(self, target: Gathered, span: Span, read: Read, means: Means) -> None:
        file = self._opened(target, means)
        if file is not None and not target.failed:
            try:
                self._names.write_run(file, span, read(span.location))
            except FAILURES as error:
                self._fail(target, error)
        with target.guard:
            target.left -= 1
            is_last = not target.left
        # Only now can no other thread be writing to it.
        if is_last and file is not None:
            self._open.discard(file)
            if target.failed:
                file.new.close()
            else:
                self._try(target.work.entry, self._names.finish_file, file)

    def _opened(self, target: Gathered, means: Means) -> OpenFile | None:
        """The file, opened for the first who asks; None if it is not to be written."""
        with target.guard:
            if not target.begun:
                target.begun = True
                try:
                    target.file = self._names.begin_file(target.work, means, target.holes)
                    if target.file is not None:
                        self._open.add(target.file)
                        self._tally.progress(sum(end - at for at, end in target.holes), 0)
                except FAILURES as error:
                    self._tally.failed(target.work.entry.path, error)
            return target.file

    def _fail(self, target: Gathered, error: Exception) -> None:
        with target.guard:
            is_first, target.failed = not target.failed, True
        if is_first:
            self._tally.failed(target.work.entry.path, error)
            if target.file is not None:
                with contextlib.suppress(OSError):  # a full disk has its room back at once
                    os.ftruncate(target.file.new.fd, 0)

    def _try(self, entry: Entry, do: Callable[..., None], *arguments: object) -> None:
        try:
            do(*arguments)
        except FAILURES as error:
            self._tally.failed(entry.path, error)


def is_gathered(entry: Entry) -> bool:
    """Whether a file has recipes, and so perhaps its bytes in several places; one that is checked
    chunk by chunk is left to `cas/rebuild/write.py`."""
    return bool(entry.content and entry.content.parts) and not entry.flags & HOLE_DIGEST
