"""ls, cat, status, restore and init on a store that a real sync filled."""

import base64
import hashlib
import json
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cas.plan_load import load_plan
from tests.cli.conftest import Place, command_line


def _lines(text: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def _name(fields: dict[str, Any], key: str = "path") -> bytes:
    raw = fields.get(f"{key}_b64")
    return base64.b64decode(raw) if raw is not None else str(fields[key]).encode()


def test_ls_shows_one_name_a_line(synced: Place) -> None:
    done = synced.cas("ls", f"first:{synced.source}/first")
    names = [line.rpartition("/")[2] for line in done.stdout.decode().splitlines()]
    assert done.returncode == 0
    assert names == [
        "first", "blob", "empty", "größe.txt", "hard", "latin-\\xe4", "link", "pipe", "two\\nlines",
    ]  # fmt: skip


def test_ls_json_has_the_very_names(synced: Place) -> None:
    found = _lines(synced.cas("ls", "--json", f"first:{synced.source}/first/").stdout)
    names = {_name(fields).rpartition(b"/")[2] for fields in found}
    assert names >= set(os.listdir(os.fsencode(synced.source / "first")))
    by_name = {_name(fields).rpartition(b"/")[2]: fields for fields in found}
    blob = (synced.source / "first" / "blob").read_bytes()
    assert by_name[b"blob"]["sha256"] == hashlib.sha256(blob).hexdigest()
    assert by_name[b"blob"]["link"] == by_name[b"hard"]["link"]
    assert by_name[b"blob"]["mtime_ns"] == 10**18
    assert by_name[b"link"] | {"kind": "symlink", "target": "../elsewhere"} == by_name[b"link"]
    assert by_name[b"pipe"]["kind"] == "fifo"


def test_ls_long_is_like_that_of_ls(synced: Place) -> None:
    done = synced.cas("ls", "--long", f"first:{synced.source}/first")
    lines = {
        line.split()[-1].rpartition("/")[2]: line for line in done.stdout.decode().splitlines()
    }
    blob = (synced.source / "first" / "blob").read_bytes()
    mode = stat.filemode((synced.source / "first" / "blob").stat().st_mode)
    assert lines["blob"].startswith(mode)
    assert " 1000000 " in lines["blob"]
    assert hashlib.sha256(blob).hexdigest()[:12] in lines["blob"]
    assert lines["elsewhere"].startswith("l")
    assert "/link -> ../elsewhere" in lines["elsewhere"]
    assert lines["pipe"].startswith("p")


def test_ls_lists_the_tiers(synced: Place) -> None:
    done = synced.cas("ls")
    assert [line.split()[0] for line in done.stdout.decode().splitlines()] == [
        "tier", "first", "second",
    ]  # fmt: skip
    assert [tier["tier"] for tier in _lines(synced.cas("ls", "--json").stdout)] == [
        "first",
        "second",
    ]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("frist", "cas: frist: no snapshot of this tier is held (did you mean 'first'?)\n"),
        ("first:/nope", "cas: first:/nope: no such name in the tier\n"),
    ],
)
@pytest.mark.parametrize("command", [["ls"], ["cat"], ["restore", "--to", "out"]])
def test_what_is_not_held_is_exit_1(
    synced: Place, command: list[str], target: str, said: str
) -> None:
    done = synced.cas(*command, target if command != ["cat"] or ":" in target else target + ":/x")
    assert done.returncode == 1
    assert done.stderr.decode() == said
    assert done.stdout == b""


def test_cat_gives_the_bytes(synced: Place) -> None:
    blob = synced.source / "first" / "blob"
    odd = os.fsdecode(b"first:" + os.fsencode(synced.source) + b"/first/latin-\xe4")
    done = synced.cas("cat", f"first:{blob}", odd)
    assert done.returncode == 0
    assert done.stdout == blob.read_bytes() + b"1"
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("name", "said"),
    [("", "is no file but a directory"), ("/link", "no file but a symlink"), ("/pipe", "a fifo")],
)
def test_cat_refuses_what_is_no_file(synced: Place, name: str, said: str) -> None:
    done = synced.cas("cat", f"first:{synced.source}/first{name}")
    assert done.returncode == 2
    assert said in done.stderr.decode()


