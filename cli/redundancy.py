"""What `cas redundancy` found out, as tables and as JSON."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cas.redundancy.overlap import Overlap, members_of
from cas.redundancy.places import Place, Places
from cas.redundancy.tally import Count
from cli import output
from cli.summary import print_table
from cli.table import Column, cut_front, render
from cli.tiers import Scanned

SORTS = {
    "directory": "directories",
    "archive": "archives",
    "kind": "kinds",
    "file": "files",
}  # in JSON, and the field of `Places`

_TIERS = (
    Column("tier", right=False),
    Column("adds"),
    Column("exclusive", expendable=1),
    Column("shared"),
    Column("unique", expendable=2),
    Column("unpacked", expendable=3),
    Column("logical", expendable=4),
    Column("", right=False, expendable=5),
)
_ORDER = (Column("soonest", right=False), Column("adds"), Column("so far", expendable=1))
_PAIRS = (Column("tier", right=False), Column("and", right=False), Column("both"),
          Column("of the smaller"))  # fmt: skip
_PLACE = (
    Column("repeated"),
    Column("shared", expendable=2),
    Column("unpacked", expendable=1),
)
_NUMBERS = 40  # cells that the columns before a place's name take, about
_NAME_LEAST = 30


@dataclass(frozen=True, slots=True)
class Findings:
    """All that was found out about tiers, in their order."""

    tiers: Sequence[Scanned]
    counted: Count
    overlap: Overlap
    matrix: Sequence[Sequence[int]]
    places: Places

    @property
    def names(self) -> list[str]:
        """The tiers'."""
        return [tier.name for tier in self.tiers]

    def orders(self) -> dict[str, list[int]]:
        """The tiers as they stand, and in the order that makes most usable soonest."""
        return {"given": list(range(len(self.tiers))), "soonest": self.overlap.soonest(self._worth)}

    def wait(self, order: Sequence[int]) -> float:
        """See `Overlap.mean_wait`."""
        return self.overlap.mean_wait(order, self._worth)

    @property
    def _worth(self) -> list[int]:
        return [tier.logical for tier in self.counted.tiers]

    def percent(self, one: int, other: int) -> float:
        """What two tiers share, of the smaller of them."""
        matrix = self.matrix
        return 100 * matrix[one][other] / max(1, min(matrix[one][one], matrix[other][other]))


