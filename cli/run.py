"""One run of the engine for `cas scan` or `cas sync`: shown, recorded, reported.

The run is recorded in the store whatever ended it, as `runs/<run id>.json`: the JSON summary, and
when, by which command line and with which versions it was made.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from cas.errors import EXIT_DONE, EXIT_INTERRUPTED, EXIT_LEFT_OUT, CasError, StoreError
from cas.plan import Plan, Tier
from cas.pull.record import Limit, Record
from cas.pull.state import SyncState
from cas.pull.sync import SyncOptions, new_run, sync
from cas.store.layout import Layout
from cas.store.store import Store
from cas.store.writer import Writer, now_ms
from cas.transport.base import Dialer
from cli import output, wiring
from cli.events import summary_fields
from cli.forecast import Forecast, foretell
from cli.progress import display_for, shown
from cli.pulling import Order, may_get_agent
from cli.rate import Rate, measured_rate
from cli.running import Recorder
from cli.runrecord import Series, remembered_lanes, write_record
from cli.summary import report


@dataclass(slots=True)
class _Run:
    """One run, and how it came out."""

    id: bytes
    order: Order
    state: SyncState
    started_ms: int
    began: float
    exit_code: int = EXIT_DONE
    error: str = ""
    fields: dict[str, object] = field(default_factory=lambda: {"exit": None})
    forecast: Forecast | None = None
    series: Series = field(init=False)

    def __post_init__(self) -> None:
        self.series = Series(self.state)

    def ended(self) -> None:
        """Take down how it came out, from the exception under way if there is one."""
        error = sys.exc_info()[1]
        if isinstance(error, CasError):
            self.exit_code, self.error = error.exit_code, str(error)
        elif isinstance(error, asyncio.CancelledError):  # see `cli/interrupt.py`
            self.exit_code, self.error = EXIT_INTERRUPTED, "interrupted"
        elif error is not None:
            self.exit_code, self.error = 1, repr(error)
        elif not _all_there(self.state, self.order.dry_run):
            self.exit_code = EXIT_LEFT_OUT
        self.fields = summary_fields(
            self.state, time.monotonic() - self.began, self.exit_code, self.forecast
        )
        if self.error:
            self.fields["error"] = self.error


async def carry_out(
    plan: Plan, tiers: Sequence[Tier], dialers: Mapping[str, Dialer], order: Order
) -> int:
    """Do it; the exit code. Raises CasError, and CancelledError when it is interrupted."""
    root = order.store_path.absolute() if order.store_path is not None else Path(plan.store)
    run = _Run(new_run(), order, SyncState(), now_ms(), time.monotonic())
    with ExitStack() as stack:
        store, writer, keeps = _open(stack, root, order, wiring.only_counts(dialers.values()))
        wiring.show_store(dialers.values(), store, keeps=not order.dry_run)
        limit = Limit(order.limit, store.layout if keeps else None, run.id)
        if keeps:
            _record(store.layout, run)  # so that one that is killed is known of
        try:
            async with (
                _recorded(store.layout, run, limit) if keeps else nullcontext(),
                shown(run.series),
                shown(display_for(run.state, as_json=order.as_json)),
            ):
                options = _options(plan, order, Layout(root), limit)
                await sync(tiers, dialers, store, writer, run.state, options, run.id)
            if order.dry_run and writer is not None:
                run.forecast = _forecast(store, [t.name for t in tiers], plan, order, root, limit)
        finally:
            run.ended()
            if keeps:
                _record(store.layout, run)
            # Of one that may begin anew, with an agent, there is nothing to report yet.
            if may_get_agent(plan, order, sys.exc_info()[1]) is None:
                report(
                    run.state,
                    run.fields,
                    dry_run=order.dry_run,
                    as_json=order.as_json,
                    size=output.sizes(order.exact),
                    forecast=run.forecast,
                )
    return run.exit_code


def _open(
    stack: ExitStack, root: Path, order: Order, only_counts: str
) -> tuple[Store, Writer | None, bool]:
    """The store, a writer, and whether what that writes is kept. There is none where the source
    `only_counts` is scanned: contents are made up in it."""
    if not order.dry_run:
        opened = wiring.writing(root, allow_network_fs=order.allow_network_fs)
        return *stack.enter_context(opened), True
    if only_counts:
        if order.keep_scan:
            output.say(f"the scan is not kept: over SFTP, {only_counts} can only be counted")
        return stack.enter_context(wiring.reading_or_empty(root)), None, False
    if order.keep_scan:
        try:
            return *stack.enter_context(wiring.writing(root)), True
        except StoreError as error:  # a sync is going on, perhaps
            output.say(f"the scan is not kept: {error.what}")
    return *stack.enter_context(wiring.apart(root)), False


def _forecast(
    store: Store, names: Sequence[str], plan: Plan, order: Order, root: Path, limit: Limit
) -> Forecast | None:
    """What the tiers that were scanned would cost, at the limit or what the last sync reached."""
    rates = [measured_rate(Layout(root)), Rate(most) if (most := limit.rate_now()) else None]
    known = [rate for rate in rates if rate is not None]
    rate = min(known, key=lambda rate: rate.value, default=None)
    return foretell(store, names, plan, rate, order.level or 0)


def _recorded(layout: Layout, run: _Run, limit: Limit) -> AbstractAsyncContextManager[None]:
    """Tell other terminals how the run goes, as long as the block runs."""
    record = Record(layout, run.id, run.started_ms)
    return shown(Recorder(run.state, record, limit))


def _options(plan: Plan, order: Order, layout: Layout, limit: Limit) -> SyncOptions:
    lanes = {name: order.wishes.lanes or source.lanes for name, source in plan.sources.items()}
    return SyncOptions(
        level=order.level,
        levels={name: wiring.level_for(source) for name, source in plan.sources.items()},
        lanes={name: count for name, count in lanes.items() if count is not None},
        remembered=remembered_lanes(layout),
        limit=limit.rate_now,
        dry_run=order.dry_run,
        give_up=order.wishes.give_up,
    )


def _all_there(state: SyncState, dry_run: bool) -> bool:
    return all((tier.complete or dry_run) and not tier.left_out for tier in state.tiers)


def _record(layout: Layout, run: _Run) -> None:
    write_record(layout, run.id, run.started_ms, run.state, run.series.points, run.fields)