@pytest.mark.parametrize("command", [["ls", "--long", "first"], ["cat"]])
def test_a_reader_that_has_had_enough_is_no_error_to_speak_of(
    synced: Place, command: list[str]
) -> None:
    if command == ["cat"]:
        command = ["cat", *[f"first:{synced.source}/first/blob"] * 5]
    with subprocess.Popen(
        command_line(*command), cwd=synced.path, env=synced.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        said = running.stderr.read()
    assert running.returncode == 1
    assert said == b""


def test_damage_is_exit_12(synced: Place, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(synced.store, store)
    for pack in (store / "packs").iterdir():
        data = bytearray(pack.read_bytes())
        data[2000:-2000:997] = bytes(len(data[2000:-2000:997]))
        pack.write_bytes(data)
    done = synced.cas("cat", "--store", store, f"first:{synced.source}/first/blob")
    assert done.returncode == 12
    assert done.stderr.startswith(b"cas: ")
    assert done.stderr.count(b"\n") == 1


def test_status_counts_what_is_held(synced: Place) -> None:
    one, two = _lines(synced.cas("status", "--json").stdout)
    assert (one["tier"], one["complete"], one["missing"], one["left_out"]) == ("first", True, 0, 0)
    assert two["unique"] == two["logical"] == 1_300_000
    lines = synced.cas("status").stdout.decode().splitlines()
    assert lines[1].split()[-5:] == ["100", "%", "0", "B", "0", "complete"][-5:]
    only = _lines(synced.cas("status", "--json", "both").stdout)
    assert [one, two] == only


def test_status_lists_tiers_that_were_never_scanned(place: Place) -> None:
    assert place.cas("sync", "second").returncode == 0
    one, two = _lines(place.cas("status", "--json").stdout)
    assert one == {"tier": "first", "scanned": False}
    assert two["complete"]
    assert "not scanned to its end yet" in place.cas("status").stdout.decode()


def test_a_store_can_be_named_without_a_plan(synced: Place, tmp_path: Path) -> None:
    elsewhere = Place(tmp_path, synced.source)
    assert elsewhere.cas("status", "--store", synced.store).returncode == 0
    named = elsewhere.cas("ls", environment={"CAS_STORE": str(synced.store)})
    assert b"first" in named.stdout
    planned = elsewhere.cas("ls", environment={"CAS_PLAN": str(synced.path / "plan.toml")})
    assert planned.stdout == named.stdout


def test_restore_makes_the_same_tree_and_goes_on(synced: Place, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = synced.cas("restore", f"first:{synced.source}/first", "--to", out)
    assert done.returncode == 0, done.stderr.decode()
    made, there = out / "first", synced.source / "first"
    assert sorted(os.listdir(os.fsencode(made))) == sorted(os.listdir(os.fsencode(there)))
    assert (made / "blob").read_bytes() == (there / "blob").read_bytes()
    assert (made / "blob").stat().st_ino == (made / "hard").stat().st_ino
    assert (made / "link").readlink() == Path("../elsewhere")
    assert (made / "blob").stat().st_mtime_ns == 10**18
    (made / "blob").unlink()
    (made / "größe.txt").write_text("mine\n")
    again = synced.cas("restore", f"first:{synced.source}/first", "--to", out)
    assert again.returncode == 3
    assert "größe.txt" in again.stdout.decode()
    assert (made / "größe.txt").read_text() == "mine\n"
    assert (made / "blob").read_bytes() == (there / "blob").read_bytes()
    forced = synced.cas("restore", f"first:{synced.source}/first", "--to", out, "--overwrite")
    assert forced.returncode == 0
    assert (made / "größe.txt").read_text() == "grün\n"


def test_restore_of_a_whole_tier_keeps_its_paths(synced: Place, tmp_path: Path) -> None:
    done = synced.cas("restore", "second", "--to", tmp_path / "out", "--json")
    assert done.returncode == 0
    assert _lines(done.stdout)[-1]["files"] == 2
    made = tmp_path / "out" / str(synced.source).lstrip("/") / "second" / "more"
    assert made.read_bytes() == (synced.source / "second" / "more").read_bytes()


@pytest.mark.root
def test_restored_as_ours_nothing_runs_as_us(place: Place) -> None:
    program = place.source / "second" / "program"
    program.write_bytes(b"#!/bin/sh\n")
    os.chown(program, 65534, 65534)
    program.chmod(0o6755)
    assert place.cas("sync", "second").returncode == 0
    for owner, expected in (("none", (0, 0o755)), ("numbers", (65534, 0o6755))):
        out = place.path / owner
        target = f"second:{program}"
        assert place.cas("restore", target, "--to", out, "--owner", owner).returncode == 0
        made = (out / "program").stat()
        assert (made.st_uid, stat.S_IMODE(made.st_mode)) == expected


def test_init_writes_a_plan_that_loads_and_never_replaces_one(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path)
    done = place.cas("init")
    assert done.returncode == 0
    assert load_plan(str(tmp_path / "plan.toml")).tiers
    (tmp_path / "plan.toml").write_text("mine")
    again = place.cas("init")
    assert again.returncode == 2
    assert b"plan.toml: there is a file already" in again.stderr
    assert (tmp_path / "plan.toml").read_text() == "mine"
    assert place.cas("init", "no/such/plan.toml").returncode == 2


def test_an_older_snapshot_is_named_by_number_or_time(place: Place) -> None:
    name = place.source / "second" / "more"
    assert 0 == place.cas("sync", "second").returncode
    before = name.read_bytes()
    name.write_bytes(b"changed")
    assert 0 == place.cas("sync", "second").returncode
    for which, expected in (
        ("@1", before),
        ("@-2", before),
        ("@2", b"changed"),
        ("", b"changed"),
        ("@2999-01-01", b"changed"),
        ("@2999-01-01T10:00", b"changed"),
    ):
        done = place.cas("cat", f"second{which}:{name}")
        assert (0, expected) == (done.returncode, done.stdout), which
    assert 0 == place.cas("restore", "second@1", "--to", "out").returncode
    assert before == (place.path / "out" / name.relative_to("/")).read_bytes()
    for which, code, said in (("@3", 1, b"2 snapshots of this tier are held"),
                              ("@1999-01-01", 1, b"no snapshot is as old as that"),
                              ("@soon", 2, b"write TIER@1, TIER@-2")):  # fmt: skip
        done = place.cas("ls", f"second{which}:{name}")
        assert (code, b"") == (done.returncode, done.stdout)
        assert said in done.stderr
