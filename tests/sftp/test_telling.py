"""What servers tell beside the protocol: lines of listings, sums of files."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from cas.ids import Digest
from cas.sftp import sums
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
    programs = [sums.COMMAND.split()]
    if shutil.which("busybox"):
        programs.append(["busybox", "xargs", "-0", "busybox", "sha256sum", "--"])
    for program in programs:
        ran = subprocess.run(program, input=sums.names_for(paths), capture_output=True, check=False)
        found = sums.read_sums(ran.stdout)
        assert found.items() <= {
            path: Digest(hashlib.sha256(name).digest())
            for path, name in zip(paths, names, strict=False)
        }.items()  # fmt: skip
        assert {*paths[:2], *paths[4:6]} == found.keys()


def test_what_is_no_sum_is_passed_over() -> None:
    good = b"0" * 64 + b"  /a\n"
    said = b"noise\n" + good + b"1" * 63 + b"  /b\n" + b"G" * 64 + b"  /c\n" + b"2" * 64 + b"  /d"
    assert {b"/a": bytes(32)} == sums.read_sums(said)
    assert {} == sums.read_sums(b"")
    assert {} == sums.read_sums(bytes(range(256)) * 20)


def test_a_probe_is_new_each_time() -> None:
    assert sums.probe() != sums.probe()
