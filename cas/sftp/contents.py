"""The contents of files at the source that are not known here: fetched, and read here.

After `Known.decide` has found out what is known, `begin` has a file fetched as soon as there is
room, and `finish` waits for it and reads it. What is on its way at a time is enough to keep all
connections busy, and no more: the file whose turn comes first is not to share them with those that
come much later.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import wait

from cas.agent.content import ContentMaker
from cas.agent.spool import Spool
from cas.agent.walk import Report
from cas.archive import decode_any_recipe
from cas.entry import INCONSISTENT, Content, Problem
from cas.ids import EMPTY_DIGEST, Digest
from cas.sftp.fetch import Fetched
from cas.sftp.known import Got, Wanted
from cas.sftp.remote import Remote
from cas.sftp.shelf import Shelf

IN_TRANSIT = 32 * 2**20  # bytes on their way; more than all connections have asked for, mostly
FILES_AT_ONCE = 512
WAIT_SECONDS = 0.25
STUCK_SECONDS = 60.0  # in which the client has wanted nothing of what is here
LARGE = 64 * 1024  # bytes of a file that is not fetched twice in a scan, if sums are told
OTHER_SUM = "what came is not what sha256sum says of it there"


class Contents:
    """For one scan of the tier `tier`, in one thread. `count` is told of bytes that come; `check`
    is called while it waits, and may raise."""

    def __init__(
        self,
        remote: Remote,
        shelf: Shelf,
        spool: Spool,
        tier: str,
        *,
        report: Report,
        count: Callable[[int], None],
        check: Callable[[], None],
    ) -> None:
        self._remote = remote
        self._shelf = shelf
        self._spool = spool
        self._staging = shelf.tier(tier)
        self._fetcher = remote.fetcher(self._staging, count)
        self._maker = ContentMaker(spool.put, lambda _files, _size: check())
        self._report = report
        self._check = check
        self._coming: set[Wanted] = set()
        self._keys: set[bytes] = set()
        self._sums: set[Digest] = set()  # of the large ones that were begun
        self._contents: dict[Digest, Content] = {}  # of those that came, by their digests

    def begin(self, file: Wanted, *, now: bool = False) -> bool:
        """Have a file fetched, if it must be and there is room; `now`, it is needed next."""
        if file.content is not None or file.coming is not None:
            return True
        if not now and _sum_of_large(file) in self._sums:
            return True  # the same as one that is on its way
        if not now and self._has_enough():
            return False
        if not self._shelf.reserve(file.seen.size):
            if not now:
                return False
            self._wait_for_room(file.seen.size)
        file.reserved = file.seen.size
        if (sum_ := _sum_of_large(file)) is not None:
            self._sums.add(sum_)
        self._fetch(file)
        return True

    def _wait_for_room(self, size: int) -> None:
        """Wait until what the client was told of is stored. What it does not know yet can never be:
        then there is more here than there is room for."""
        since = time.monotonic()
        while not self._shelf.reserve(size):
            if not self._shelf.is_waited_for():
                self._shelf.reserve_anyway(size)
                return
            if time.monotonic() - since > STUCK_SECONDS:
                self._shelf.drop_oldest()
            self._check()
            time.sleep(WAIT_SECONDS)

    def _has_enough(self) -> bool:
        """Whether enough is on its way."""
        if len(self._coming) >= FILES_AT_ONCE:
            self._coming = {one for one in self._coming if one.coming and not one.coming.done()}
        return self._fetcher.in_transit >= IN_TRANSIT or len(self._coming) >= FILES_AT_ONCE

    def _fetch(self, file: Wanted) -> None:
        file.coming = self._remote.fetch(self._fetcher, file.server_path, file.seen)
        self._coming.add(file)

    def finish(self, file: Wanted, meanwhile: Callable[[], None]) -> Got:
        """The content of a file, which is begun if it was not. Calls `meanwhile` now and then.
        Raises OSError when it cannot be read, CasError."""
        content = file.content
        if content is None and file.coming is None and (sum_ := _sum_of_large(file)) is not None:
            content = self._contents.get(sum_)
        if content is not None:
            return Got(content, file.seen)
        self.begin(file, now=True)
        try:
            fetched, content, doubt = self._verified(file, meanwhile)
        except BaseException:
            self._shelf.give_back(file.reserved)
            raise
        self._keys.add(fetched.key)
        chunks = self._chunks_of(content)
        self._shelf.keep(file.path, self._staging, fetched.key, file.reserved, chunks)
        if doubt:
            self._report(Problem(file.path, doubt, left_out=False))
        elif content.digest in self._sums:
            self._contents[content.digest] = content
        return Got(content, fetched.seen, INCONSISTENT if doubt else 0)

    def told(self) -> None:
        """The client knows now of all that was finished."""
        self._shelf.told()

    def end(self) -> None:
        """All files of the tier have been finished: what else is staged of it is of no use."""
        self._staging.drop_others(self._keys)

    def close(self) -> None:
        """End what is under way."""
        for file in self._coming:
            if file.coming is not None:
                file.coming.cancel()
        self._maker.close()

    def _verified(
        self, file: Wanted, meanwhile: Callable[[], None]
    ) -> tuple[Fetched, Content, str]:
        """A file as it came, its content, and what is wrong with it. Where the far end tells sums,
        what differs is asked for again, first the sum, then the file: one of them may have been
        had while the other changed."""
        fetched, content = self._read(file, meanwhile)
        if file.sum in (None, content.digest) or fetched.doubt:
            return fetched, content, fetched.doubt
        if self._sum_is(file, fetched, content):
            return fetched, content, ""
        self._staging.drop(fetched.key)
        self._fetch(file)
        fetched, content = self._read(file, meanwhile)
        right = not fetched.doubt and self._sum_is(file, fetched, content)
        return fetched, content, fetched.doubt or ("" if right else OTHER_SUM)

    def _sum_is(self, file: Wanted, fetched: Fetched, content: Content) -> bool:
        sums = self._remote.sums([(file.server_path, fetched.seen.size)])
        return sums.get(file.server_path) == content.digest

    def _read(self, file: Wanted, meanwhile: Callable[[], None]) -> tuple[Fetched, Content]:
        assert file.coming is not None
        while not file.coming.done():
            self._check()
            meanwhile()
            wait([file.coming], WAIT_SECONDS)
        fetched = file.coming.result()
        if not fetched.size:
            return fetched, Content(0, EMPTY_DIGEST, 0)
        fd = self._staging.open(fetched.key)
        try:
            return fetched, self._maker.content(fd, fetched.size, may_have_holes=False)[0]
        finally:
            os.close(fd)

    def _chunks_of(self, content: Content) -> list[Digest]:
        if not content.parts:
            return [content.digest] if content.size else []
        encoded = [self._spool.get(part) for part in content.parts]
        recipes = [decode_any_recipe(part) for part in encoded if part is not None]
        return [id_ for recipe in recipes for id_ in recipe.ids]


def _sum_of_large(file: Wanted) -> Digest | None:
    """Its sum, if it is worth remembering."""
    return file.sum if file.seen.size >= LARGE else None
