"""The one place that joins `cas` and `indexes`, and where the environment decides where things lie.

A store is made in an order that leaves either none or a whole one: its directory, the lock, an
empty index, and last the file `format`, which makes it a store.

Each function imports what it joins when it is called: the agent needs no store, and the client
starts an agent before it opens one.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cas.errors import PlanError, StoreError, StoreMissing, UsageError
from cas.pull.silence import GIVE_UP_SECONDS

if TYPE_CHECKING:
    from cas.interfaces import ScanCache
    from cas.plan import Plan, Source, Tier
    from cas.store.layout import Layout, WriterLock
    from cas.store.store import Store
    from cas.store.writer import Writer
    from cas.transport.base import Dialer
    from cas.transport.ssh import SshDialer

LOCAL_LEVEL = 1
SSH_LEVEL = 12  # to count with, where the link will choose: it begins with this


def plan_of(path: str | None) -> Plan:
    """The plan at `path`, or plan.toml here or above. Raises PlanError."""
    from cas.plan_load import find_plan, load_plan

    return load_plan(path if path is not None else find_plan(os.getcwd()))


def maybe_plan(path: str | None) -> Plan | None:
    """As `plan_of`, but None where none is named and none is found."""
    from cas.plan_load import find_plan

    if path is None:
        try:
            path = find_plan(os.getcwd())
        except PlanError:
            return None
    return plan_of(path)


def store_root(store: Path | None, plan: str | None) -> Path:
    """Where the store is: as named, or as the plan says."""
    if store is not None:
        return store.expanduser().absolute()
    return Path(plan_of(plan).store)


@contextmanager
def reading(root: Path) -> Iterator[Store]:
    """The store at `root`, to be read while others may write. Raises StoreMissing, DamageError."""
    from cas.store.layout import Layout
    from cas.store.store import Store
    from indexes.index import LmdbIndex

    layout = Layout(root)
    layout.check()
    store = Store(root, LmdbIndex(layout.index, readonly=True))
    try:
        yield store
    finally:
        store.close()


@contextmanager
def reading_or_empty(root: Path) -> Iterator[Store]:
    """As `reading`; where no store is yet, an empty one in memory that leaves nothing behind."""
    from cas.store.layout import Layout
    from cas.store.memory_index import MemoryIndex
    from cas.store.store import Store

    try:
        Layout(root).check()
    except StoreMissing:
        yield Store(root, MemoryIndex())
        return
    with reading(root) as store:
        yield store


@contextmanager
def apart(root: Path) -> Iterator[tuple[Store, Writer]]:
    """As `reading_or_empty`, with a writer: what it adds lies in a directory for temporary files
    as long as the block runs. Raises StoreError."""
    from tempfile import TemporaryDirectory

    from cas.store.layout import Layout
    from cas.store.store import Store
    from cas.store.writer import Writer
    from cli.overlay import OverlayIndex
    from indexes.index import LmdbIndex

    with ExitStack() as stack:
        under = stack.enter_context(reading_or_empty(root))
        directory = stack.enter_context(TemporaryDirectory(prefix="cas-"))
        layout = Layout(Path(directory, "store"))
        layout.create()
        for row in under.snapshots():
            name = row.id.hex()
            (layout.snapshots / name).symlink_to(under.layout.snapshots / name)
        over = LmdbIndex(layout.index, create=True)
        store = Store(layout.root, OverlayIndex(under.index, under.layout.packs, over))
        stack.callback(store.close)
        writer = Writer(layout, store.index)
        stack.callback(writer.close)
        yield store, writer


@contextmanager
def writing(root: Path, *, allow_network_fs: bool = False) -> Iterator[tuple[Store, Writer]]:
    """The store at `root`, made if it is not there, and its one writer; on leaving the block, all
    that was added is committed. Raises StoreLocked, StoreError."""
    from cas.store.filesystem import refuse_network_filesystem
    from cas.store.layout import Layout
    from cas.store.store import Store
    from cas.store.writer import Writer
    from indexes.index import LmdbIndex

    refuse_network_filesystem(root, allowed=allow_network_fs)
    layout = Layout(root)
    with ExitStack() as stack:
        stack.callback(_locked(layout).release)
        if not layout.format.exists():
            _make(layout)
        layout.check()
        store = Store(root, LmdbIndex(layout.index))
        stack.callback(store.close)
        writer = Writer(layout, store.index)
        stack.callback(writer.close)
        yield store, writer


def _locked(layout: Layout) -> WriterLock:
    from cas.store.layout import WriterLock

    try:
        layout.root.mkdir(parents=True, exist_ok=True)
        return WriterLock(layout)
    except OSError as error:
        raise StoreError(
            f"the store cannot be written: {error.strerror}", where=str(layout.root)
        ) from error


def _make(layout: Layout) -> None:
    from indexes.index import LmdbIndex

    ours = {path.name for path in (layout.lock, layout.index, layout.packs, layout.snapshots,
                                   layout.runs)}  # fmt: skip
    foreign = sorted({path.name for path in layout.root.iterdir()} - ours)
    if foreign:
        raise StoreError(
            f"no store, and not empty: it has {foreign[0]!r}",
            where=str(layout.root),
            advice="name an empty directory, or one that is not there yet",
        )
    LmdbIndex(layout.index, create=True).close()
    layout.create()


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line says about connections, before what the plan says."""

    ssh_config: str | None = None
    lanes: int | None = None
    give_up: float = GIVE_UP_SECONDS


