"""What servers tell beside the protocol: lines of listings, sums of files."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from cas.agent.metadata import link_id
from cas.ids import Digest
from cas.sftp import commands
from cas.transport.longname import NOTHING, Told, read_longname

LINE = b"-rw-r--r--    2 someone  users       1234 Dec  1 00:00 a name"


def test_a_line_of_openssh() -> None:
    assert Told(b"someone", b"users", 2) == read_longname(LINE, 1000, 100, 1234)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"-rw-r--r--",
        LINE.replace(b"1234", b"1235"),
        LINE.replace(b"someone", b"some one"),
        LINE.replace(b"    2", b" many"),
        b"-rw-r--r--    2 someone  users       1234",
        LINE + b"x" * 5000,
        b"----------   0 10:00",
    ],
)
def test_what_does_not_fit_says_nothing(line: bytes) -> None:
    assert NOTHING == read_longname(line, 1000, 100, 1234)


def test_numbers_are_no_names() -> None:
    line = b"drwx------    3 1000     100         1234 Dec  1  2020 x"
    assert Told(b"", b"", 3) == read_longname(line, 1000, 100, 1234)


def test_sums_of_the_real_command(tmp_path: Path) -> None:
    names = [b"plain", b"two  spaces", b"back\\slash", b"new\nline", b"\xff\xfe", b"-dash", b"e\rd"]
    for name in names:
        with open(bytes(tmp_path) + b"/" + name, "wb") as file:
            file.write(name)
    paths = [bytes(tmp_path) + b"/" + name for name in (*names, b"gone")]
    programs = [commands.SUMS.split()]
    if shutil.which("busybox"):
        programs.append(["busybox", "xargs", "-0", "busybox", "sha256sum", "--"])
    for program in programs:
        ran = subprocess.run(
            program, input=commands.names_for(paths), capture_output=True, check=False
        )
        found = commands.read_sums(ran.stdout)
        assert found.items() <= {
            path: Digest(hashlib.sha256(name).digest())
            for path, name in zip(paths, names, strict=False)
        }.items()  # fmt: skip
        assert {*paths[:2], *paths[4:6]} == found.keys()


def test_stats_of_the_real_command(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"12345")
    (tmp_path / "two words").hardlink_to(tmp_path / "one")
    (tmp_path / "alone").touch()
    os.utime(tmp_path / "one", (7, 1234.9))
    paths = [os.fsencode(tmp_path / name) for name in ("one", "two words", "alone", "gone")]
    programs = [shlex.split(commands.STATS)]
    if shutil.which("busybox"):
        programs.append(shlex.split(commands.STATS.replace("stat", "busybox stat")))
    for program in programs:
        data = commands.names_for(paths)
        ran = subprocess.run(program, input=data, capture_output=True, check=False)
        found = commands.read_stats(ran.stdout)
        assert set(paths[:3]) == found.keys()
        with_agent = link_id(cast(Any, (tmp_path / "one").stat()))
        assert commands.Stat(5, 1234, with_agent) == found[paths[0]] == found[paths[1]]
        assert b"" == found[paths[2]].link


def test_what_is_no_stat_is_passed_over() -> None:
    said = b"1 2 1 4 5 /a\n1 2 3 4 /b\n-1 2 3 4 5 /c\n" + b"9" * 40 + b" 2 3 4 5 /d\n1 2 3 4 5 /e"
    assert {b"/a": commands.Stat(4, 5, b"")} == commands.read_stats(said)


def test_what_is_no_sum_is_passed_over() -> None:
    good = b"0" * 64 + b"  /a\n"
    said = b"noise\n" + good + b"1" * 63 + b"  /b\n" + b"G" * 64 + b"  /c\n" + b"2" * 64 + b"  /d"
    assert {b"/a": bytes(32)} == commands.read_sums(said)
    assert {} == commands.read_sums(b"")
    assert {} == commands.read_sums(bytes(range(256)) * 20)


def test_a_probe_is_new_each_time() -> None:
    assert commands.probe() != commands.probe()
