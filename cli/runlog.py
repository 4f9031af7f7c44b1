"""How the records of runs are shown. What a record does not say is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cas.store.store import Store
from cli import output, runs
from cli.runs import Record
from cli.summary import print_facts, print_table
from cli.table import Column, cell_width

RUN_DIGITS = 8
NAME_WIDTH = 12  # of a fact about one run
NAMES_WIDTH = 24  # cells, for the tiers of a run; one is always named
RUNS = (
    Column("run", right=False),
    Column("begun", right=False),
    Column("what", right=False, expendable=1),
    Column("fetched"),
    Column("wire in", expendable=4),
    Column("wire out", expendable=5),
    Column("goodput", expendable=2),
    Column("time", expendable=3),
    Column("exit", right=False),
)
TIERS = (
    Column("tier", right=False),
    Column("source", right=False, expendable=4),
    Column("logical", expendable=3),
    Column("fetched"),
    Column("wire in", expendable=1),
    Column("again", expendable=5),
    Column("time", expendable=2),
    Column("", right=False),
)
VERSIONS = {"cas": "cas", "protocol": "protocol", "python": "Python"}
# What a source may have in a record, and what it is called here.
SOURCE_FACTS = {
    "host": "calls itself", "address": "address", "host_key": "host key", "cas": "cas",
    "protocol": "protocol", "python": "Python", "system": "system", "lanes": "lanes",
    "connections": "connections", "lost": "lost", "goodput": "goodput",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Logged:
    """A run: its record (empty where it left none), the snapshots it made (tier, which of the
    tier's, when), and whether it goes on; then its record is what it says of itself now."""

    run: bytes
    record: Record
    snapshots: Sequence[tuple[str, int, int]]
    is_running: bool = False

    @property
    def begun_ms(self) -> int:
        """When it began, as far as is known."""
        begun = self.record.get("started_ms")
        if isinstance(begun, int):
            return begun
        return min((finished for _, _, finished in self.snapshots), default=0)

    @property
    def tiers(self) -> list[Record]:
        """What it says of its tiers."""
        return [tier for tier in _list(self.record.get("tiers")) if isinstance(tier, dict)]

    @property
    def fetched(self) -> int:
        """Bytes of content that it brought."""
        return sum(_int(tier.get("fetched")) for tier in self.tiers)

    @property
    def goodput(self) -> float | None:
        """Of those, in a second."""
        seconds = self.record.get("seconds")
        return self.fetched / seconds if isinstance(seconds, (int, float)) and seconds else None

    def fields(self) -> dict[str, object]:
        """All of it for JSON."""
        goodput = self.goodput
        return {
            "run": self.run.hex(),
            "recorded": bool(self.record) and not self.is_running,
            "running": self.is_running,
            **{name: value for name, value in self.record.items() if name != "run"},
            "fetched": self.fetched,
            "goodput": None if goodput is None else round(goodput),
            "snapshots": [
                {"tier": tier, "number": number, "finished_ms": finished}
                for tier, number, finished in self.snapshots
            ],
        }


def logged(store: Store, digits: str = "") -> list[Logged]:
    """The runs whose ids begin with `digits`, the oldest first."""
    records, snapshots, now = runs.recorded(store), _numbered(store), runs.running(store)
    found = [
        Logged(run, runs.read(records[run]) if run in records else {}, snapshots.get(run, ()))
        for run in {*records, *snapshots} - now.keys()
    ]
    found += [
        Logged(run, said, snapshots.get(run, ()), is_running=True) for run, said in now.items()
    ]
    wanted = [one for one in found if one.run.hex().startswith(digits)]
    return sorted(wanted, key=lambda one: (one.begun_ms, one.run))


def _numbered(store: Store) -> dict[bytes, list[tuple[str, int, int]]]:
    numbers = {
        (tier, row.finished_ms): number
        for tier in store.tiers()
        for number, row in enumerate(store.snapshots(tier), 1)
    }
    return {
        run: [(tier, numbers[tier, finished], finished) for tier, finished in made]
        for run, made in runs.snapshots_of_runs(store).items()
    }


def print_runs(found: Sequence[Logged], size: output.Sizes) -> None:
    """One line for each run."""
    print_table(RUNS, [_row(one, size) for one in found])


def _row(one: Logged, size: output.Sizes) -> list[str]:
    head = [one.run.hex()[:RUN_DIGITS], output.moment(one.begun_ms)]
    if not one.record:
        names = _some([tier for tier, _, _ in one.snapshots])
        return [*head, names, *[""] * 5, "no record: killed, perhaps"]
    record, goodput = one.record, one.goodput
    seconds = record.get("seconds")
    return [
        *head,
        f"{_what(record)} {_some([str(tier.get('name')) for tier in one.tiers])}".strip(),
        size(one.fetched),
        size(_int(record.get("wire_in"))),
        size(_int(record.get("wire_out"))),
        "" if goodput is None else f"{output.size(goodput)}/s",
        output.duration(seconds) if isinstance(seconds, (int, float)) else "",
        _exit(one),
    ]


def _what(record: Record) -> str:
    words = [str(word) for word in _list(record.get("command"))]
    return output.printable(words[0]) if words else ""


def _exit(one: Logged) -> str:
    if one.is_running:
        return "running"
    code = one.record.get("exit", "")
    return "not ended" if code is None else str(code)


def _some(names: Sequence[str]) -> str:
    """As many names as there is room for, and how many more there are."""
    shown = [", ".join(map(output.printable, names[:many])) for many in range(len(names) + 1)]
    most = max((n for n, text in enumerate(shown) if cell_width(text) <= NAMES_WIDTH), default=0)
    most = max(most, min(1, len(names)))
    return shown[most] + (f" and {len(names) - most} more" if most < len(names) else "")


def print_run(one: Logged, size: output.Sizes) -> None:
    """All that is known of one run."""
    print_facts(_facts(one, size), NAME_WIDTH)
    for source in _list(one.record.get("sources")):
        if isinstance(source, dict):
            print_facts([("source", _source(source))], NAME_WIDTH)
    for tier, number, finished in one.snapshots:
        made = f"{output.printable(tier)}@{number}, finished {output.moment(finished)}"
        print_facts([("snapshot", made)], NAME_WIDTH)
    print_facts((("event", _event(event)) for event in _list(one.record.get("events"))), NAME_WIDTH)
    if one.tiers:
        print_table(TIERS, [_tier(tier, size) for tier in one.tiers])


def _facts(one: Logged, size: output.Sizes) -> Iterator[tuple[str, str]]:
    record = one.record
    yield "run", one.run.hex()
    if not record:
        yield "record", "none: it was killed"
        return
    words = [str(word) for word in _list(record.get("command"))]
    if words:
        yield "command", output.printable(" ".join(["cas", *words]))
    yield "begun", output.moment(one.begun_ms)
    if isinstance(record.get("finished_ms"), int):
        yield "ended", output.moment(record["finished_ms"])
    versions = [f"{label} {record[name]}" for name, label in VERSIONS.items() if name in record]
    yield "here", output.printable(", ".join([str(record.get("host", "")), *versions]))
    yield "exit", _exit(one)
    if record.get("error"):
        yield "error", output.printable(str(record["error"]))
    wire = [f"{size(_int(record.get(name)))} {way}" for name, way in
            (("wire_in", "in"), ("wire_out", "out"))]  # fmt: skip
    yield "wire", ", ".join(wire)
    lanes = record.get("lanes")
    if isinstance(lanes, dict) and lanes:
        best = [f"{count} from {source}" for source, count in lanes.items()]
        yield "lanes", output.printable(", ".join(best)) + " did best"
    goodput = one.goodput
    if goodput is not None:
        yield "goodput", f"{output.size(goodput)}/s, {size(one.fetched)} that were new here"


def _source(source: Record) -> str:
    facts = [f"{label} {_fact(source[name])}" for name, label in SOURCE_FACTS.items()
             if source.get(name) not in (None, "")]  # fmt: skip
    return output.printable(": ".join([str(source.get("name", "")), ", ".join(facts)]))


def _fact(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _event(event: object) -> str:
    if not isinstance(event, dict):
        return output.printable(str(event))
    when = event.get("time_ms")
    head = f"{output.moment(when)} " if isinstance(when, int) else ""
    return head + output.printable(str(event.get("text", "")))


def _tier(tier: Record, size: output.Sizes) -> list[str]:
    counts = ("logical", "fetched", "wire_in", "fetched_again")
    left_out = _int(tier.get("left_out"))
    state = "complete" if tier.get("complete") else str(tier.get("phase", ""))
    return [
        output.printable(str(tier.get("name", ""))),
        output.printable(str(tier.get("source", ""))),
        *(size(_int(tier.get(name))) for name in counts),
        output.duration(_float(tier.get("seconds"))),
        output.printable(f"{state}, {left_out} left out" if left_out else state),
    ]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _float(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
