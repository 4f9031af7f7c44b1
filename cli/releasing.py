"""The work of `cas release`, and what it says."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from cas import __version__
from cas.entry import Entry, Kind
from cas.errors import EXIT_DONE, EXIT_LEFT_OUT, CasError, NotHeldError, SourceError
from cas.manifest import manifest
from cas.release.check import Doubt, Fingerprint, changed, fingerprint, unsafe
from cas.release.statement import TierStatement, statement
from cas.store.writer import now_ms
from cli import interrupt, output, wiring
from cli.counter import Count, counting
from cli.output import Sizes
from cli.summary import print_table
from cli.table import Column

if TYPE_CHECKING:
    from cas.plan import Plan, Tier
    from cas.snapshot import Snapshot
    from cas.store.store import Store

SHOWN = 20  # unsafe names of a tier, on a terminal; the statement has all
COLUMNS = (
    Column("tier", right=False),
    Column("safe", right=False),
    Column("files"),
    Column("size"),
    Column("unsafe"),
    Column("scanned", right=False, expendable=1),
)


@dataclass(frozen=True, slots=True)
class Order:
    """What the command line asks for."""

    names: tuple[str, ...]
    plan_path: str | None
    store_path: Path | None
    ask: bool
    as_json: bool
    output: Path | None
    sums: Path | None
    wishes: wiring.Wishes
    size: Sizes


@dataclass(slots=True)
class _Now:
    """What the source says now of one tier. Nothing is in `entries` when it is all as held."""

    entries: dict[bytes, Fingerprint] = field(default_factory=dict)
    left_out: list[Doubt] = field(default_factory=list)
    failure: str = ""

    def see(self, entries: Iterable[Entry]) -> None:
        """Take in entries of the scan."""
        self.entries |= {entry.path: fingerprint(entry) for entry in entries}


def release(order: Order) -> int:
    """Do it; the exit code. Raises CasError, KeyboardInterrupt."""
    plan = wiring.plan_of(order.plan_path)
    tiers = _tiers(plan, order.names)
    root = order.store_path.absolute() if order.store_path is not None else Path(plan.store)
    with wiring.reading(root) as store:
        snapshots = {tier.name: _snapshot(store, tier.name) for tier in tiers}
        now = _ask(plan, tiers, store, order.wishes) if order.ask else {}
        total = sum(snapshot.logical for snapshot in snapshots.values())
        with counting("verified", total) as count:
            said = [
                _state(store, tier, snapshots[tier.name], now.get(tier.name), count)
                for tier in tiers
            ]
        if order.sums is not None:
            with order.sums.open("wb") as out:
                _write_sums(store, snapshots.values(), out)
    _tell(said, order)
    return EXIT_DONE if all(tier.is_safe for tier in said) else EXIT_LEFT_OUT


def _tiers(plan: Plan, names: tuple[str, ...]) -> tuple[Tier, ...]:
    """The tiers that names of tiers, sets and sources stand for."""
    wanted: list[str] = []
    for name in names:
        of_source = [tier.name for tier in plan.tiers if tier.source == name]
        wanted += of_source if of_source and name in plan.sources else [name]
    return plan.select(wanted)


def _snapshot(store: Store, tier: str) -> Snapshot:
    return store.latest(tier)[1]


def _ask(plan: Plan, tiers: Sequence[Tier], store: Store, wishes: wiring.Wishes) -> dict[str, _Now]:
    """Scan the tiers again, fetching nothing: what the sources say now."""
    now = {tier.name: _Now() for tier in tiers}
    for source in dict.fromkeys(tier.source for tier in tiers):
        of_source = tuple(tier for tier in tiers if tier.source == source)
        try:
            interrupt.run(_scan(plan, of_source, store, wishes, now))
        except (CasError, OSError) as error:
            for tier in of_source:
                now[tier.name].failure = f"the source could not be asked: {error}"
    return now


async def _scan(
    plan: Plan,
    tiers: tuple[Tier, ...],
    store: Store,
    wishes: wiring.Wishes,
    now: dict[str, _Now],
) -> None:
    from cas.pull.state import SyncState
    from cas.pull.sync import SyncOptions, sync

    def see(tier: str, entries: Sequence[Entry]) -> None:
        now[tier].see(entries)

    state = SyncState()
    options = SyncOptions(dry_run=True, see=see, give_up=wishes.give_up)
    dialers = wiring.dialers_for(plan, tiers, wishes)
    await sync(tiers, dialers, store, None, state, options)
    for tier in state.tiers:
        if tier.phase.value != "done":
            raise SourceError("the scan did not end", where=tier.source)
        now[tier.name].left_out = [
            Doubt(problem.path, problem.reason) for problem in tier.problems if problem.left_out
        ]


def _state(
    store: Store, tier: Tier, snapshot: Snapshot, now: _Now | None, count: Count
) -> TierStatement:
    doubts = {doubt.path: doubt for doubt in unsafe(store.entries(snapshot), store.reader, count)}
    for problem in snapshot.problems:
        if problem.left_out:
            doubts[problem.path] = Doubt(problem.path, problem.reason)
    if set(snapshot.roots) != set(tier.paths):
        doubts[b""] = Doubt(b"", "the plan names other paths than those that were scanned")
    if now is not None and now.failure:
        doubts[b""] = Doubt(b"", now.failure)
    elif now is not None:
        news = changed(store.entries(snapshot), now.entries) if now.entries else ()
        for doubt in (*now.left_out, *news):
            doubts.setdefault(doubt.path, doubt)
    held = store.held(snapshot)
    files = [entry.size for entry in store.entries(snapshot) if entry.kind is Kind.FILE]
    return TierStatement(
        tier.name,
        tier.source,
        snapshot.host,
        store.latest(tier.name)[0].id.hex(),
        snapshot.finished_ms,
        snapshot.roots,
        sum(page.entries for page in snapshot.pages),
        len(files),
        sum(files),
        list(doubts.values()),
        [Doubt(path, reason) for path, reason in held.packed],
        now is not None and not now.failure,
    )


def _write_sums(store: Store, snapshots: Iterable[Snapshot], out: BinaryIO) -> None:
    for snapshot in snapshots:
        out.writelines(manifest(store.entries(snapshot)))


def _tell(said: Sequence[TierStatement], order: Order) -> None:
    text = statement(said, made_ms=now_ms(), cas=__version__, host=socket.gethostname())
    if order.output is not None:
        try:
            order.output.write_bytes(text)
        except OSError as error:
            raise NotHeldError(
                f"the statement cannot be written: {error.strerror}", where=str(order.output)
            ) from error
    if order.as_json:
        sys.stdout.write(text.decode("ascii"))
        return
    print_table(COLUMNS, [_row(tier, order.size) for tier in said])
    for tier in said:
        for doubt in tier.doubts[:SHOWN]:
            output.result(f"{tier.name}: {output.show_path(doubt.path)}: {doubt.reason}")
        if len(tier.doubts) > SHOWN:
            output.result(f"{tier.name}: and {len(tier.doubts) - SHOWN} more (-o FILE has them)")
    output.result(_verdict(said))


def _row(tier: TierStatement, size: Sizes) -> list[str]:
    return [
        tier.name,
        "yes" if tier.is_safe else "NO",
        output.number(tier.files),
        size(tier.size),
        output.number(len(tier.doubts)),
        output.moment(tier.scanned_ms),
    ]


def _verdict(said: Sequence[TierStatement]) -> str:
    unsafe_tiers = [tier.name for tier in said if not tier.is_safe]
    if not unsafe_tiers:
        return "All of it is held here, verified just now, and as the source has it. It may go."
    if not any(tier.doubts for tier in said):
        return "All of it is held here and verified, but the source was not asked: it must stay."
    return f"It must stay: not all of {', '.join(unsafe_tiers)} is safe here."
