"""The work of `cas verify`, and what it says."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cas.entry import Problem, path_order
from cas.errors import EXIT_DAMAGE, EXIT_DONE, EXIT_LEFT_OUT
from cas.store.layout import Layout
from cli import output, wiring
from cli.counter import counting
from cli.events import problem_fields
from cli.options import Target
from cli.selection import select
from cli.summary import problem_text

if TYPE_CHECKING:
    from cas.store.store import Store
    from cas.verify.report import SnapshotCheck, StoreReport
    from cas.verify.store import Repair
    from cas.verify.tree import VerifyReport

REPAIR_HINT = "`cas verify --repair` lets `cas sync` fetch it again"


def check_store(root: Path, *, repair: bool, as_json: bool) -> int:
    """Verify the store at `root`; with `repair`, make its index say what is really there."""
    from cas.verify.store import repair_store

    if not repair:
        with wiring.reading(root) as store:
            report = _verify(store)
        _print_store(report, None, as_json)
    else:
        Layout(root).check()
        with wiring.writing(root) as (store, _):
            report = _verify(store)
            done = repair_store(store, report)
        _print_store(report, done, as_json)
    if report.damaged:
        return EXIT_DAMAGE
    return EXIT_LEFT_OUT if report.incomplete else EXIT_DONE


def _verify(store: Store) -> StoreReport:
    from cas.verify.store import verify_store

    total = sum(row.size for row in store.index.packs().values())
    with counting("verified", total, "pack") as count:
        return verify_store(store, count)


def _print_store(report: StoreReport, repair: Repair | None, as_json: bool) -> None:
    if as_json:
        _store_events(report, repair)
        return
    packs = report.packs
    for damage in packs.damages:
        lies = f" ({output.plural(damage.chunks, 'chunk')})" if damage.chunks else ""
        output.result(f"{damage.where}: {output.printable(damage.what)}{lies}")
    if packs.more_damages:
        output.result(f"and {output.number(packs.more_damages)} places more")
    for check in report.snapshots:
        if check.newest or check.damaged or check.pages_lost or check.lost:
            _print_snapshot(check)
    output.say(
        f"{output.plural(packs.packs, 'pack')} ({output.size(packs.bytes)}) read, "
        f"{output.plural(packs.chunks, 'chunk')} right, {output.number(len(packs.lost))} lost"
    )
    if packs.unindexed:
        count = output.plural(packs.unindexed, "whole record")
        output.say(f"{count} not in the index; `cas repair --rebuild-index` enters them")
    if repair is not None:
        _print_repair(repair)
    elif report.damaged:
        output.say(REPAIR_HINT)


def _print_snapshot(check: SnapshotCheck) -> None:
    tier = output.printable(check.row.tier)
    if not check.newest:
        tier = f"{tier}, snapshot of {output.moment(check.row.finished_ms)}"
    output.result(f"{tier}: {_state(check)}")
    for problem in check.names:
        output.result(f"  {problem_text(problem)}")
    more = check.damaged + check.missing + check.pages_lost - len(check.names)
    if more > 0:
        output.result(f"  and {output.number(more)} more")


def _state(check: SnapshotCheck) -> str:
    if check.lost:
        return "its snapshot is missing or damaged"
    parts = [f"{output.plural(check.damaged, 'file')} damaged"] if check.damaged else []
    parts += [f"{output.plural(check.missing, 'file')} not here"] if check.missing else []
    pages = check.pages_lost
    parts += [f"{output.plural(pages, 'page')} of names lost"] if pages else []
    return ", ".join(parts) or f"{output.plural(check.files, 'file')}, complete"


def _print_repair(repair: Repair) -> None:
    output.say(
        f"{output.plural(repair.forgotten, 'chunk')} will be fetched again by the next `cas sync`, "
        f"{output.number(repair.relocated)} found in another place"
    )
    if repair.set_aside:
        count = output.plural(repair.set_aside, "snapshot")
        output.say(f"{count} forgotten: `cas sync` makes new ones")


def _store_events(report: StoreReport, repair: Repair | None) -> None:
    packs = report.packs
    for damage in packs.damages:
        fields = {"where": damage.where, "what": damage.what, "chunks": damage.chunks}
        output.json_event("damage", fields)
    for check in report.snapshots:
        output.json_event("snapshot", _snapshot_fields(check))
    summary: dict[str, object] = {
        "packs": packs.packs,
        "bytes": packs.bytes,
        "chunks": packs.chunks,
        "lost": len(packs.lost),
        "unindexed": packs.unindexed,
        "unlisted": report.unlisted,
        "damaged": report.damaged,
    }
    if repair is not None:
        summary |= {
            "forgotten": repair.forgotten,
            "relocated": repair.relocated,
            "set_aside": repair.set_aside,
        }
    output.json_event("summary", summary)


def _snapshot_fields(check: SnapshotCheck) -> dict[str, object]:
    return {
        "tier": check.row.tier,
        "snapshot": check.row.id.hex(),
        "newest": check.newest,
        "complete": check.whole,
        "files": check.files,
        "damaged": check.damaged,
        "missing": check.missing,
        "pages_lost": check.pages_lost,
        "lost": check.lost,
        "names": [problem_fields(problem) for problem in check.names],
    }


def check_tree(
    root: Path, targets: Sequence[Target], tree: Path, *, owners: bool, as_json: bool
) -> int:
    """Compare what is below `tree` with the targets."""
    from cas.restore.select import merged
    from cas.verify.tree import VerifyOptions, verify_tree

    with wiring.reading(root) as store:
        selected = select(store, targets)
        entries = merged(part.shortened() for part in selected)
        with counting("compared", sum(part.size() for part in selected), "name") as count:
            settings = VerifyOptions(metadata=True, owners=owners, progress=count)
            report = verify_tree(entries, tree, store.reader, settings)
    _print_tree(report, as_json)
    if not report.ok:
        return EXIT_DAMAGE
    return EXIT_LEFT_OUT if report.unchecked else EXIT_DONE


def _print_tree(report: VerifyReport, as_json: bool) -> None:
    kinds = {
        "missing": report.missing,
        "differing": report.differing,
        "metadata": report.metadata,
        "unchecked": report.unchecked,
    }
    for kind, problems in kinds.items():
        for problem in sorted(problems, key=lambda problem: path_order(problem.path)):
            if as_json:
                output.json_event(kind, _difference_fields(problem))
            else:
                output.result(problem_text(problem))
    counts = {kind: len(problems) for kind, problems in kinds.items()}
    if as_json:
        output.json_event("summary", {"names": report.names, "bytes": report.bytes, **counts})
        return
    output.say(
        f"{output.plural(report.names, 'name')} ({output.size(report.bytes)}) compared: "
        f"{output.number(counts['missing'])} missing, "
        f"{output.number(counts['differing'])} of other content or kind, "
        f"{output.number(counts['metadata'])} differences of metadata"
    )


def _difference_fields(problem: Problem) -> dict[str, object]:
    return {**output.name_fields("path", problem.path), "reason": problem.reason}


def write_manifest(root: Path, targets: Sequence[Target]) -> int:
    """Write the digests of the targets' files to standard output."""
    from cas.manifest import manifest, why_not_listed
    from cas.restore.select import merged

    left_out = 0
    with wiring.reading(root) as store:
        entries = merged(part.shortened() for part in select(store, targets))
        for entry in entries:
            for line in manifest([entry]):
                sys.stdout.buffer.write(line)
            left_out += bool(why_not_listed(entry))
    sys.stdout.flush()
    if left_out:
        output.say(f"{output.plural(left_out, 'file')} without a digest; comments say which")
    return EXIT_LEFT_OUT if left_out else EXIT_DONE
