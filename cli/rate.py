"""How fast a link is: as the user says, or as the last sync found it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cas.errors import UsageError
from cas.store.layout import Layout
from cli import runs
from cli.runs import Record

# A shorter fetch says more of its start than of the link.
LEAST_SIZE = 1_000_000  # bytes
LEAST_SECONDS = 1.0
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMG]?)(?:B(?:/s)?)?")
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


@dataclass(frozen=True, slots=True)
class Rate:
    """Wire bytes a second; `run` is the id of the run that found it, empty where it was given."""

    value: float
    run: str = ""


def parse_rate(text: str) -> Rate:
    """`80k`, `1.5M`, `250000`: bytes a second, with decimal units. Raises UsageError."""
    match = _RATE.fullmatch(text.strip())
    value = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if value <= 0:
        raise UsageError(f"{text!r} is no rate", advice="write bytes a second: 80k, 1.5M")
    return Rate(value)


def measured_rate(layout: Layout) -> Rate | None:
    """That of the newest sync on record that brought enough to tell: of its tiers the one in which
    most came in a second, since of all it had the least to wait for a scan."""
    newest, found = -1, None
    for run, path in runs.recorded_in(layout).items():
        record = runs.read(path)
        finished = record.get("finished_ms")
        rates = list(_rates(record))
        if rates and isinstance(finished, int) and finished > newest:
            newest, found = finished, Rate(max(rates), run.hex())
    return found


def _rates(record: Record) -> Iterator[float]:
    tiers = record.get("tiers")
    for tier in tiers if isinstance(tiers, list) else []:
        if not isinstance(tier, dict):
            continue
        size, seconds = tier.get("wire_in"), tier.get("seconds")
        if not isinstance(size, int) or not isinstance(seconds, (int, float)):
            continue
        if size >= LEAST_SIZE and seconds >= LEAST_SECONDS:
            yield size / seconds
