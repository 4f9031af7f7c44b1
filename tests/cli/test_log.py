"""`cas log` as a user meets it: runs and snapshots, also those of runs that were killed."""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import SECONDS, Place, make_place


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A place of one run."""
    made = make_place(tmp_path_factory.mktemp("logged"))
    assert made.cas("sync").returncode == 0
    return made


@pytest.fixture
def copy(synced: Place, tmp_path: Path) -> Place:
    """A place with a copy of the store, whose records may be changed."""
    shutil.copytree(synced.store, tmp_path / "store")
    shutil.copy(synced.path / "plan.toml", tmp_path)
    return Place(tmp_path, synced.source)


def record_of(place: Place) -> Path:
    (path,) = (place.store / "runs").iterdir()
    return path


def lines(place: Place, *arguments: str) -> list[dict[str, Any]]:
    done = place.cas("log", "--json", *arguments)
    assert 0 == done.returncode, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_run_is_listed_and_told(synced: Place) -> None:
    record = json.loads(record_of(synced).read_text())
    (one,) = lines(synced)
    assert record.items() <= one.items()
    assert one["recorded"]
    assert sum(tier["fetched"] for tier in record["tiers"]) == one["fetched"]
    assert abs(one["goodput"] - one["fetched"] / record["seconds"]) <= 1
    assert [("first", 1), ("second", 1)] == [(s["tier"], s["number"]) for s in one["snapshots"]]
    listed = synced.cas("log").stdout.decode().splitlines()
    assert 2 == len(listed)
    assert record["run"][:8] in listed[1]
    assert "sync first, second" in listed[1]
    text = synced.cas("log", record["run"][:6]).stdout.decode()
    for fact in (record["run"], "cas sync", f"cas {record['cas']}", "first@1", "goodput"):
        assert fact in text


def test_what_a_newer_record_says_of_sources_is_shown(copy: Place) -> None:
    path = record_of(copy)
    record = json.loads(path.read_text())
    record |= {
        "sources": [{"name": "here", "host": "build7", "host_key": "SHA256:abc", "cas": "0.2",
                     "lanes": 4, "lost": 2}],
        "lanes": {"here": 3},
        "events": [{"time_ms": 1_700_000_000_000, "text": "lost\x1b"}, "as text"],
        "error": "no more", "exit": 1,
    }  # fmt: skip
    path.write_text(json.dumps(record))
    text = copy.cas("log", record["run"]).stdout.decode()
    for fact in ("here: calls itself build7, host key SHA256:abc, cas 0.2, lanes 4, lost 2",
                 "3 from here did best", "lost\\x1b", "as text", "no more"):  # fmt: skip
        assert fact in text


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"tiers": 3, "command": null}', b"\xff", b"[" * 10**5]
)
def test_a_record_that_is_none_stops_nothing(copy: Place, content: bytes) -> None:
    path = record_of(copy)
    path.write_bytes(content)
    (copy.store / "runs" / "notes.txt").touch()
    (one,) = lines(copy)
    assert (path.stem, 0) == (one["run"], one["fetched"])
    for words in (["log"], ["log", path.stem[:8]]):
        done = copy.cas(*words)
        assert (0, b"") == (done.returncode, done.stderr)
        assert path.stem[:8].encode() in done.stdout


def test_a_killed_run_is_known_by_its_snapshots(copy: Place) -> None:
    path = record_of(copy)
    path.unlink()
    (one,) = lines(copy)
    assert (path.stem, False) == (one["run"], one["recorded"])
    assert b"no record" in copy.cas("log").stdout
    os.rmdir(copy.store / "runs")
    assert 0 == copy.cas("log").returncode


def test_a_run_that_goes_on_is_listed(place: Place, slow_agent: Callable[[int], str]) -> None:
    plan = (place.path / "plan.toml").read_text()
    agent = f'[source.here]\nagent = "{slow_agent(2_000)}"\n'
    (place.path / "plan.toml").write_text(plan.replace("[source.here]\n", agent))
    with place.start("sync", "first") as running:
        deadline = time.monotonic() + SECONDS
        while not (found := lines(place) if (place.store / "now.json").exists() else []):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert [(True, False)] == [(one["running"], one["recorded"]) for one in found]
        listed = place.cas("log", found[0]["run"][:8])
        running.kill()
    assert 0 == listed.returncode
    assert b"running" in listed.stdout
    assert not any(one["running"] for one in lines(place))


def test_snapshots_are_listed(synced: Place) -> None:
    first, second = lines(synced, "--snapshots")
    assert ("first", 1, True, 0) == (first["tier"], first["number"], first["complete"], 0)
    assert record_of(synced).stem == second["run"]
    assert [second] == lines(synced, "--snapshots", "second")
    text = synced.cas("log", "--snapshots", "second").stdout.decode().splitlines()
    assert text[1].startswith("second@1 ")


def test_what_is_not_known_is_said(synced: Place) -> None:
    for words, said in ((["0000"], b"no run begins so"),
                        (["--snapshots", "frist"], b"did you mean")):  # fmt: skip
        done = synced.cas("log", *words)
        assert (1, b"") == (done.returncode, done.stdout)
        assert said in done.stderr
