"""Syncs from a real OpenSSH that offers SFTP only."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from cas.entry import Kind
from tests.real import processes
from tests.real.users import throwaway_user
from tests.sftp.job import OLD, ONLY_SFTP, ROOT, Job, job_in, settle, sums_below

MB = 1_000_000


def _words(rng: random.Random, size: int) -> bytes:
    words = [rng.randbytes(5).hex() for _ in range(800)]
    return " ".join(rng.choices(words, k=size // 11)).encode()


def _archive(members: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz", compresslevel=6) as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return made.getvalue()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A tree with one of everything that SFTP shows."""
    rng = random.Random(4)
    top = tmp_path / "source"
    (top / "deep/er").mkdir(parents=True)
    (top / "empty-directory").mkdir(mode=0o700)
    texts = {f"t{n}": _words(rng, 40_000) for n in range(30)}
    for name, data in texts.items():
        (top / "deep" / name).write_bytes(data)
    (top / "deep/er/large").write_bytes(rng.randbytes(5 * MB))
    (top / "many.tar.gz").write_bytes(_archive(texts))
    with zipfile.ZipFile(top / "few.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", _words(rng, 300_000))
    (top / "empty").touch()
    (top / "small").write_bytes(b"small")
    (top / "script").write_bytes(b"#!/bin/sh\n")
    (top / "script").chmod(0o4755)
    (top / "link").symlink_to("deep/er/large")
    (top / "dangling").symlink_to(b"\xff nowhere")
    os.mkfifo(top / "fifo")
    with open(os.path.join(os.fsencode(top), b"odd \xff\n name"), "wb") as file:
        file.write(b"odd")
    settle(top)
    return top


def test_a_tier_comes_whole(tmp_path: Path, source: Path) -> None:
    with job_in(tmp_path / "job", ONLY_SFTP) as job:
        job.plan({"one": source})
        assert job.sync()["tiers"][0]["complete"]
        back = job.restored("one") / str(source)[1:]
        assert sums_below(source) == sums_below(back)
        for path in sorted(source.rglob("*")):
            ours, theirs = (back / path.relative_to(source)).lstat(), path.lstat()
            assert (theirs.st_mode, theirs.st_mtime) == (ours.st_mode, ours.st_mtime), path
        assert os.readlink(source / "dangling") == os.readlink(back / "dangling")
        assert not (job.directory / "store/staging").exists()
        owner = job.entries("one")[os.fsencode(source)[1:] + b"/small"].owner
        assert source.owner().encode() == owner.user


def test_entries_and_recipes_are_those_of_the_agents_way(tmp_path: Path, source: Path) -> None:
    found = []
    agent = f'agent = "env PYTHONPATH={ROOT} {sys.executable} -m cli serve"'
    for name, way, settings in (("a", agent, ()), ("b", 'via = "sftp"', (ONLY_SFTP,))):
        with job_in(tmp_path / name, *settings) as job:
            job.plan({"one": source}, via=way)
            job.sync()
            entries = job.entries("one").values()
            found.append({e.path: (e.kind, e.size, e.content, e.owner, e.target) for e in entries})
    assert found[0] == found[1]
    contents = [entry[2] for entry in found[0].values() if entry[2] is not None]
    assert sum(len(content.parts) for content in contents) >= 3


def test_what_has_not_changed_is_not_fetched_again(tmp_path: Path, source: Path) -> None:
    with job_in(tmp_path / "job", ONLY_SFTP) as job:
        job.plan({"one": source})
        job.sync()
        again = job.sync()
        assert 0 == again["tiers"][0]["fetched"]
        assert again["wire_in"] < MB // 10
        (source / "small").write_bytes(b"other")
        (source / "deep/er/large").chmod(0o600)
        os.utime(source / "small", (OLD, OLD + 10_000))
        third = job.sync()
        assert 5 == third["tiers"][0]["fetched"]
        assert third["wire_in"] < MB // 10
        entries = job.entries("one")
        assert 0o600 == entries[os.fsencode(source / "deep/er/large")[1:]].owner.mode


