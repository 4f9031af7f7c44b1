"""`cas diff`: what has changed between two snapshots."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cas.errors import EXIT_DONE, NotHeldError, UsageError
from cli import options, output
from cli.options import Target

if TYPE_CHECKING:
    from cas.diff import Change
    from cas.entry import Entry
    from cas.snapshot import Snapshot
    from cas.store.store import Store

MARKS = {"added": "+", "removed": "-", "changed": "!", "metadata": "~", "moved": ">"}


@click.command("diff", short_help="Say what has changed between two snapshots.")
@click.argument("before", metavar="TIER[@WHICH][:PATH]", type=options.parse_target)
@click.argument("after", metavar="[TIER[@WHICH]]", type=options.parse_target, required=False)
@click.option("--content", "content_only", is_flag=True, help="Pass over changes of metadata only.")
@options.plan_option
@options.store_option
@options.bytes_option
@options.json_option
def command(
    before: Target,
    after: Target | None,
    content_only: bool,
    plan_path: str | None,
    store_path: Path | None,
    exact: bool,
    as_json: bool,
) -> int:
    """Say what has changed from one snapshot to another: names that are new (+), gone (-), have
    other content (!) or other metadata (~), and content that has moved to another path (>).

    TIER alone compares its newest snapshot with the one before, TIER@WHICH that one with the
    newest. `cas log --snapshots` lists them.

    \b
    Examples:
      cas diff 02-user-workspace
      cas diff 02-user-workspace@1 02-user-workspace@-1
      cas diff 02-user-workspace@2026-11-30:/home/u/llm
    """
    from cli import wiring

    if after is not None and after.path not in (b"", before.path):
        raise UsageError("two paths cannot be compared", advice="write one path, behind the first")
    size = output.sizes(exact)
    with wiring.reading(wiring.store_root(store_path, plan_path)) as store:
        from cas.diff import What, diff

        old, new = _snapshots(store, before.tier, after.tier if after else None)
        _say_head(old, new, as_json=as_json)
        counts: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for change in diff(store, old, new, before.path):
            counts[change.what.value] += 1
            sizes[change.what.value] += _size(change.after or change.before)
            if change.what is What.METADATA and content_only:
                continue
            _show(change, size, as_json=as_json)
    _say_sum(counts, sizes, size, as_json=as_json)
    return EXIT_DONE


def _snapshots(store: Store, before: str, after: str | None) -> tuple[Snapshot, Snapshot]:
    from cli.selection import snapshot_of

    if after is not None:
        return snapshot_of(store, before), snapshot_of(store, after)
    if before in store.tiers():
        rows = store.snapshots(before)
        if len(rows) < 2:
            raise NotHeldError("only one snapshot of this tier is held", where=before)
        return store.snapshot(rows[-2].id), store.snapshot(rows[-1].id)
    old = snapshot_of(store, before)
    return old, snapshot_of(store, old.tier)


def _say_head(old: Snapshot, new: Snapshot, *, as_json: bool) -> None:
    if as_json:
        sides = {
            side: {"tier": one.tier, "source": one.source, "finished_ms": one.finished_ms,
                   "run": one.run.hex()}
            for side, one in (("before", old), ("after", new))
        }  # fmt: skip
        output.json_line({"event": "diff", **sides})
    else:
        names = [
            f"{output.printable(one.tier)} of {output.moment(one.finished_ms)}"
            for one in (old, new)
        ]
        output.say(f"from {names[0]} to {names[1]}")


def _show(change: Change, size: output.Sizes, *, as_json: bool) -> None:
    from cli.listing import entry_fields

    old, new = change.before, change.after
    if as_json:
        output.json_line(
            {
                "event": "change",
                "what": change.what.value,
                "fields": list(change.fields),
                "before": None if old is None else entry_fields(old),
                "after": None if new is None else entry_fields(new),
            }
        )
        return
    path = output.show_path(change.path)
    if old is not None and new is not None and old.path != new.path:
        path = f"{output.show_path(old.path)} -> {path}"
    notes = _notes(change, size)
    output.result(f"{MARKS[change.what.value]} {path}{f'  ({notes})' if notes else ''}")


def _notes(change: Change, size: output.Sizes) -> str:
    """Sizes, and what differs."""
    from cas.entry import Kind

    old, new = change.before, change.after
    if old is None or new is None:
        one = new or old
        return size(_size(one)) if one is not None and one.kind is Kind.FILE else ""
    parts = [f"{name}" for name in change.fields if name != "content"]
    if "content" in change.fields:
        parts.insert(0, f"{size(_size(old))} -> {size(_size(new))}")
    return ", ".join(parts)


def _size(entry: Entry | None) -> int:
    return entry.size if entry is not None else 0


def _say_sum(
    counts: Counter[str], sizes: Counter[str], size: output.Sizes, *, as_json: bool
) -> None:
    if as_json:
        output.json_line(
            {
                "event": "summary",
                **{what: {"names": counts[what], "bytes": sizes[what]} for what in MARKS},
            }
        )
        return
    parts = [
        f"{output.number(counts[what])} {what} ({size(sizes[what])})"
        for what in MARKS if counts[what]
    ]  # fmt: skip
    output.say(", ".join(parts) or "nothing has changed")
