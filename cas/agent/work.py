"""The agent's work: scanning, looking recipes up, reading what is wanted, each in threads.

`Worker.handle` takes what the client asks, in the event loop, and returns at once; what comes of it
goes to the outbox. Everything that can be asked is idempotent.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from cas.agent.extract import Extractors
from cas.agent.produce import FrameNumbers, Job, Jobs, Producer
from cas.agent.read import Found, Reach, read_wanted
from cas.agent.read import Missed as Lost
from cas.agent.scan import Scanning
from cas.agent.spool import Spool
from cas.entry import Entry
from cas.errors import CasError, PeerError, SourceError
from cas.ids import Digest
from cas.interfaces import ScanCache
from cas.messages import (
    Ack,
    Ahead,
    Cancel,
    Look,
    Message,
    Page,
    Progress,
    Recipes,
    Refused,
    Same,
    Scan,
    Scanned,
    Tune,
    Want,
)
from cas.outbox import Outbox
from cas.page import decode_page

RECIPES_AT_ONCE = 2**20  # bytes in one RECIPES message, unless a single one is larger
BUDGET_LIMIT = 128 * 2**20
PRODUCERS = 2
DEFAULT_LEVEL = 3
SHARED_LEVEL = 3  # above it an encoder takes 60 MB and more, and there is one producer
PAGES_DECODED = 4
SCANS_AT_ONCE = 16  # one works, the others wait


class PageCache:
    """The last few pages that were decoded; thread-safe."""

    def __init__(self, load: Callable[[Digest], list[Entry]]) -> None:
        self._guard = threading.Lock()
        self._load = lru_cache(PAGES_DECODED)(load)

    def __call__(self, id_: Digest) -> list[Entry]:
        with self._guard:
            return self._load(id_)


@dataclass(slots=True)
class _Running:
    """A scan: its pages in order, their ids and how many chunks each has; the scanner while it
    works."""

    pages: list[Digest] = field(default_factory=list)
    chunks: list[int] = field(default_factory=list)
    scanner: Scanning | None = None
    is_over: bool = False


ScannerOf = Callable[[Scan, Spool], Scanning]  # what does the scan that is ordered


class Worker:
    """Works for one client. `guard` limits what may be read."""

    def __init__(
        self, cache: ScanCache, guard: Reach, outbox: Outbox, scanner_of: ScannerOf
    ) -> None:
        self._scanner_of = scanner_of
        self._cache = cache
        self._guard = guard
        self._outbox = outbox
        self._counting = threading.Lock()
        self._working = 0  # threads; two of them wait for orders until all is over
        self._jobs = Jobs()
        self._spool = Spool()
        self._frame_number = FrameNumbers()
        self._producers: list[Producer] = []
        self._level = DEFAULT_LEVEL
        self._pages = PageCache(self._page)
        self._extractors = Extractors(self._recipe, self._noted)
        self._orders: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._looks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._scans: dict[int, _Running] = {}
        self._ahead: tuple[str, Scanning] | None = None  # what is looked at early
        for orders in (self._orders, self._looks):
            self._start(self._work(orders))

    def handle(self, message: Message) -> None:
        """Take what the client asks; raises PeerError for what makes no sense."""
        if isinstance(message, Scan):
            self._order(message)
        elif isinstance(message, Ahead):
            self._orders.put(lambda: self._look_ahead(message))
        elif isinstance(message, Look):
            self._looks.put(lambda: self._look(message))
        elif isinstance(message, Want):
            self._want(message)
        elif isinstance(message, Ack):
            self._outbox.ack(message.segments)
        elif isinstance(message, Tune):
            self._tune(message.level)
            self._outbox.budget = min(message.budget, BUDGET_LIMIT)
        elif isinstance(message, Cancel):
            self._jobs.drop(message.scan)

    def tell_progress(self) -> None:
        """Say how the scans go on."""
        scanners = [(number, running.scanner) for number, running in self._scans.items()]
        if (ahead := self._ahead) is not None:  # a thread may end it at any moment
            scanners.append((0, ahead[1]))
        for number, scanner in scanners:
            if scanner is not None:
                now = scanner.progress
                self._outbox.put_now(Progress(number, now.names, now.read, now.path))

    def close(self) -> None:
        """End the threads; what they were doing is of no use to anybody any more, and what becomes
        of it is not told."""
        self._outbox.close()
        for running in self._scans.values():
            if (scanner := running.scanner) is not None:
                scanner.stop()
        if (ahead := self._ahead) is not None:
            ahead[1].stop()
        self._jobs.close()
        self._orders.put(None)
        self._looks.put(None)
        self._spool.close()

    def _tune(self, level: int) -> None:
        self._level = level
        for producer in self._producers:
            producer.level = level

    def _start(self, work: Callable[[], None]) -> None:
        with self._counting:
            self._working += 1
        threading.Thread(target=self._guarded(work), daemon=True).start()

    def _ended(self) -> None:
        """A thread is at its end; the last one, all being over, lets go of the roots."""
        with self._counting:
            self._working -= 1
            if not self._working:
                self._guard.close()

    def _start_producers(self) -> None:
        """As many as there are processors for, unless their level takes much memory."""
        is_fast = 0 < self._level <= SHARED_LEVEL  # 0 may become any level
        count = min(PRODUCERS, os.cpu_count() or 1) if is_fast else 1
        while len(self._producers) < count:
            producer = Producer(
                self._jobs, self._outbox, self._read, self._frame_number, self._level
            )
            self._producers.append(producer)
            self._start(producer.run)

    def _order(self, message: Scan) -> None:
        if message.scan in self._scans:
            raise PeerError(f"scan {message.scan} was asked for already")
        if sum(not running.is_over for running in self._scans.values()) >= SCANS_AT_ONCE:
            raise PeerError("too many scans are asked for at once")
        self._scans[message.scan] = _Running()
        ahead = self._ahead
        if ahead is not None and ahead[0] != message.tier:
            ahead[1].stop()
        self._orders.put(lambda: self._scan(message))

    def _want(self, message: Want) -> None:
        running = self._scans.get(message.scan)
        if running is None or message.number >= len(running.pages):
            raise PeerError(f"page {message.number} of scan {message.scan} was never sent")
        bits = int.from_bytes(message.bitmap, "little")
        chunks = running.chunks[message.number]
        if bits.bit_length() > chunks:
            raise PeerError(f"page {message.number} has {chunks} chunks, and more are wanted")
        indexes = [i for i in range(bits.bit_length()) if message.bitmap[i >> 3] >> (i & 7) & 1]
        self._start_producers()
        self._jobs.put(Job(message.scan, message.number, indexes))

    def _scan(self, order: Scan) -> None:
        started = time.time_ns() // 1_000_000
        running = self._scans[order.scan]
        known = set(order.known)
        try:
            running.scanner = scanner = self._scanner_of(order, self._spool)
            for page in scanner:
                number = len(running.pages)
                running.chunks.append(page.chunks)
                running.pages.append(page.id)
                if page.id in known:
                    self._outbox.put_message(Same(order.scan, number, page.id), 64)
                else:
                    size = len(page.encoded)
                    self._outbox.put_message(Page(order.scan, number, page.encoded), size)
            problems = tuple(scanner.problems)
        except CasError as error:
            self._outbox.put_message(Refused(order.scan, error.what, error.where, error.advice))
            return
        finally:
            running.scanner = None
            running.is_over = True
        finished = time.time_ns() // 1_000_000
        self._outbox.put_message(
            Scanned(order.scan, len(running.pages), problems, started, finished)
        )

    def _look_ahead(self, order: Ahead) -> None:
        """Scan what will be asked for next, so that the scan's cache has it then. What is wrong
        with it will be told then."""
        if any(not running.is_over for running in list(self._scans.values())):
            return  # a scan was ordered meanwhile, and is worth more
        scan = Scan(0, order.tier, order.roots, order.exclude, order.include, ())
        with contextlib.suppress(CasError):
            scanner = self._scanner_of(scan, self._spool)
            self._ahead = (order.tier, scanner)
            for _ in scanner:
                pass
        self._ahead = None

    def _look(self, order: Look) -> None:
        batch: list[bytes] = []
        size = 0
        for id_ in order.recipes:
            encoded = self._recipe(id_)
            if batch and size + len(encoded) > RECIPES_AT_ONCE:
                self._outbox.put_message(Recipes(order.scan, tuple(batch)), size)
                batch, size = [], 0
            batch.append(encoded)
            size += len(encoded)
        self._outbox.put_message(Recipes(order.scan, tuple(batch)), size)

    def _recipe(self, id_: Digest) -> bytes:
        found = self._noted(id_)
        if found is None:
            raise SourceError("a recipe is gone from the scan's cache", where=id_.hex())
        return found

    def _noted(self, id_: Digest) -> bytes | None:
        """A recipe, or a chunk of a skeleton, that the scan kept."""
        return self._spool.get(id_) or self._cache.recipe(id_)

    def _read(self, job: Job) -> Iterator[Found | Lost]:
        entries = self._pages(self._scans[job.scan].pages[job.page])
        return read_wanted(
            entries, self._recipe, job.indexes, guard=self._guard, extractors=self._extractors
        )

    def _page(self, id_: Digest) -> list[Entry]:
        encoded = self._spool.get(id_)
        if encoded is None:
            raise SourceError("a page is gone from the scan's spool", where=id_.hex())
        return decode_page(encoded)

    def _work(self, orders: queue.SimpleQueue[Callable[[], None] | None]) -> Callable[[], None]:
        def run() -> None:
            while (order := orders.get()) is not None:
                order()

        return run

    def _guarded(self, work: Callable[[], None]) -> Callable[[], None]:
        """`work`, whose unexpected end is told to the client instead of being lost in a thread."""

        def run() -> None:
            try:
                work()
            except CasError as error:
                self._outbox.put_message(Refused(0, error.what, error.where, error.advice))
            except Exception as error:  # noqa: BLE001 - the client must hear of it, whatever it is
                self._outbox.put_message(Refused(0, f"the agent failed: {error!r}", "", ""))
            finally:
                self._ended()

        return run
