import asyncio
import io
import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from rich.console import Console

from cas.entry import Problem
from cas.errors import TransportError
from cas.pull.state import Phase, SyncState, TierState
from cli import progress
from cli.events import EventDisplay
from cli.lines import LineDisplay
from cli.live import LiveDisplay
from tests.cli.states import histories, usual

PERCENT = re.compile(r"(\d+(?:\.\d+)?) %")


def _console(width: int = 100, height: int = 20, **options: Any) -> tuple[Console, io.StringIO]:
    written = io.StringIO()
    console = Console(
        file=written, force_terminal=True, width=width, height=height, highlight=False,
        _environ={"TERM": "xterm-256color", **options},
    )  # fmt: skip
    return console, written


def _show(state: SyncState, console: Console, moments: int = 3) -> None:
    display = LiveDisplay(state, console)
    display.begin(0.0)
    for moment in range(moments):
        display.tick(float(moment))
    display.end(float(moments))


@given(histories())
def test_the_live_display_takes_any_state(history: list[list[TierState]]) -> None:
    console, written = _console(width=60, height=8)
    state = SyncState()
    display = LiveDisplay(state, console)
    display.begin(0.0)
    for moment, tiers in enumerate(history):
        state.tiers = tiers
        display.tick(float(moment))
    display.end(float(len(history)))
    assert all(float(found) <= 100 for found in PERCENT.findall(written.getvalue()))


def test_the_live_display_says_events_above_and_vanishes() -> None:
    state = usual()
    state.note("npu (ssh): lost; trying again in 1 s\x1b[2J")
    console, written = _console()
    _show(state, console)
    text = written.getvalue()
    assert "lost; trying again in 1 s\\x1b[2J" in text
    assert "26.0 %" in text
    assert text.count("trying again") == 1
    assert text.rstrip("\x1b[?25h").endswith("\x1b[2K")  # the last frame was wiped away


def test_no_color_is_heeded() -> None:
    styled = re.compile(r"\x1b\[[0-9;]*m")
    console, written = _console()
    _show(usual(), console)
    assert styled.search(written.getvalue())
    console, written = _console(NO_COLOR="1")
    _show(usual(), console)
    assert not styled.search(written.getvalue())


def test_lines_are_written_when_something_changes(capsys: pytest.CaptureFixture[str]) -> None:
    state = usual()
    display = LineDisplay(state)
    display.begin(0.0)
    for moment in range(60):
        state.tiers[1].fetched += 1_000_000
        state.tiers[1].wire_in += 250_000
        display.tick(float(moment))
    display.end(60.0)
    lines = [line[9:] for line in capsys.readouterr().err.splitlines()]
    assert lines[:4] == [
        "00-tier: scanning npu",
        "00-tier: scanned, 1,200 names, 21.3 MB, 18.0 MB unique, 1.00 MB here, 17.0 MB to fetch",
        "00-tier: done, 17.0 MB fetched, 4.00 MB over the wire",
        "01-tier: scanning npu",
    ]
    progress_lines = [line for line in lines if " of 460 MB" in line]
    assert 9 <= len(progress_lines) <= 12
    assert (
        progress_lines[0] == "01-tier: 27.3 %, 126 MB of 460 MB, 250 kB/s, at least 5 min 34 s left"
    )


def test_lines_do_not_repeat_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    display = LineDisplay(usual())
    display.begin(0.0)
    for moment in range(600):
        display.tick(float(moment))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) < 35


def test_lines_say_what_happens_to_the_connection(capsys: pytest.CaptureFixture[str]) -> None:
    state = usual()
    display = LineDisplay(state)
    display.begin(0.0)
    state.note("npu (ssh): nothing has come for two minutes; trying again in 1 s")
    state.tiers[1].phase = Phase.FAILED
    display.end(1.0)
    said = capsys.readouterr().err
    assert "trying again in 1 s" in said
    assert "01-tier: failed; 120 MB fetched are kept" in said


def _events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_events_come_in_order_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    state = usual()
    state.tiers[0].problems = (Problem(b"a\xff", "cannot be read", "run as root"),)
    display = EventDisplay(state)
    display.begin(0.0)
    display.tick(0.0)
    display.tick(1.0)
    state.tiers[1].phase = Phase.DONE
    display.end(2.0)
    events = _events(capsys.readouterr().out)
    steps = [(e["name"], e["stage"]) for e in events if e["event"] == "tier"]
    assert steps == [
        ("00-tier", "started"),
        ("00-tier", "scanned"),
        ("00-tier", "finished"),
        ("01-tier", "started"),
        ("01-tier", "scanned"),
        ("01-tier", "finished"),
    ]
    problems = [e for e in events if e["event"] == "problem"]
    assert problems == [
        {
            "event": "problem",
            "tier": "00-tier",
            "path": "/a\ufffd",
            "path_b64": "L2H/",
            "reason": "cannot be read",
            "hint": "run as root",
            "left_out": True,
        }
    ]
    going_on = [e for e in events if e["event"] == "progress"]
    assert len(going_on) == 2
    assert going_on[0]["tier"] == "01-tier"
    assert going_on[0]["percent"] == 26.0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(histories())
def test_events_take_any_state(
    capsys: pytest.CaptureFixture[str], history: list[list[TierState]]
) -> None:
    state = SyncState()
    display = EventDisplay(state)
    display.begin(0.0)
    for moment, tiers in enumerate(history):
        state.tiers = tiers
        display.tick(float(moment))
    display.end(float(len(history)))
    for event in _events(capsys.readouterr().out):
        assert event.get("percent") is None or 0 <= event["percent"] <= 100


class _Display:
    seconds = 0.0

    def __init__(self, error: Exception | None = None) -> None:
        self.calls: list[str] = []
        self._error = error

    def begin(self, now: float) -> None:
        self.calls.append("begin")

    def tick(self, now: float) -> None:
        self.calls.append("tick")
        if self._error is not None:
            raise self._error

    def end(self, now: float) -> None:
        self.calls.append("end")


async def _shown_work(display: _Display, done: list[bool], error: Exception | None = None) -> None:
    async with progress.shown(display):
        for _ in range(5):
            await asyncio.sleep(0)
        if error is not None:
            raise error
        done.append(True)


async def test_a_display_ends_whatever_ended_the_work() -> None:
    display = _Display()
    with pytest.raises(TransportError):
        await _shown_work(display, [], TransportError("lost"))
    assert display.calls[0] == "begin"
    assert display.calls[-1] == "end"
    assert display.calls.count("tick") >= 2


async def test_work_goes_on_when_nobody_reads_along() -> None:
    display = _Display(BrokenPipeError())
    done: list[bool] = []
    await _shown_work(display, done)
    assert done
    assert display.calls == ["begin", "tick", "end"]


async def test_a_broken_display_is_told_after_the_work() -> None:
    done: list[bool] = []
    with pytest.raises(ZeroDivisionError):
        await _shown_work(_Display(ZeroDivisionError()), done)
    assert done


def test_the_display_suits_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    state = SyncState()
    assert isinstance(progress.display_for(state, as_json=True), EventDisplay)
    assert isinstance(progress.display_for(state, as_json=False), LineDisplay)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(progress.display_for(state, as_json=False), LineDisplay)
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(progress.display_for(state, as_json=False), LiveDisplay)
