"""`cas release` says that all may go when it may, and finds each reason why it may not."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from tests.cli.conftest import Place


def _release(place: Place, *options: str) -> tuple[int, dict[str, Any]]:
    done = place.cas("release", "--json", *options)
    assert done.stdout, done.stderr.decode()
    return done.returncode, json.loads(done.stdout)


def _reasons(said: dict[str, Any]) -> dict[str, str]:
    return {d["path"]: d["reason"] for tier in said["tiers"] for d in tier["unsafe"]}


def _with_archive(place: Place) -> None:
    with tarfile.open(place.source / "second" / "all.tar.gz", "w:gz") as archive:
        archive.add(place.source / "first", "first")


def test_all_may_go_when_all_is_here_and_as_the_source_has_it(place: Place) -> None:
    _with_archive(place)
    place.cas("sync")
    code, said = _release(place, "both")
    assert (code, said["safe"]) == (0, True)
    assert {} == _reasons(said)
    assert [True, True] == [tier["source_asked"] for tier in said["tiers"]]
    done = place.cas("release", "here")
    assert done.returncode == 0
    assert b"It may go." in done.stdout


def test_what_changed_or_came_since_the_scan_must_stay(place: Place) -> None:
    place.cas("sync")
    (place.source / "first" / "empty").write_bytes(b"no more")
    (place.source / "first" / "new").write_bytes(b"new")
    (place.source / "first" / "link").unlink()  # gone there: nothing is lost by it
    code, said = _release(place, "both")
    assert (code, said["safe"]) == (3, False)
    root = str(place.source / "first")
    assert {f"{root}/empty", f"{root}/new"} == set(_reasons(said))
    assert [False, True] == [tier["safe"] for tier in said["tiers"]]
    assert b"It must stay" in place.cas("release", "both").stdout


def test_a_time_that_was_touched_changes_nothing(place: Place) -> None:
    place.cas("sync")
    os.utime(place.source / "first" / "empty")
    assert 0 == _release(place, "first")[0]


def test_damage_here_is_found(place: Place) -> None:
    place.cas("sync")
    for pack in (place.store / "packs").iterdir():
        data = bytearray(pack.read_bytes())
        middle = len(data) // 2
        data[middle : middle + 64] = bytes(64)
        pack.chmod(0o644)
        pack.write_bytes(data)
    code, said = _release(place, "both")
    assert (code, said["safe"]) == (3, False)
    assert any("cannot be made again" in reason for reason in _reasons(said).values())


def test_a_source_that_is_not_asked_or_cannot_be_must_stay(place: Place) -> None:
    place.cas("sync")
    code, said = _release(place, "--no-ask", "both")
    assert (code, said["safe"], _reasons(said)) == (3, False, {})
    plan = place.path / "plan.toml"
    plan.write_text(plan.read_text().replace("[source.here]", '[source.here]\nagent = "false"'))
    code, said = _release(place, "both")
    assert (code, said["safe"]) == (3, False)
    assert all("could not be asked" in reason for reason in _reasons(said).values())


def test_a_tier_that_was_never_fetched_is_no_statement(place: Place) -> None:
    place.cas("sync", "first")
    assert 1 == place.cas("release", "second").returncode


def test_the_sums_hold_at_both_ends(place: Place) -> None:
    place.cas("sync")
    place.cas("release", "both", "--sums", "sums")
    place.cas("restore", "first", "second", "--to", "out")
    for end in (Path("/"), place.path / "out"):
        done = subprocess.run(
            ["sha256sum", "--quiet", "-c", place.path / "sums"], cwd=end, capture_output=True
        )
        assert (done.returncode, done.stdout) == (0, b"")


def test_a_statement_shows_whether_it_was_changed(place: Place) -> None:
    place.cas("sync")
    place.cas("release", "both", "-o", "statement.json")
    statement = place.path / "statement.json"
    done = place.cas("release", "--check", "statement.json")
    assert (done.returncode, b"all of it was safe" in done.stdout) == (0, True)
    statement.write_bytes(statement.read_bytes().replace(b'"files":', b'"files": '))
    assert 0 == place.cas("release", "--check", "statement.json").returncode  # spaces say nothing
    statement.write_bytes(statement.read_bytes().replace(b'"safe":true', b'"safe":false'))
    done = place.cas("release", "--check", "statement.json")
    assert (done.returncode, b"not as it was made" in done.stderr) == (1, True)
