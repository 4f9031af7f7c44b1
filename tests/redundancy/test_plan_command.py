"""`cas plan` as a user has it: costs, times, other orders and choices."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from cas.errors import UsageError
from cas.store.memory_index import MemoryIndex
from cas.store.store import Store
from cli.rate import Rate, measured_rate, parse_rate
from tests.redundancy.conftest import cas


def _events(at: Path, *arguments: str) -> list[dict[str, Any]]:
    done = cas(at, "plan", "--json", *arguments)
    assert b"" == done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _tiers(events: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {event["tier"]: event for event in events if event["event"] == "tier"}


def test_what_is_missing_is_counted_and_the_wire_estimated(place: Path) -> None:
    events = _events(place, "--rate", "10k")
    tiers = _tiers(events)
    assert ["first", "second", "third"] == list(tiers)
    assert [57_000, 2_000_700, 0] == [tier["missing"] for tier in tiers.values()]
    for tier in tiers.values():
        assert tier["wire_low"] <= tier["wire"] <= tier["wire_high"] <= 1.01 * tier["missing"]
        assert tier["seconds"] == pytest.approx(tier["wire"] / 10_000, abs=0.1)
        assert tier["before"] == tier["wire"]
    summary = events[-1]
    assert summary["event"] == "summary"
    assert summary["wire"] == sum(tier["wire"] for tier in tiers.values())
    assert (10_000, None) == (summary["rate"], summary["run"])


def test_another_order_moves_costs_and_changes_no_total(place: Path) -> None:
    usual, other = _events(place), _events(place, "--order", "third,second")
    assert ["third", "second", "first"] == list(_tiers(other))
    assert [4000, 2_003_700, 50_000] == [tier["missing"] for tier in _tiers(other).values()]
    assert usual[-1]["wire"] == other[-1]["wire"] == other[-1]["before"]
    assert usual[-1]["seconds"] is None
    assert _tiers(other)["third"]["before"] == 0


def test_leaving_a_tier_out_saves_what_no_other_one_needs(place: Path) -> None:
    usual, other = _events(place), _events(place, "--without", "first")
    assert ["second", "third"] == list(_tiers(other))
    saved = usual[-1]["wire"] - other[-1]["wire"]
    assert saved == _tiers(usual)["first"]["saves"] == other[-1]["before"] - other[-1]["wire"]
    assert 0 < saved < _tiers(usual)["first"]["wire"]
    assert [] == list(_tiers(_events(place, "--without", "both", "both")))


def test_the_soonest_order_is_told(place: Path) -> None:
    order = next(event for event in _events(place) if event["event"] == "order")
    assert {"first", "second", "third"} == set(order["tiers"])
    assert order["mean_wait"] <= _events(place)[-1]["mean_wait"]


def test_tables_for_people(place: Path) -> None:
    text = cas(place, "plan", "--rate", "80k").stdout.decode()
    assert ["tier", "wire", "give", "or", "take", "time"] == text.splitlines()[0].split()[:6]
    assert text.splitlines()[4].startswith("together")
    without = cas(place, "plan", "--bytes", "--without", "second")
    assert "without second: " in without.stdout.decode()
    assert "57,000" in without.stdout.decode()
    assert "--rate 80k" in without.stderr.decode()
    ordered = cas(place, "plan", "--order", "second").stdout.decode()
    assert "in this order a byte can be used when" in ordered


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rate", "fast"], "'fast' is no rate"),
        (["--rate", "0k"], "'0k' is no rate"),
        (["--without", "secnd"], "did you mean 'second'?"),
        (["--order", "first,third", "second"], "first: is not among the tiers looked at"),
    ],
)
def test_what_makes_no_sense_is_exit_2(place: Path, arguments: list[str], said: str) -> None:
    done = cas(place, "plan", *arguments)
    assert 2 == done.returncode
    assert said in done.stderr.decode()
    assert b"" == done.stdout


@pytest.mark.parametrize(
    ("text", "value"), [("80k", 8e4), ("1.5M", 1.5e6), ("250000", 25e4), ("2MB/s", 2e6)]
)
def test_rates(text: str, value: float) -> None:
    assert Rate(value) == parse_rate(text)


@pytest.mark.parametrize("text", ["", "k", "-1k", "80 kbit", "1e3", "nan"])
def test_no_rates(text: str) -> None:
    with pytest.raises(UsageError):
        parse_rate(text)


def test_the_newest_run_that_brought_enough_says_the_rate(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    store = Store(tmp_path, MemoryIndex())

    def record(finished: int, *tiers: tuple[int, float]) -> str:
        run = os.urandom(16).hex()
        rows = [{"wire_in": size, "seconds": seconds} for size, seconds in tiers]
        fields = {"finished_ms": finished, "tiers": rows}
        (runs / f"{run}.json").write_text(json.dumps(fields))
        return run

    assert measured_rate(store.layout) is None
    record(1, (50_000_000, 10.0))
    newest = record(2, (2_000_000, 20.0), (3_000_000, 10.0), (10_000, 0.001))
    record(3, (1000, 100.0))
    (runs / f"{os.urandom(16).hex()}.json").write_text("[1]")
    (runs / f"{os.urandom(16).hex()}.json").write_text(
        '{"finished_ms":9,"tiers":[{"wire_in":"x"}]}'
    )
    assert Rate(300_000, newest) == measured_rate(store.layout)
