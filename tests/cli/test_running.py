"""A running sync, seen and limited from another terminal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from cas.pull.record import Limit, Record, running
from cas.pull.state import SyncState, TierState
from cas.store.layout import Layout
from cli.meter import Meter
from cli.running import Recorder, fields_of, reading_of
from tests.cli.conftest import SECONDS, Place
from tests.cli.states import histories, with_lanes


@contextmanager
def _slow_sync(
    place: Place, slow_agent: Callable[[int], str], *options: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A sync that takes two minutes; ended here if it is not over."""
    (place.source / "first" / "large").write_bytes(os.urandom(6_000_000))
    plan = place.path / "plan.toml"
    line = f'[source.here]\nagent = "{slow_agent(5_000)}"'
    plan.write_text(plan.read_text().replace("[source.here]", line))
    with place.start("sync", *options) as process:
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def _until(look: Callable[[], Any]) -> Any:
    """What `look` returns once that is something."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("it did not come to that")


def _running(place: Place) -> dict[str, Any]:
    """What `cas status --json` says of it; {} when there is none."""
    done = place.cas("status", "--json")
    if done.returncode:  # no store yet
        return {}
    first = json.loads(done.stdout.splitlines()[0])
    found: dict[str, Any] = first.get("running", {})
    return found


def test_another_terminal_sees_how_a_sync_goes_and_that_it_is_over(
    place: Place, slow_agent: Callable[[int], str]
) -> None:
    with _slow_sync(place, slow_agent, "both") as process:
        found = _until(lambda: (said := _running(place)).get("wire_in") and said)
        assert process.pid == found["pid"]
        assert ["sync", "both"] == found["command"]
        assert "off" == found["limit"]
        assert ["first", "second"] == [tier["name"] for tier in found["tiers"]]
        text = place.cas("status").stdout.decode()
        assert re.match(rf"running since \d.*, pid {process.pid}: cas sync both\n", text)
        process.kill()
        process.wait()
        assert _running(place) == {}
        assert "running" not in place.cas("status").stdout.decode()


def test_a_sync_that_ends_leaves_no_record(synced: Place) -> None:
    assert not [path.name for path in synced.store.iterdir() if path.suffix == ".json"]


def test_a_limit_is_heard_while_the_sync_runs(
    place: Place, slow_agent: Callable[[int], str]
) -> None:
    with _slow_sync(place, slow_agent, "--bwlimit", "3M") as process:
        _until(lambda: _running(place).get("limit") == "3M")
        assert place.cas("limit").stdout.decode().endswith("is limited to 3M\n")
        done = place.cas("limit", "00:00,2M", "12:00,2000k")
        assert 0 == done.returncode, done.stderr
        found = _until(lambda: (said := _running(place)).get("rate_limit") == 2_000_000 and said)
        assert "00:00,2M 12:00,2000k" == found["limit"]
        assert place.cas("status").stdout.count(b"limited to 00:00,2M 12:00,2000k\n") == 1
        said = json.loads(place.cas("limit", "--json", "off").stdout)
        assert {"limit": "off", "run": found["run"], "pid": process.pid} == said
        _until(lambda: _running(place).get("limit") == "off")
        assert place.cas("limit").stdout.decode().endswith("fetches without a limit\n")
        process.send_signal(signal.SIGINT)
        process.wait(SECONDS)
    assert not [path.name for path in place.store.iterdir() if path.suffix == ".json"]


def test_without_a_running_sync_there_is_nothing_to_limit(synced: Place) -> None:
    for words in ([], ["1M"]):
        done = synced.cas("limit", *words)
        assert 1 == done.returncode
        assert b"no sync is running" in done.stderr
        assert b"--bwlimit" in done.stderr


@pytest.mark.parametrize("command", [("limit",), ("sync", "--bwlimit")])
def test_what_is_no_limit_is_said_at_once(place: Place, command: tuple[str, ...]) -> None:
    done = place.cas(*command, "fast")
    assert 2 == done.returncode
    assert b"'fast' is no rate" in done.stderr
    assert not place.store.exists()


@given(histories())
def test_a_reading_comes_back_as_it_was(history: list[list[TierState]]) -> None:
    state = with_lanes(3)
    meter = Meter(state, 0.0)
    for moment, tiers in enumerate(history):
        state.tiers = tiers
        reading = meter.read(float(moment))
        assert reading == reading_of(json.loads(json.dumps(fields_of(reading))))


@pytest.mark.parametrize("change", [{"tiers": None}, {"lanes": [{}]}, {"tiers": [{"phase": "x"}]}])
def test_a_record_of_another_version_is_no_reading(change: dict[str, object]) -> None:
    fields = fields_of(Meter(with_lanes(3), 0.0).read(1.0))
    assert reading_of(fields | change) is None
    assert reading_of({}) is None


def test_the_last_events_are_told_with_their_times(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    state = with_lanes(3)
    recorder = Recorder(state, Record(layout, b"r" * 16, 1), Limit())
    recorder.begin(0.0)
    for number in range(30):
        state.note(f"event {number}")
        recorder.tick(float(number))
    found = running(layout)
    assert found is not None
    events: Any = found.fields["events"]
    assert [f"event {number}" for number in range(10, 30)] == [event["text"] for event in events]
    assert all(abs(event["time_ms"] - found.updated_ms) < 3_600_000 for event in events)
    recorder.end(30.0)
    assert running(layout) is None


def test_a_record_that_cannot_be_written_is_worth_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = Recorder(SyncState(), Record(Layout(tmp_path / "gone"), b"r" * 16, 1), Limit())
    recorder.begin(0.0)
    recorder.tick(0.0)
    recorder.tick(1.0)
    recorder.end(2.0)
    assert 1 == capsys.readouterr().err.count("cannot be told how it goes")
