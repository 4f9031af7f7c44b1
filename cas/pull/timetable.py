"""What `--bwlimit` says: one rate, `off`, or a timetable of the week.

```
limit     = rate | slot { separator slot }
slot      = [ weekday "-" ] hour ":" minute "," rate
rate      = "off" | number unit
unit      = ( "B" | "k" | "M" | "G" | "Ki" | "Mi" | "Gi" ) [ "B" ] [ "/s" ]
separator = spaces or ";"
```

The form is that of rclone's option of the same name, two things apart. A rate always has a unit
(there a bare number counts KiB), and `k`, `M`, `G` are decimal, as sizes are everywhere in cas;
there they are binary, which `Ki`, `Mi`, `Gi` are here too. Letters may be of either case.

A slot holds from its time until the next one; without a weekday it is of every day, and a slot of a
weekday stands in for it. Before the first slot of the week its last one holds. Times are local
ones of this machine, so an hour that a change of the clocks leaves out or repeats is left out or
repeated.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime

from cas.errors import UsageError

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
RATE_LEAST = 1000  # bytes a second: below that, saying that one lives takes all of it
RATE_MOST = 10**12
LENGTH_MOST = 10_000  # characters
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
DAY = 24 * 60  # minutes

_RATE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?) ?([kmg]i?)?(b?)(?:/s)?", re.IGNORECASE | re.ASCII)
_TIME = re.compile(r"(\d\d?):(\d\d)", re.ASCII)
_HOW = "a rate is a number with a unit, such as 512k, 1.5M or 2Mi (bytes a second), or off"


@dataclass(frozen=True, slots=True)
class Timetable:
    """A limit through the week. `slots` are (minute of the week from Monday 0:00, bytes a second or
    None for no limit), in order of time, at least one; `text` is how it was written."""

    text: str
    slots: tuple[tuple[int, int | None], ...]

    def rate_at(self, when: datetime) -> int | None:
        """The limit at a local time, in bytes a second; None is no limit."""
        minute = when.weekday() * DAY + when.hour * 60 + when.minute
        at = bisect_right(self.slots, minute, key=lambda slot: slot[0])
        return self.slots[at - 1][1]  # the last one of the week for what is before the first


NO_LIMIT = Timetable("off", ((0, None),))


def parse_timetable(text: str, where: str = "--bwlimit") -> Timetable:
    """What `text` says; raises UsageError that names the part that is wrong."""
    if len(text) > LENGTH_MOST:
        raise UsageError(f"longer than {LENGTH_MOST} characters", where=where)
    words = text.replace(";", " ").split()
    if not words:
        raise UsageError("it is empty", where=where, advice=_HOW)
    if len(words) == 1 and "," not in words[0]:
        return Timetable(text.strip(), ((0, _rate(words[0], where)),))
    if "," not in text:
        joined = "".join(words)
        if _RATE.fullmatch(joined):
            return Timetable(joined, ((0, _rate(joined, where)),))
    return Timetable(" ".join(words), _slots(words, where))


def _slots(words: list[str], where: str) -> tuple[tuple[int, int | None], ...]:
    every: dict[int, int | None] = {}  # by minute of the day
    of_day: dict[int, int | None] = {}  # by minute of the week
    for word in words:
        day, minute, rate = _slot(word, where)
        slots, key = (every, minute) if day is None else (of_day, day * DAY + minute)
        if key in slots:
            raise UsageError(f"{word!r}: this time was given before", where=where)
        slots[key] = rate
    week = {day * DAY + minute: rate for day in range(7) for minute, rate in every.items()}
    return tuple(sorted((week | of_day).items()))


def _slot(word: str, where: str) -> tuple[int | None, int, int | None]:
    """The weekday or None, the minute of the day, the rate."""
    time, comma, rate = word.partition(",")
    if not comma or "," in rate:
        raise UsageError(
            f"{word!r} is no time with a rate", where=where, advice="such as 08:00,512k"
        )
    weekday, dash, clock = time.rpartition("-")
    day = _weekday(weekday, word, where) if dash else None
    return day, _minute(clock, word, where), _rate(rate, where, word)


def _weekday(text: str, word: str, where: str) -> int:
    known = [day for day, name in enumerate(WEEKDAYS) if text.lower() in (name, name[:3])]
    if not known:
        raise UsageError(
            f"{word!r}: {text!r} is no weekday",
            where=where,
            advice="Mon, Tue, Wed, Thu, Fri, Sat or Sun",
        )
    return known[0]


def _minute(text: str, word: str, where: str) -> int:
    match = _TIME.fullmatch(text)
    if match is None or int(match[1]) > 23 or int(match[2]) > 59:
        raise UsageError(
            f"{word!r}: {text!r} is no time of day", where=where, advice="from 00:00 to 23:59"
        )
    return int(match[1]) * 60 + int(match[2])


def _rate(text: str, where: str, word: str = "") -> int | None:
    """Bytes a second, None for off. `word` is what it stands in."""
    if text.lower() == "off":
        return None
    said = f"{word!r}: {text!r}" if word else repr(text)
    match = _RATE.fullmatch(text)
    if match is None:
        is_bits = "bit" in text.lower() or "bps" in text.lower()
        advice = "bytes count here: 8 Mbit/s are 1M" if is_bits else _HOW
        raise UsageError(f"{said} is no rate", where=where, advice=advice)
    number, unit, byte = match.groups(default="")
    if not unit and not byte:
        advice = f"{number}k is decimal, {number}Ki what rclone means by it"
        raise UsageError(f"{said} has no unit", where=where, advice=advice)
    rate = round(float(number) * UNITS[unit.lower()])
    if not rate:
        raise UsageError(f"{said} would bring nothing", where=where, advice="off is no limit")
    if not RATE_LEAST <= rate <= RATE_MOST:
        raise UsageError(f"{said} is out of range", where=where, advice="from 1k to 1000G")
    return rate