def test_content_that_is_held_under_another_name_is_not_stored_again(
    tmp_path: Path, source: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/copy").write_bytes((source / "deep/er/large").read_bytes())
    (tmp_path / "other/all.tar.gz").write_bytes(
        _archive({path.name: path.read_bytes() for path in sorted(source.glob("deep/t*"))})
    )
    settle(tmp_path / "other")
    for name, settings in (("bare", (ONLY_SFTP,)), ("commands", ())):
        with job_in(tmp_path / name, *settings) as job:
            job.plan({"one": source, "two": tmp_path / "other"})
            job.sync("one")
            two = job.sync("two")
            assert two["tiers"][0]["fetched"] < 100_000  # what an archive has besides its members
            if settings:
                assert two["wire_in"] > 5 * MB
            else:
                assert two["wire_in"] < 3 * MB  # the archive is new, the copy is not fetched
            back = job.restored("two")
            assert sums_below(tmp_path / "other") == sums_below(back / str(tmp_path / "other")[1:])


def test_rules_hold(tmp_path: Path, source: Path) -> None:
    with job_in(tmp_path / "job", ONLY_SFTP) as job:
        job.plan({"one": source})
        plan = job.directory / "plan.toml"
        plan.write_text(plan.read_text() + 'exclude = ["/deep", "*.zip"]\ninclude = ["t1*"]\n')
        job.sync()
        names = {path.removeprefix(os.fsencode(source)[1:] + b"/") for path in job.entries("one")}
    assert {b"deep/t1", b"deep/t19", b"small"} <= names
    assert not {b"deep/er", b"deep/t2", b"few.zip"} & names


def test_what_may_not_be_read_is_listed(tmp_path: Path) -> None:
    with throwaway_user(files={"yes": b"yes", "no": b"no", "hidden/file": b"file"}) as user:
        os.chmod(user.home / "no", 0)
        os.chmod(user.home / "hidden", 0)
        with job_in(tmp_path / "job", ONLY_SFTP, user=user.name) as job:
            job.plan({"one": "~", "gone": "/nowhere/at/all"})
            tiers = job.sync(code=3)["tiers"]
            said = job.cas("status", "--problems").stdout
            entries = job.entries("one")
            home = os.fsencode(user.home)[1:]
    assert 2 == tiers[0]["left_out"]
    for name in ("no", "hidden", "nowhere/at/all"):
        assert name in said
    assert entries[home + b"/yes"].content is not None
    assert entries[home + b"/no"].content is None
    assert Kind.DIRECTORY is entries[home + b"/hidden"].kind


def _kill_after(job: Job, size: int) -> None:
    """Start a sync, and kill it when so many bytes have come."""
    process = subprocess.Popen(
        job.command("sync"), cwd=job.directory, env=job.environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    target = job.relay.down + size
    while job.relay.down < target and process.poll() is None:
        time.sleep(0.01)
    assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    job.relay.settle()


def test_a_kill_costs_what_was_under_way(tmp_path: Path) -> None:
    size, kills, lanes = 60 * MB, 3, 4
    source = tmp_path / "source"
    source.mkdir()
    (source / "large").write_bytes(random.Random(5).randbytes(size))
    settle(source)
    with job_in(tmp_path / "job", ONLY_SFTP, rate=2 * MB) as job:
        job.plan({"one": source}, f"lanes = {lanes}")
        for _ in range(kills):
            _kill_after(job, 12 * MB)
        before = job.relay.down
        assert before > kills * 12 * MB
        job.sync()
        under_way = lanes * 32 * 65536 + MB
        assert job.relay.down - size < kills * under_way + MB
        assert job.relay.down - before < size - kills * (12 * MB - under_way)
        back = job.restored("one") / str(source)[1:]
        assert sums_below(source) == sums_below(back)


def test_small_files_that_came_before_a_kill_are_not_fetched_again(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(500):
        (source / f"f{number:03d}").write_bytes(os.urandom(40_000))
    settle(source)
    with job_in(tmp_path / "job", ONLY_SFTP, rate=2 * MB) as job:
        job.plan({"one": source}, "lanes = 2")
        _kill_after(job, 8 * MB)
        before = job.relay.down
        assert 8 * MB <= before < 19 * MB
        job.sync()
        assert job.relay.down < 20 * MB + 2 * 32 * 65536 + MB
        back = job.restored("one") / str(source)[1:]
        assert sums_below(source) == sums_below(back)


def test_a_host_that_is_gone_is_given_up_and_taken_up_again(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "large").write_bytes(os.urandom(20 * MB))
    settle(source)
    with job_in(tmp_path / "job", ONLY_SFTP, rate=2 * MB) as job:
        job.plan({"one": source}, "lanes = 2")
        process = subprocess.Popen(
            job.command("sync", "--give-up", "10"), cwd=job.directory, env=job.environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        while job.relay.down < 8 * MB and process.poll() is None:
            time.sleep(0.01)
        processes.kill([*processes.descendants(job.far.pid), job.far.pid])
        _, said = process.communicate(timeout=300)
    assert 1 == process.returncode
    assert "nothing has come for 10 s" in said
    assert "Traceback" not in said
    staged = job.directory / "store/staging/far/one"
    assert sum(path.stat().st_blocks * 512 for path in staged.iterdir()) > 4 * MB
    with job_in(tmp_path / "job", ONLY_SFTP) as job:
        # Another machine, as far as anyone can tell: what came from the first is not joined to it.
        job.plan({"one": source})
        assert job.sync()["wire_in"] > 20 * MB
        back = job.restored("one") / str(source)[1:]
        assert sums_below(source) == sums_below(back)


def test_a_file_that_changed_after_a_kill_begins_again(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    rng = random.Random(6)
    (source / "large").write_bytes(rng.randbytes(20 * MB))
    settle(source)
    with job_in(tmp_path / "job", ONLY_SFTP, rate=2 * MB) as job:
        job.plan({"one": source}, "lanes = 2")
        _kill_after(job, 8 * MB)
        (source / "large").write_bytes(rng.randbytes(20 * MB))
        os.utime(source / "large", (OLD, OLD + 7))
        job.sync()
        back = job.restored("one") / str(source)[1:]
        assert sums_below(source) == sums_below(back)
        assert not (job.directory / "store/staging").exists()


def test_commands_tell_of_links_and_twins(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a").write_bytes(os.urandom(2 * MB))
    (source / "b").hardlink_to(source / "a")
    (source / "c").write_bytes((source / "a").read_bytes())
    (source / "d").write_bytes(b"d")
    (source / "with\nbreak").hardlink_to(source / "d")
    settle(source)
    with job_in(tmp_path / "job") as job:
        job.plan({"one": source})
        assert job.sync()["wire_in"] < 2.5 * MB
        links = {path.rpartition(b"/")[2]: entry.link for path, entry in job.entries("one").items()}
        assert links[b"a"] == links[b"b"] != b""
        assert {b""} == {links[name] for name in (b"c", b"with\nbreak")}
        back = job.restored("one") / str(source)[1:]
        assert sums_below(source) == sums_below(back)
        assert (back / "a").samefile(back / "b")
        assert 0 == job.sync()["tiers"][0]["fetched"]
        assert links == {p.rpartition(b"/")[2]: e.link for p, e in job.entries("one").items()}


def test_the_doctor_says_what_the_host_is_like(tmp_path: Path, source: Path) -> None:
    for settings, told in (((ONLY_SFTP,), "not run"), ((), "asked first")):
        with job_in(tmp_path / f"job-{len(settings)}", *settings) as job:
            job.plan({"one": source})
            ran = job.cas("doctor", "far")
        assert 0 == ran.returncode, ran.stderr
        assert "none: it is read over SFTP" in ran.stdout
        assert told in ran.stdout


def test_a_scan_alone_counts_what_would_have_to_come(tmp_path: Path, source: Path) -> None:
    with job_in(tmp_path / "job", ONLY_SFTP) as job:
        job.plan({"one": source})
        whole = sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
        whole -= (source / "deep/er/large").stat().st_size  # `link` leads there too

        def to_fetch() -> tuple[int, int]:
            ran = job.cas("scan", "--json")
            assert 0 == ran.returncode, ran.stderr
            summary = json.loads(ran.stdout.splitlines()[-1])
            assert summary["wire_in"] < MB // 10
            return summary["tiers"][0]["to_fetch"], summary["tiers"][0]["logical"]

        assert (whole, whole) == to_fetch()
        assert not (job.directory / "store").exists()
        job.sync()
        assert (0, whole) == to_fetch()
        os.utime(source / "deep/er/large", (OLD, OLD - 7))
        assert (5 * MB, whole) == to_fetch()


def test_tiers_come_one_after_the_other(tmp_path: Path) -> None:
    tiers = {}
    for name in ("first", "second", "third"):
        tiers[name] = tmp_path / name
        tiers[name].mkdir()
        (tiers[name] / "data").write_bytes(os.urandom(2 * MB))
        (tiers[name] / "text").write_bytes(_words(random.Random(name), 300_000))
        settle(tiers[name])
    with job_in(tmp_path / "job", ONLY_SFTP) as job:
        job.plan(tiers)
        summary = job.sync()
        assert [True] * 3 == [tier["complete"] for tier in summary["tiers"]]
        assert summary["wire_in"] < 3 * 2.3 * MB + MB // 2
        for name, top in tiers.items():
            back = job.restored(name, f"back-{name}") / str(top)[1:]
            assert sums_below(top) == sums_below(back)
        assert not (job.directory / "store/staging").exists()
