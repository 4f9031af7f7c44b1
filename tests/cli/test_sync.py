import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cli.conftest import SECONDS, Place


def _lines(text: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_sync_fetches_each_byte_once_and_then_nothing(place: Place) -> None:
    first = _lines(place.cas("sync", "--json").stdout)
    assert first[-1]["event"] == "summary"
    assert first[-1]["exit"] == 0
    one, two = first[-1]["tiers"]
    assert (one["name"], one["fetched"], one["complete"]) == ("first", one["unique"], True)
    assert two["here"] >= 1_000_000
    assert two["fetched"] == two["to_fetch"] == two["unique"] - two["here"]
    again = _lines(place.cas("sync", "--json").stdout)[-1]
    assert [0, 0] == [tier["fetched"] for tier in again["tiers"]]
    assert again["wire_in"] < 20_000


def test_the_steps_of_a_sync_are_told(place: Place) -> None:
    events = _lines(place.cas("sync", "--json", "both").stdout)
    steps = [(e["name"], e["stage"]) for e in events if e["event"] == "tier"]
    assert steps == [
        (n, s) for n in ("first", "second") for s in ("started", "scanned", "finished")
    ]
    assert {"started", "scanned", "finished"} == {s for _, s in steps}


def test_a_run_is_recorded(place: Place) -> None:
    summary = _lines(place.cas("sync", "--json", "first").stdout)[-1]
    [record] = (place.store / "runs").iterdir()
    said = json.loads(record.read_bytes())
    assert record.name == said["run"] + ".json"
    assert said["command"] == ["sync", "--json", "first"]
    assert said["tiers"] == summary["tiers"]
    assert (said["wire_in"], said["exit"]) == (summary["wire_in"], 0)
    assert said["started_ms"] <= said["finished_ms"]


def test_a_summary_for_people(place: Place) -> None:
    done = place.cas("sync")
    assert done.returncode == 0
    titles, first, second, together = done.stdout.decode().splitlines()
    assert titles.split() == ["tier", "logical", "unique", "here", "fetched", "wire", "time"]
    assert first.startswith("first ")
    assert first.endswith("complete")
    assert "1.00 MB" in second
    assert together.startswith("together ")
    assert b"scanning here" in done.stderr


def test_a_dry_run_writes_nothing(place: Place) -> None:
    done = place.cas("sync", "--dry-run", "--json")
    assert done.returncode == 0
    one, _ = _lines(done.stdout)[-1]["tiers"]
    assert one["to_fetch"] == one["unique"] > 1_000_000
    assert one["fetched"] == 0
    assert not place.store.exists()


def test_a_dry_run_foretells_what_crosses(place: Place) -> None:
    foretold = _lines(place.cas("sync", "--dry-run", "--json").stdout)[-1]
    one, two = (tier["estimate"] for tier in foretold["tiers"])
    assert (None, None) == (one["seconds"], foretold["estimate"]["rate"])
    assert not place.store.exists()
    scanned = _lines(place.cas("scan", "--json", "--bytes").stdout)[-1]  # which is kept
    assert [tier["estimate"] for tier in foretold["tiers"]] == [
        tier["estimate"] for tier in scanned["tiers"]
    ]
    planned = _lines(place.cas("plan", "--json").stdout)
    assert [one["wire"], two["wire"]] == [e["wire"] for e in planned if e["event"] == "tier"]
    assert one["wire_low"] <= one["wire"] <= one["wire_high"]
    _sync_of_no_known_speed(place)
    again = _lines(place.cas("sync", "--dry-run", "--json", "--bwlimit", "80k").stdout)[-1]
    assert (0, 0, 80_000) == tuple(again["estimate"][key] for key in ("wire", "seconds", "rate"))


def test_a_dry_run_counts_what_is_held_and_leaves_it_as_it_is(place: Place) -> None:
    _sync_of_no_known_speed(place)
    (place.source / "second" / "new.png").write_bytes(os.urandom(200_000))
    before = _held(place)
    done = place.cas("sync", "--dry-run", "--bwlimit", "100k")
    assert (0, before) == (done.returncode, _held(place))
    titles, _, second, together = done.stdout.decode().splitlines()
    assert titles.endswith("to fetch  wire, about  time")
    for line in (second, together):  # of pictures it is known that they do not compress
        assert re.search(r" 200 kB +(19\d|20\d) kB +2 s$", line), line
    assert b"at 100 kB/s\n" in done.stderr
    changed, *_ = _lines(place.cas("status", "--json", "second").stdout)
    assert changed["complete"]


def _sync_of_no_known_speed(place: Place) -> None:
    """Fetch everything, and forget how long it took: a busy machine may have taken its time."""
    assert place.cas("sync").returncode == 0
    for record in (place.store / "runs").iterdir():
        record.unlink()


def _held(place: Place) -> dict[str, int]:
    """What is in the store, and when it was last written; of readers LMDB keeps a table."""
    return {
        str(path): path.stat().st_mtime_ns
        for path in place.store.rglob("*")
        if path.is_file() and path.name != "lock.mdb"
    }


def test_a_scan_is_kept_and_brings_nothing(place: Place) -> None:
    done = place.cas("scan", "--json")
    assert done.returncode == 0
    scanned, _ = _lines(done.stdout)[-1]["tiers"]
    assert scanned["to_fetch"] == scanned["unique"] > 1_000_000
    assert scanned["fetched"] == 0
    standing, _ = _lines(place.cas("status", "--json").stdout)
    assert (standing["complete"], standing["missing"]) == (False, scanned["unique"])
    assert "first" in place.cas("redundancy").stdout.decode()
    assert place.cas("plan").returncode == 0
    again, _ = _lines(place.cas("scan", "--json").stdout)[-1]["tiers"]
    assert again["to_fetch"] == scanned["to_fetch"]
    fetched, _ = _lines(place.cas("sync", "--json").stdout)[-1]["tiers"]
    assert fetched["fetched"] == scanned["to_fetch"]
    assert [True, True] == [
        tier["complete"] for tier in _lines(place.cas("status", "--json").stdout)
    ]


def test_a_scan_of_what_is_here_costs_nothing(place: Place) -> None:
    place.cas("sync")
    done = place.cas("scan")
    assert done.returncode == 0
    assert "0 B" in done.stdout.decode().splitlines()[-1]
    assert [True, True] == [
        tier["complete"] for tier in _lines(place.cas("status", "--json").stdout)
    ]
    again = _lines(place.cas("sync", "--json").stdout)[-1]
    assert again["wire_in"] < 20_000


def test_a_scan_beside_a_sync_is_not_kept(synced: Place) -> None:
    with (synced.store / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = synced.cas("scan")
    assert done.returncode == 0
    assert b"not kept" in done.stderr


def test_what_is_left_out_is_listed_and_is_exit_3(place: Place) -> None:
    text = (place.path / "plan.toml").read_text()
    gone = f'paths = ["{place.source}/first", "{place.source}/gone"]'
    (place.path / "plan.toml").write_text(text.replace(f'paths = ["{place.source}/first"]', gone))
    done = place.cas("sync", "first")
    assert done.returncode == 3
    assert "1 left out" in done.stdout.decode()
    assert f"{place.source}/gone" in done.stdout.decode()
    events = _lines(place.cas("sync", "--json", "first").stdout)
    [problem] = [e for e in events if e["event"] == "problem"]
    assert problem["path"] == f"{place.source}/gone"
    assert problem["left_out"]
    assert events[-1]["exit"] == 3
    listed = place.cas("status", "--problems", "first")
    assert f"{place.source}/gone" in listed.stdout.decode()


def test_a_source_without_an_agent_is_exit_1(place: Place) -> None:
    text = (place.path / "plan.toml").read_text()
    (place.path / "plan.toml").write_text(
        text.replace("[source.here]", '[source.here]\nagent = "false"')
    )
    done = place.cas("sync")
    assert done.returncode == 1
    assert done.stderr.startswith(b"cas: ") or b"\ncas: " in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_sync_keeps_what_it_has_and_goes_on(
    place: Place, slow_agent: Callable[[int], str], number: int
) -> None:
    (place.source / "first" / "large").write_bytes(os.urandom(40_000_000))
    plan = place.path / "plan.toml"
    usual = plan.read_text()
    plan.write_text(
        usual.replace("[source.here]", f'[source.here]\nagent = "{slow_agent(500_000)}"')
    )
    with place.start("sync", "--json", "first") as running:
        fetched = _wait_for_bytes(running)
        running.send_signal(number)
        out, err = running.communicate(timeout=SECONDS)
    assert running.returncode == 130
    assert b"interrupted; everything received so far is kept" in err
    assert b"Traceback" not in err
    summary = _lines(out)[-1]
    assert (summary["event"], summary["exit"]) == ("summary", 130)
    kept = summary["tiers"][0]["fetched"]
    assert kept >= fetched > 0
    plan.write_text(usual)
    rest = _lines(place.cas("sync", "--json", "first").stdout)[-1]["tiers"][0]
    assert rest["complete"]
    assert rest["to_fetch"] <= rest["unique"] - kept
    assert rest["fetched_again"] == 0


def _wait_for_bytes(running: "subprocess.Popen[bytes]") -> int:
    assert running.stdout is not None
    for line in _until_end(running):
        if (fetched := json.loads(line).get("fetched") or 0) > 0:
            return int(fetched)
    pytest.fail("it ended before anything was fetched")


def _until_end(running: "subprocess.Popen[bytes]") -> Iterator[bytes]:
    assert running.stdout is not None
    while line := running.stdout.readline():
        yield line


def test_a_store_that_another_process_writes_to_is_exit_11(place: Place) -> None:
    assert place.cas("sync", "first").returncode == 0
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(place.store)],
        env=place.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        done = place.cas("sync", "first")
        reading = place.cas("ls", "first")
        holder.communicate()
    assert done.returncode == 11
    assert f"pid {holder.pid}" in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert reading.returncode == 0
    assert place.cas("sync", "first").returncode == 0


HOLDER = """
import sys
from pathlib import Path
from cas.store.layout import Layout, WriterLock
lock = WriterLock(Layout(Path(sys.argv[1])))
print("locked", flush=True)
sys.stdin.read()
lock.release()
"""


def test_a_directory_with_other_things_becomes_no_store(place: Place) -> None:
    place.store.mkdir()
    (place.store / "thesis.tex").touch()
    done = place.cas("sync")
    assert done.returncode == 1
    assert b"not empty: it has 'thesis.tex'" in done.stderr
    assert not (place.store / "format").exists()


def test_a_store_that_cannot_be_made_says_why(place: Place) -> None:
    place.store.write_bytes(b"")
    done = place.cas("sync")
    assert done.returncode == 1
    assert done.stderr.decode().count("\n") == 1
    assert str(place.store) in done.stderr.decode()


def test_nobody_reading_the_json_does_not_stop_a_sync(place: Place) -> None:
    with place.start("sync", "--json") as running:
        assert running.stdout is not None
        running.stdout.close()
        running.wait(timeout=SECONDS)
    assert place.cas("status", "--json", "second").stdout.count(b'"complete":true') == 1