def json_events(found: Findings) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Events and their fields (docs/cli.md)."""
    adds = found.overlap.adds(range(len(found.tiers)))
    for number, (tier, counted) in enumerate(zip(found.tiers, found.counted.tiers, strict=True)):
        yield (
            "tier",
            {
                "tier": tier.name,
                "snapshot": tier.row.id.hex(),
                "finished_ms": tier.row.finished_ms,
                "complete": tier.row.complete,
                "files": counted.files,
                "unknown": counted.unknown,
                "chunks": counted.chunks,
                "logical": counted.logical,
                "unpacked": counted.unpacked,
                "unique": found.matrix[number][number],
                "exclusive": found.overlap.exclusive(number),
                "shared": found.overlap.shared(number),
                "adds": adds[number],
            },
        )
    for one, other in _pairs(found):
        tiers, both = [found.names[one], found.names[other]], found.matrix[one][other]
        percent = round(found.percent(one, other), 2)
        yield "pair", {"tiers": tiers, "both": both, "percent": percent}
    for name, order in found.orders().items():
        yield (
            "order",
            {
                "order": name,
                "tiers": [found.names[tier] for tier in order],
                "adds": found.overlap.adds(order),
                "mean_wait": round(found.wait(order)),
            },
        )
    for sort, field in SORTS.items():
        for place in getattr(found.places, field):
            yield "place", {"sort": sort, **_place_fields(found, sort, place)}
    yield (
        "summary",
        {
            "tiers": len(found.tiers),
            "unpacked": sum(tier.unpacked for tier in found.counted.tiers),
            "unique": found.overlap.total,
            "repeated": sum(found.counted.repeated),
        },
    )


def _place_fields(found: Findings, sort: str, place: Place) -> dict[str, object]:
    fields: dict[str, object] = {}
    if sort == "kind":
        fields |= output.name_fields("kind", place.name)
    else:
        fields["tier"] = found.names[place.tier]
        fields |= output.name_fields("path", b"/" + place.name)
    return fields | {
        "files": place.files,
        "unpacked": place.unpacked,
        "repeated": place.repeated,
        "shared": place.shared,
        "with": [found.names[tier] for tier in members_of(place.partners) if tier != place.tier],
    }


def _pairs(found: Findings) -> list[tuple[int, int]]:
    """Those that share anything, those that share most first."""
    tiers = range(len(found.tiers))
    pairs = [
        (one, other) for one in tiers for other in tiers[one + 1 :] if found.matrix[one][other]
    ]
    return sorted(pairs, key=lambda pair: -found.matrix[pair[0]][pair[1]])


def print_findings(found: Findings, *, most: int, size: Callable[[int], str]) -> None:
    """Tables, what matters most first."""
    print_table(_TIERS, _tier_rows(found, size))
    if len(found.tiers) > 1:
        output.result("")
        _print_matrix(found, most, size)
        _print_order(found, size)
    places = found.places
    for title, counted, listed in (
        ("directory", "files", places.directories),
        ("archive", "files", places.archives),
        ("kind", "files", places.kinds),
        ("file that other tiers have too", "tiers", places.files),
    ):
        if listed:
            output.result("")
            columns = (*_PLACE, Column(counted, expendable=3), Column(title, right=False))
            print_table(columns, [_place_row(found, place, counted, size) for place in listed])


def _tier_rows(found: Findings, size: Callable[[int], str]) -> list[list[str]]:
    adds = found.overlap.adds(range(len(found.tiers)))
    rows = []
    for number, (tier, counted) in enumerate(zip(found.tiers, found.counted.tiers, strict=True)):
        unique, exclusive = found.matrix[number][number], found.overlap.exclusive(number)
        numbers = (adds[number], exclusive, unique - exclusive, unique, counted.unpacked,
                   counted.logical)  # fmt: skip
        state = "" if tier.row.complete else "not all here"
        if counted.unknown:
            state = f"{output.plural(counted.unknown, 'file')} of unknown chunks"
        rows.append([_label(number, tier.name), *map(size, numbers), state])
    if len(rows) > 1:
        counted_ = found.counted.tiers
        unpacked, logical = sum(t.unpacked for t in counted_), sum(t.logical for t in counted_)
        total = size(found.overlap.total)
        rows.append(["together", total, "", "", total, size(unpacked), size(logical), ""])
    return rows


def _label(number: int, name: str) -> str:
    return f"{number + 1} {output.printable(name)}"


def _print_matrix(found: Findings, most: int, size: Callable[[int], str]) -> None:
    """Bytes above the diagonal, percent of the smaller below it; a list of pairs where that is too
    wide, or too much to look at."""
    tiers = range(len(found.tiers))
    columns = [Column("both", right=False), *(Column(str(number + 1)) for number in tiers)]
    rows = [
        [_label(one, found.names[one]), *(_cell(found, one, other, size) for other in tiers)]
        for one in tiers
    ]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 160
    if max(map(len, render(columns, rows))) <= width:
        print_table(columns, rows)
        return
    pairs = _pairs(found)
    listed = [
        [found.names[one], found.names[other], size(found.matrix[one][other]),
         f"{found.percent(one, other):.1f} %"]
        for one, other in pairs[: 2 * most]
    ]  # fmt: skip
    print_table(_PAIRS, listed)
    if len(pairs) > len(listed):
        output.result(f"and {output.number(len(pairs) - len(listed))} pairs that share less")


def _cell(found: Findings, one: int, other: int, size: Callable[[int], str]) -> str:
    both = found.matrix[one][other]
    if not both:
        return "-"
    return size(both) if one <= other else f"{found.percent(one, other):.1f} %"


def _print_order(found: Findings, size: Callable[[int], str]) -> None:
    orders = found.orders()
    given, soonest = orders["given"], orders["soonest"]
    if given == soonest:
        return
    output.result("")
    come, rows = 0, []
    for tier, added in zip(soonest, found.overlap.adds(soonest), strict=True):
        come += added
        rows.append([_label(tier, found.names[tier]), size(added), size(come)])
    print_table(_ORDER, rows)
    waits = [size(round(found.wait(order))) for order in (given, soonest)]
    output.result(
        f"On average a byte can be used when {waits[1]} have come, as it stands {waits[0]}"
    )


def _place_row(
    found: Findings, place: Place, counted: str, size: Callable[[int], str]
) -> list[str]:
    if place.tier < 0:
        name = output.show(place.name) or "no extension"
    else:
        name = f"{output.printable(found.names[place.tier])}:{output.show_path(place.name)}"
        if sys.stdout.isatty():
            name = cut_front(name, max(_NAME_LEAST, shutil.get_terminal_size().columns - _NUMBERS))
    numbers = map(size, (place.repeated, place.shared, place.unpacked))
    number = place.files if counted == "files" else place.partners.bit_count()
    return [*numbers, output.number(number), name]