def dialer_for(source: Source, wishes: Wishes) -> Dialer:
    """How to reach the agent of `source`. Raises UsageError for a host or command that can never
    work."""
    if source.host is None:
        from cas.transport.child import ChildDialer

        return ChildDialer(_words(source) or local_agent(), name=source.name)
    if source.via == "sftp":
        from cas.sftp.source import SftpDialer

        return SftpDialer(
            ssh_dialer(source, None, wishes),
            source.host,
            source.name,
            lanes=wishes.lanes or source.lanes,
            give_up=wishes.give_up,
        )
    from cas.bootstrap.launch import find_agent

    return ssh_dialer(source, _words(source) or find_agent(source.name), wishes)


def ssh_dialer(source: Source, words: Sequence[str] | None, wishes: Wishes) -> SshDialer:
    """How to reach the program that `words` start on the host of `source`; None: no program, only
    its files."""
    from cas.transport.ssh import SshDialer

    assert source.host is not None
    config = wishes.ssh_config or source.ssh_config
    return SshDialer(source.host, words, config_paths=None if config is None else [config])


def level_for(source: Source) -> int:
    """The zstd level for what comes from `source`: the plan's, or 0, as the link leaves time for.

    From this machine nothing is waited for but the processor, and level 1 takes two thirds of the
    time of level 3 for 5 % more bytes.
    """
    return source.level or (LOCAL_LEVEL if source.host is None else 0)


def dialers_for(plan: Plan, tiers: tuple[Tier, ...], wishes: Wishes) -> dict[str, Dialer]:
    """A dialer for each source that `tiers` need."""
    names = dict.fromkeys(tier.source for tier in tiers)
    return {name: dialer_for(plan.sources[name], wishes) for name in names}


def only_counts(dialers: Iterable[Dialer]) -> str:
    """The name of a source that a scan can only count, if there is one; else nothing."""
    from cas.sftp.source import SftpDialer

    fars = map(_far, dialers)
    return next((far.source for far in fars if isinstance(far, SftpDialer)), "")


def _far(dialer: Dialer) -> Dialer:
    """The dialer itself, of one that was called early."""
    from cas.transport.early import EarlyDialer

    return dialer.dialer if isinstance(dialer, EarlyDialer) else dialer


def show_store(dialers: Iterable[Dialer], store: Store, *, keeps: bool) -> None:
    """Tell those who must know it what is held, and whether what comes is kept there."""
    from cas.sftp.source import SftpDialer

    for far in map(_far, dialers):
        if isinstance(far, SftpDialer):
            far.store, far.keeps = store, keeps


def _words(source: Source) -> list[str]:
    try:
        return shlex.split(source.agent or "")
    except ValueError as error:
        raise UsageError(
            f"the agent's command cannot be read: {error}", where=f"source {source.name}"
        ) from error


def local_agent() -> tuple[str, ...]:
    """The command that starts this very cas as the agent on this machine."""
    return (sys.executable, os.path.join(os.path.dirname(__file__), "__main__.py"), "serve")


def cache_directory() -> Path:
    """Where the agent keeps its cache: $XDG_CACHE_HOME/cas, or ~/.cache/cas."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(named) if os.path.isabs(named) else Path.home() / ".cache"
    return base / "cas"


def scan_cache() -> ScanCache:
    """The agent's cache; one in memory where none can be kept on disk."""
    from cas.store.filesystem import refuse_network_filesystem
    from indexes.scancache import open_scan_cache

    return open_scan_cache(
        cache_directory(), memory=_forgetful_cache, check=refuse_network_filesystem
    )


def _forgetful_cache() -> ScanCache:
    from cas.store.memory_index import MemoryScanCache

    return MemoryScanCache()
