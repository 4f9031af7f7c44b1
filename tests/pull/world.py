"""A source tree, an agent in this process, a store: what the tests of a sync play with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from cas.agent.serve import serve
from cas.interfaces import Index, ScanCache
from cas.plan import Tier
from cas.pull.state import SyncState
from cas.pull.sync import SyncOptions, sync
from cas.store.layout import Layout
from cas.store.memory_index import MemoryIndex, MemoryScanCache
from cas.store.store import Store
from cas.store.writer import Writer
from cas.transport.base import Transport
from cas.transport.memory import pair

LIMIT_SECONDS = 300.0
GIVE_UP_SECONDS = 60.0

Wrap = Callable[[Transport], Transport]


class AgentDialer:
    """Each connection gets an agent of its own, as a task in this loop. `wrap` may put something
    between the client and the lane."""

    name = "the test's source"

    def __init__(self, cache: ScanCache, wrap: Wrap = lambda transport: transport) -> None:
        self.cache = cache
        self.wrap = wrap
        self.connections = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def attaching(self, name: str) -> None:
        """See `Dialer.attaching`."""
        del name

    async def connect(self) -> Transport:
        near, far = pair()
        self.connections += 1
        task = asyncio.create_task(serve(far, self.cache))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return self.wrap(near)


class World:
    """`source` is the tree, `store_root` the store; both below `root`."""

    def __init__(self, root: Path, index: Index | None = None) -> None:
        self.source = root / "source"
        self.source.mkdir()
        self.layout = Layout(root / "store")
        self.layout.create()
        self.index: Index = index if index is not None else MemoryIndex()
        self.cache = MemoryScanCache()
        self.state = SyncState()

    def tier(self, name: str, *parts: str, exclude: Sequence[str] = ()) -> Tier:
        """A tier of directories below the source tree (all of it when none is named)."""
        paths = [self.source / part for part in parts] or [self.source]
        return Tier(name, "far", tuple(bytes(path) for path in paths), tuple(exclude))

    def open(self) -> Store:
        """The store, for reading."""
        return Store(self.layout.root, self.index)

    def sync(
        self,
        *tiers: Tier,
        wrap: Wrap = lambda transport: transport,
        options: SyncOptions | None = None,
    ) -> SyncState:
        """Bring the tiers here with a writer of its own; the state that it ended in."""
        self.state = SyncState()
        asyncio.run(self._sync(tiers, wrap, options or SyncOptions(give_up=GIVE_UP_SECONDS)))
        return self.state

    async def _sync(self, tiers: Sequence[Tier], wrap: Wrap, options: SyncOptions) -> None:
        store = self.open()
        writer = None if options.dry_run else Writer(self.layout, self.index)
        dialers = {"far": AgentDialer(self.cache, wrap)}
        try:
            await asyncio.wait_for(
                sync(tiers, dialers, store, writer, self.state, options), timeout=LIMIT_SECONDS
            )
        finally:
            if writer is not None:
                writer.close()
            store.reader.close()

    def content(self, tier: str) -> dict[bytes, bytes]:
        """What the newest snapshot of `tier` holds: path (as the source names it) -> bytes."""
        store = self.open()
        _, snapshot = store.latest(tier)
        found = {}
        for entry in store.entries(snapshot):
            if entry.content is not None:
                chunks = [store.reader.chunk(id_) for id_, _ in store.chunks_of(entry)]
                found[b"/" + entry.path] = b"".join(chunks)
        store.reader.close()
        return found

    def on_disk(self, *parts: str) -> dict[bytes, bytes]:
        """The regular files of the source tree as they are now."""
        roots = [self.source / part for part in parts] or [self.source]
        return {
            bytes(path): path.read_bytes()
            for root in roots
            for path in root.rglob("*")
            if path.is_file() and not path.is_symlink()
        }
