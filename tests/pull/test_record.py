"""What a running sync tells others, and how it is told another limit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from cas.pull.record import FRESH_MS, Limit, Record, Running, ask_limit, running
from cas.pull.timetable import parse_timetable
from cas.store.layout import Layout

RUN = bytes(range(16))
NOW = datetime(2024, 1, 1, 12)  # noqa: DTZ001  # local times have no zone
SLEEPER = f"""
import sys, time
from pathlib import Path
from cas.pull.record import Record
from cas.store.layout import Layout
Record(Layout(Path(sys.argv[1])), bytes.fromhex("{RUN.hex()}"), 1).write({{}})
print("written", flush=True)
time.sleep(60)
"""


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path / "store")
    made.create()
    return made


def _running(layout: Layout) -> Running:
    found = running(layout)
    assert found is not None
    return found


def _change(layout: Layout, **fields: object) -> None:
    layout.now.write_text(json.dumps(json.loads(layout.now.read_text()) | fields))


def test_what_is_written_is_read_until_it_is_removed(layout: Layout) -> None:
    assert running(layout) is None
    record = Record(layout, RUN, 1234)
    record.write({"percent": 12.5})
    found = _running(layout)
    assert (RUN.hex(), os.getpid(), 1234) == (found.run, found.pid, found.started_ms)
    assert found.updated_ms > 1234
    assert 12.5 == found.fields["percent"]
    record.write({"percent": 13.0})
    assert 13.0 == _running(layout).fields["percent"]
    record.remove()
    record.remove()
    assert running(layout) is None
    assert not [path for path in layout.root.iterdir() if path.name.startswith(".")]


def test_a_record_of_a_killed_process_does_not_count(layout: Layout) -> None:
    command = [sys.executable, "-c", SLEEPER, str(layout.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=_environment()) as process:
        assert process.stdout is not None
        assert b"written\n" == process.stdout.readline()
        assert process.pid == _running(layout).pid
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert layout.now.exists()
        assert running(layout) is None


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here")
def test_a_pid_that_was_given_anew_does_not_count(layout: Layout) -> None:
    Record(layout, RUN, 1).write({})
    _change(layout, process="1")
    assert running(layout) is None


def test_a_record_of_another_host_counts_for_a_minute(layout: Layout) -> None:
    Record(layout, RUN, 1).write({})
    _change(layout, host="elsewhere.invalid", pid=2**40)
    found = _running(layout)
    _change(layout, updated_ms=found.updated_ms - FRESH_MS - 1000)
    assert running(layout) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"{}", b'{"pid": 1}', b"\xff\xfe", b"[" * 100_000, b'{"run": 5}'],
)
def test_what_is_no_record_is_none(layout: Layout, content: bytes) -> None:
    layout.now.write_bytes(content)
    assert running(layout) is None


def test_a_record_with_a_pid_that_cannot_be_is_none(layout: Layout) -> None:
    Record(layout, RUN, 1).write({})
    _change(layout, pid=2**80)
    assert running(layout) is None


def test_the_limit_of_the_command_line_holds_until_another_is_asked_for(layout: Layout) -> None:
    limit = Limit(parse_timetable("1M"), layout, RUN)
    assert 1_000_000 == limit.rate_at(NOW)
    Record(layout, RUN, 1).write({})
    for text, rate in (("08:00,2M 20:00,off", 2_000_000), ("off", None), ("3k", 3000)):
        ask_limit(layout, _running(layout), parse_timetable(text))
        assert rate == limit.rate_at(NOW)
        assert text == limit.text
    assert Limit().rate_at(NOW) is None


def test_an_order_for_another_run_is_not_heeded(layout: Layout) -> None:
    Record(layout, bytes(16), 1).write({})
    ask_limit(layout, _running(layout), parse_timetable("2M"))
    assert 1_000_000 == Limit(parse_timetable("1M"), layout, RUN).rate_at(NOW)


@pytest.mark.parametrize("content", ["", "{", '{"run": "RUN", "limit": "fast"}', '{"run": "RUN"}'])
def test_an_order_that_makes_no_sense_changes_nothing(layout: Layout, content: str) -> None:
    limit = Limit(parse_timetable("1M"), layout, RUN)
    layout.limit.write_text(content.replace("RUN", RUN.hex()))
    assert 1_000_000 == limit.rate_at(NOW)
