"""What `cas report` found out, as JSON (docs/cli.md), and the words for its page."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from cas.errors import CasError
from cas.report.facts import Facts, Measures, RunFacts, Words
from cas.report.runs import run_facts
from cas.store.store import Store
from cli import output
from cli.runlog import logged

RUNS_MOST = 200  # the newest
WORDS = Words(
    output.size, output.number, output.duration, output.moment, output.show_path, output.printable
)


def runs_of(store: Store) -> list[RunFacts]:
    """The newest runs, the oldest of them first."""
    return [
        run_facts(one.run, one.begun_ms, one.record, is_running=one.is_running)
        for one in logged(store)[-RUNS_MOST:]
    ]


def json_events(facts: Facts, runs: Sequence[RunFacts]) -> Iterator[tuple[str, dict[str, object]]]:
    """Events and their fields."""
    names = [tier.name for tier in facts.tiers]
    for tier in facts.tiers:
        head = {"tier": tier.name, "finished_ms": tier.finished_ms, "complete": tier.complete,
                "files": tier.files, "chunks": tier.chunks}  # fmt: skip
        yield "tier", {**head, **measures(tier.measures), "exclusive": tier.exclusive,
                       "adds": tier.adds}  # fmt: skip
    for one, other in pairs(facts):
        percent = round(facts.percent(one, other), 2)
        both = facts.matrix[one][other]
        yield "pair", {"tiers": [names[one], names[other]], "both": both, "percent": percent}
    for origin in facts.origins:
        yield "origin", {"tier": origin.tier, "adopted": origin.adopted, "chunks": origin.chunks,
                         "fetched": origin.fetched, "wire": origin.wire}  # fmt: skip
    for flow in facts.flows:
        origin_ = None if flow.origin is None else facts.origins[flow.origin]
        yield "flow", {"from_tier": origin_.tier if origin_ else None,
                       "adopted": origin_.adopted if origin_ else None,
                       "tier": names[flow.to], "bytes": flow.size}  # fmt: skip
    yield from _files(facts, names)
    for run in runs:
        yield "run", _run(run)
    yield "summary", {"tiers": len(facts.tiers), **measures(facts.together),
                      "packed": facts.packed_count, **_extra(facts)}  # fmt: skip


def _files(facts: Facts, names: Sequence[str]) -> Iterator[tuple[str, dict[str, object]]]:
    for file in facts.files:
        yield "file", {"tier": names[file.tier], **output.name_fields("path", b"/" + file.path),
                       "size": file.size, "unpacked": file.unpacked, "repeated": file.repeated,
                       "shared": file.shared}  # fmt: skip
    for packed in facts.packed:
        yield "packed", {"tier": names[packed.tier],
                         **output.name_fields("path", b"/" + packed.path),
                         "size": packed.size, "reason": packed.reason}  # fmt: skip
    for reason in facts.reasons:
        yield "reason", {"reason": reason.reason, "count": reason.count, "bytes": reason.size}


def write_page(path: Path, facts: Facts, runs: Sequence[RunFacts], *, where: str) -> None:
    """Write the page; one that is there is replaced when all of the new one is. Raises CasError,
    UsageError without plotly."""
    from cas.report.page import page

    text = page(facts, runs, pairs(facts), WORDS, where=where, made_ms=time.time_ns() // 1_000_000)
    commit(path, text.encode("utf-8", "backslashreplace"))


def write_pictures(directory: Path, facts: Facts) -> None:
    """Write the pictures into a directory, which is made where it is not there. Raises CasError,
    UsageError without matplotlib."""
    from cas.report.picture import pictures

    made = pictures(facts, WORDS)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CasError(f"cannot be made: {error.strerror}", where=str(directory)) from error
    for name, data in made.items():
        commit(directory / name, data)


def commit(path: Path, data: bytes) -> None:
    """Write a file beside its name, then give it the name. Raises CasError."""
    pending = path.with_name(f".cas-{path.name}")
    try:
        pending.write_bytes(data)
        pending.replace(path)
    except OSError as error:
        with suppress(OSError):
            pending.unlink()
        what = f"cannot be written: {error.strerror}"
        raise CasError(what, where=str(path)) from error


def measures(it: Measures) -> dict[str, int]:
    """The measures of a tier, or of all together."""
    parts = it.parts
    return {
        "logical": it.logical, "unpacked": it.unpacked, "unique": it.unique,
        "fetched": it.fetched, "wire": it.wire, "own": parts.own, "others": parts.others,
        "adopted": parts.adopted, "unknown": parts.unknown, "missing": parts.missing,
    }  # fmt: skip


def pairs(facts: Facts) -> list[tuple[int, int]]:
    """Those that share anything, those that share most first."""
    tiers, matrix = range(len(facts.tiers)), facts.matrix
    found = [(one, other) for one in tiers for other in tiers[one + 1 :] if matrix[one][other]]
    return sorted(found, key=lambda pair: -matrix[pair[0]][pair[1]])


def _run(run: RunFacts) -> dict[str, object]:
    return {
        "run": run.id.hex(), "begun_ms": run.begun_ms, "command": run.command, "state": run.state,
        "seconds": run.seconds, "fetched": run.fetched, "wire_in": run.wire_in,
        "wire_out": run.wire_out, "lanes": run.lanes, "tiers": list(run.tiers),
        "goodput": None if run.goodput is None else round(run.goodput),
        "points": [[p.seconds, p.fetched, p.wire_in, p.lanes] for p in run.points],
    }  # fmt: skip


def _extra(facts: Facts) -> Mapping[str, object]:
    names = ("chunks", "bytes", "wire")
    return {
        "meta": dict(zip(names, facts.meta, strict=True)),
        "again": dict(zip(names, facts.again, strict=True)),
        "damaged": list(facts.damaged),
    }
