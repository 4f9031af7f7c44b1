"""`cas redundancy` as a user has it: tables, JSON, tiers that were never scanned."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
from pathlib import Path
from typing import Any

from indexes.index import LmdbIndex
from tests.cli.conftest import ROOT, command_line
from tests.redundancy.conftest import cas
from tests.redundancy.made import MadeStore


def _events(place: Path, *arguments: str) -> list[dict[str, Any]]:
    done = cas(place, "redundancy", "--json", *arguments)
    assert b"" == done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_tiers_stand_in_the_plans_order_and_add_up(place: Path) -> None:
    tiers = [event for event in _events(place) if event["event"] == "tier"]
    assert ["first", "second", "third"] == [tier["tier"] for tier in tiers]
    assert [57_000, 2_003_700, 4000] == [tier["unique"] for tier in tiers]
    assert [57_000, 2_000_700, 0] == [tier["adds"] for tier in tiers]
    assert [50_000, 2_000_700, 0] == [tier["exclusive"] for tier in tiers]
    assert [7000, 3000, 4000] == [tier["shared"] for tier in tiers]
    assert [60_000, 2_004_400, 4000] == [tier["unpacked"] for tier in tiers]
    assert not any(tier["complete"] for tier in tiers)


def test_pairs_orders_and_places_are_told(place: Path) -> None:
    events = _events(place)
    pairs = [event for event in events if event["event"] == "pair"]
    assert [(["first", "third"], 4000, 100.0), (["first", "second"], 3000, 5.26)] == [
        (pair["tiers"], pair["both"], pair["percent"]) for pair in pairs
    ]
    orders = {event["order"]: event for event in events if event["event"] == "order"}
    assert ["third", "first", "second"] == orders["soonest"]["tiers"]
    assert [4000, 53_000, 2_000_700] == orders["soonest"]["adds"]
    assert orders["soonest"]["mean_wait"] < orders["given"]["mean_wait"]
    places = [event for event in events if event["event"] == "place"]
    assert {"directory", "kind", "file"} == {place_["sort"] for place_ in places}
    shared = [(p["path"], p["shared"], p["with"]) for p in places if p["sort"] == "file"]
    assert [("/a/z", 4000, ["third"]), ("/a/w", 3000, ["second"])] == shared
    total = {"event": "summary", "tiers": 3, "unpacked": 2_068_400, "unique": 2_057_700}
    assert total | {"repeated": 10_700} == events[-1]


def test_only_what_is_named_is_compared(place: Path) -> None:
    tiers = [event for event in _events(place, "both") if event["event"] == "tier"]
    assert ["first", "second"] == [tier["tier"] for tier in tiers]
    assert [3000, 3000] == [tier["shared"] for tier in tiers]


def test_the_table_has_exact_sizes_if_asked(place: Path) -> None:
    lines = cas(place, "redundancy", "--bytes", "--top", "1").stdout.decode().splitlines()
    assert ["1", "first", "57,000", "50,000", "7,000", "57,000", "60,000", "60,000"] == (
        lines[1].split()[:8]
    )
    assert "not all here" in lines[1]
    rounded = cas(place, "redundancy", "--top", "0").stdout.decode()
    assert "2.00 MB" in rounded
    assert "directory" not in rounded


def test_a_tier_that_was_never_scanned_is_left_out_and_said(place: Path) -> None:
    with (place / "plan.toml").open("a") as plan:
        plan.write('[[tier]]\nname = "late"\nsource = "here"\npaths = ["/l"]\n')
    done = cas(place, "redundancy", "--top", "0")
    assert 3 == done.returncode
    assert "late: never scanned to its end, and left out\n" == done.stderr.decode()


def test_a_name_that_nobody_knows_is_exit_1(place: Path) -> None:
    done = cas(place, "redundancy", "frist")
    assert 1 == done.returncode
    assert "did you mean 'first'?" in done.stderr.decode()


def _on_terminal(place: Path, columns: int, *arguments: str) -> list[str]:
    """Run `cas` on a terminal of so many columns; the lines that it wrote there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    written = bytearray()
    with subprocess.Popen(
        command_line(*arguments), cwd=place, env={"PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    ):  # fmt: skip
        os.close(theirs)
        with contextlib.suppress(OSError):
            while piece := os.read(ours, 65536):
                written += piece
    os.close(ours)
    return written.decode().splitlines()


def test_a_narrow_terminal_gets_pairs_and_the_ends_of_paths(place: Path) -> None:
    wide = _on_terminal(place, 120, "redundancy")
    assert any(line.split() == ["both", "1", "2", "3"] for line in wide)
    narrow = _on_terminal(place, 30, "redundancy")
    assert ["tier", "and", "both", "of", "the", "smaller"] in [line.split() for line in narrow]
    assert "adds" in narrow[0]
    assert "unique" not in narrow[0]
    long = "f" * 60
    made = MadeStore(place / "other", LmdbIndex(place / "other" / "index", create=True))
    made.tier("first", {f"a/{long}.c": [(1, 3000)]})
    made.tier("second", {"b": [(1, 3000)]})
    made.writer.close()
    made.index.close()
    lines = _on_terminal(place, 60, "redundancy", "--store", str(place / "other"))
    (file,) = [line for line in lines if line.endswith("fff.c")]
    assert "…" in file
    assert len(file) <= 80
