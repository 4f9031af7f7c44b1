"""What `--bwlimit` says."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from cas.errors import UsageError
from cas.pull.timetable import NO_LIMIT, parse_timetable

MONDAY = datetime(2024, 1, 1)  # noqa: DTZ001  # a local time without a zone is what is asked for


def _at(text: str, days: int = 0, clock: str = "12:00") -> int | None:
    hour, minute = map(int, clock.split(":"))
    when = MONDAY + timedelta(days=days, hours=hour, minutes=minute, seconds=59)
    return parse_timetable(text).rate_at(when)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("1M", 1_000_000),
        ("512k", 512_000),
        ("512K", 512_000),
        ("512kB", 512_000),
        ("512kB/s", 512_000),
        ("512 kB/s", 512_000),
        ("1.5m", 1_500_000),
        ("2Mi", 2 * 2**20),
        ("2MiB", 2 * 2**20),
        ("10Ki", 10_240),
        ("1g", 10**9),
        ("1Gi/s", 2**30),
        ("5000B", 5000),
        (" 1M ", 1_000_000),
        ("off", None),
        ("OFF", None),
    ],
)
def test_one_rate_holds_always(text: str, rate: int | None) -> None:
    for day in range(7):
        for clock in ("00:00", "23:59"):
            assert rate == _at(text, day, clock)


def test_no_limit_is_what_off_says() -> None:
    assert NO_LIMIT == parse_timetable("off")


DAILY = "08:00,512k 12:00,10M 13:00,512k 18:00,30M 23:00,off"


@pytest.mark.parametrize(
    ("clock", "rate"),
    [
        ("00:00", None),
        ("07:59", None),
        ("08:00", 512_000),
        ("11:59", 512_000),
        ("12:00", 10_000_000),
        ("13:00", 512_000),
        ("18:00", 30_000_000),
        ("22:59", 30_000_000),
        ("23:00", None),
    ],
)
def test_a_timetable_of_every_day(clock: str, rate: int | None) -> None:
    for day in range(7):
        assert rate == _at(DAILY, day, clock)


WEEKLY = "Mon-00:00,512k Fri-23:59,10M Sat-10:00,1M Sun-20:00,off"


@pytest.mark.parametrize(
    ("day", "clock", "rate"),
    [
        (0, "00:00", 512_000),
        (4, "23:58", 512_000),
        (4, "23:59", 10_000_000),
        (5, "09:59", 10_000_000),
        (5, "10:00", 1_000_000),
        (6, "19:59", 1_000_000),
        (6, "20:00", None),
    ],
)
def test_a_timetable_of_the_week(day: int, clock: str, rate: int | None) -> None:
    assert rate == _at(WEEKLY, day, clock)


def test_the_last_slot_of_the_week_holds_until_the_first() -> None:
    assert 2_000_000 == _at("Tue-08:00,1M sunday-9:30,2M", 0, "23:00")
    assert 1_000_000 == _at("sunday-9:30,2M Tue-08:00,1M", 2, "00:00")


def test_a_slot_of_a_weekday_stands_in_for_that_of_every_day() -> None:
    text = "08:00,1M Sat-08:00,off 20:00,2M"
    assert 1_000_000 == _at(text, 4, "08:00")
    assert _at(text, 5, "08:00") is None
    assert 2_000_000 == _at(text, 5, "20:00")
    assert text == parse_timetable(text).text


def test_semicolons_separate_too() -> None:
    assert parse_timetable("08:00,1M;20:00,2M").slots == parse_timetable("08:00,1M 20:00,2M").slots


@pytest.mark.parametrize(
    ("text", "part", "advice"),
    [
        ("", "empty", "512k"),
        (" ; ", "empty", "512k"),
        ("fast", "'fast'", "512k"),
        ("512", "'512' has no unit", "512k"),
        ("0", "'0'", "0k"),
        ("0k", "'0k' would bring nothing", "off"),
        ("999B", "'999B' is out of range", "1k"),
        ("2000G", "out of range", "1000G"),
        ("-1M", "'-1M'", "512k"),
        ("1T", "'1T'", "512k"),
        ("8Mbit", "'8Mbit'", "bytes"),
        ("1e6k", "'1e6k'", "512k"),
        ("\u0661k", "is no rate", "512k"),
        ("1M 2M", "'1M'", "08:00,512k"),
        ("08:00 1M", "'08:00'", "08:00,512k"),
        ("08:00,1M,2M", "'08:00,1M,2M'", "08:00,512k"),
        ("24:00,1M", "'24:00'", "23:59"),
        ("08:60,1M", "'08:60'", "23:59"),
        ("8,1M", "'8'", "23:59"),
        ("Mo-08:00,1M", "'Mo'", "Mon"),
        ("Mon-Tue-08:00,1M", "'Mon-Tue'", "Mon"),
        ("08:00,fast", "'08:00,fast': 'fast'", "512k"),
        ("08:00,1M 08:00,2M", "'08:00,2M': this time", ""),
        ("Mon-08:00,1M mon-8:00,2M", "this time", ""),
        ("08:00,512", "'08:00,512': '512' has no unit", "512Ki"),
        ("x" * 10_001, "longer", ""),
    ],
)
def test_what_is_wrong_is_named_with_what_would_be_right(text: str, part: str, advice: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_timetable(text, where="--bwlimit")
    assert part in caught.value.what
    assert advice in caught.value.advice
    assert "--bwlimit" == caught.value.where
