"""`cas bundle` and `cas verify` as a user meets them."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Place


def _events(text: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def _flip(path: Path, at: int) -> None:
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.fixture
def copy(synced: Place, tmp_path: Path) -> Path:
    """A copy of the store, to be harmed."""
    return Path(shutil.copytree(synced.store, tmp_path / "store"))


def _pack(store: Path) -> Path:
    return max((store / "packs").iterdir(), key=lambda path: path.stat().st_size)


def test_a_bundle_unpacks_to_what_restore_makes(synced: Place, tmp_path: Path) -> None:
    out = tmp_path / "b.tar.zst"
    done = synced.cas("bundle", f"first:{synced.source}/first", "second", "-o", out)
    assert done.returncode == 0, done.stderr.decode()
    assert b"7 files (2.30 MB) bundled: b.tar.zst, " in done.stderr
    words = ["sha256sum", "-c", "b.tar.zst.sha256"]
    assert subprocess.run(words, cwd=tmp_path, capture_output=True).returncode == 0
    (tmp_path / "out").mkdir()
    subprocess.run(["tar", "--zstd", "-xpf", out, "-C", tmp_path / "out"], check=True)
    for target in (f"first:{synced.source}/first", "second"):
        same = synced.cas("verify", "--tree", tmp_path / "out", target)
        assert same.returncode == 0, same.stdout.decode()


def test_a_bundle_in_shards_as_json(synced: Place, tmp_path: Path) -> None:
    out = tmp_path / "b.tar.zst"
    done = synced.cas("bundle", "second", "-o", out, "--json", "--level", "1", "--shards", "1")
    (summary,) = _events(done.stdout)
    assert summary["parts"] == 2
    assert summary["bytes"] == 1_300_000
    shards = sorted(path for path in tmp_path.iterdir() if path.suffix != ".sha256")
    assert summary["size"] == sum(path.stat().st_size for path in shards)
    again = synced.cas("bundle", "second", "-o", out, "--shards")
    assert again.returncode == 1
    assert b"b.tar.zst.000: it exists already (--overwrite replaces it)" in again.stderr


def test_damage_leaves_no_bundle_and_exit_12(synced: Place, copy: Path, tmp_path: Path) -> None:
    pack = _pack(copy)
    _flip(pack, pack.stat().st_size // 2)
    out = tmp_path / "out"
    out.mkdir()
    done = synced.cas("bundle", "first", "second", "-o", out / "b", "--store", copy)
    assert done.returncode == 12
    assert done.stderr.count(b"\n") == 1
    assert [] == os.listdir(out)


def test_a_sound_store(synced: Place) -> None:
    done = synced.cas("verify")
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().splitlines() == [
        "first: 6 files, complete",
        "second: 2 files, complete",
    ]
    *snapshots, summary = _events(synced.cas("verify", "--json").stdout)
    assert [True, True] == [event["complete"] for event in snapshots]
    assert summary["lost"] == summary["unindexed"] == summary["unlisted"] == 0
    assert not summary["damaged"]


def test_damage_is_said_repaired_and_fetched_again(place: Place) -> None:
    assert place.cas("sync").returncode == 0
    pack = _pack(place.store)
    _flip(pack, pack.stat().st_size // 2)
    found = place.cas("verify")
    assert found.returncode == 12
    lines = found.stdout.decode().splitlines()
    assert lines[0].startswith(f"pack {pack.name}, offset ")
    assert "1 chunk)" in lines[0]
    assert any(line.startswith("first: ") and line.endswith("damaged") for line in lines)
    assert "`cas verify --repair`" in found.stderr.decode()
    repaired = place.cas("verify", "--repair", "--json")
    assert repaired.returncode == 12
    assert _events(repaired.stdout)[-1]["forgotten"] == 1
    between = place.cas("verify")
    assert between.returncode == 3
    assert b"not here" in between.stdout
    assert place.cas("sync").returncode == 0
    after = place.cas("verify")
    assert after.returncode == 0, after.stdout.decode()
    assert place.cas("restore", "second", "--to", place.path / "out").returncode == 0


def test_a_lost_index_is_said_and_never_taken_for_an_empty_one(synced: Place, copy: Path) -> None:
    shutil.rmtree(copy / "index")
    done = synced.cas("verify", "--store", copy)
    assert done.returncode == 12
    assert b"cas repair --rebuild-index" in done.stderr
    assert synced.cas("repair", "--rebuild-index", "--store", copy).returncode == 0
    assert synced.cas("verify", "--store", copy).returncode == 0


def test_a_store_that_is_written_to_can_be_verified_but_not_repaired(
    synced: Place, copy: Path
) -> None:
    import fcntl

    with (copy / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert synced.cas("verify", "--store", copy).returncode == 0
        assert synced.cas("verify", "--repair", "--store", copy).returncode == 11
    assert synced.cas("verify", "--repair", "--store", copy.parent / "none").returncode == 10
    assert not (copy.parent / "none").exists()


def test_a_restored_tree(synced: Place, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert synced.cas("restore", "first", "--to", out).returncode == 0
    same = synced.cas("verify", "--tree", out, "first")
    assert same.returncode == 0, same.stdout.decode()
    made = out / str(synced.source).lstrip("/") / "first"
    (made / "empty").write_bytes(b"not any more")
    (made / "link").unlink()
    other = synced.cas("verify", "--tree", out, "first")
    assert other.returncode == 12
    said = other.stdout.decode().splitlines()
    assert any(line.endswith("first/link: it is missing") for line in said)
    assert any("first/empty: it has 12 bytes instead of 0" in line for line in said)
    events = _events(synced.cas("verify", "--tree", out, "first", "--json").stdout)
    assert (1, 1) == (events[-1]["missing"], events[-1]["differing"])


def test_sha256sum_takes_the_manifest(synced: Place, tmp_path: Path) -> None:
    out = tmp_path / "out"
    target = f"first:{synced.source}/first"
    assert synced.cas("restore", target, "--to", out).returncode == 0
    done = synced.cas("verify", "--manifest", target)
    assert done.returncode == 0
    words = ["sha256sum", "--strict", "-c", "-"]
    assert subprocess.run(words, cwd=out, input=done.stdout, capture_output=True).returncode == 0
    assert 6 == done.stdout.count(b"\n")
    (out / "first" / "two\nlines").write_bytes(b"other")
    checked = subprocess.run(words, cwd=out, input=done.stdout, capture_output=True)
    assert checked.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["first"], "a store is verified as a whole"),
        (["--manifest"], "the tier's name is missing"),
        (["--tree", "."], "the tier's name is missing"),
        (["--tree", ".", "--manifest", "first"], "--tree and --manifest"),
        (["--repair", "--manifest", "first"], "--repair is for the store"),
        (["--owners"], "--owners goes with --tree"),
    ],
)
def test_wishes_that_do_not_go_together(synced: Place, arguments: list[str], said: str) -> None:
    done = synced.cas("verify", *arguments)
    assert done.returncode == 2
    assert said in done.stderr.decode()
