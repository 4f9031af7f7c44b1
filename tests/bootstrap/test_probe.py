"""What a host says of itself, and what is chosen by it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cas.bootstrap.choose import usable_directory, usable_pythons
from cas.bootstrap.far import BEGIN, END, ROOM, FarEnd, parse_probe, probe_script
from cas.errors import SourceError
from tests.bootstrap.hosts import this_python

SHELLS = [shell for shell in ("dash", "bash", "ksh", "busybox") if shutil.which(shell)]
TOOLS = ("cat", "df", "id", "readlink", "tail", "uname")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A directory to be the PATH, with the tools of any system and no Python."""
    found = tmp_path / "bin"
    found.mkdir()
    for tool in TOOLS:
        (found / tool).symlink_to(str(shutil.which(tool)))
    return found


def _probe(path: Path, shell: str = "sh", **environment: str) -> FarEnd:
    words = [str(shutil.which(shell)), *(["sh"] if shell == "busybox" else [])]
    home = path.parent / "home"
    home.mkdir(exist_ok=True)
    env = {"PATH": str(path), "HOME": str(home), **environment}
    script = probe_script("1.0", "/nowhere $HOME/more")
    ran = subprocess.run(words, input=script, env=env, capture_output=True, timeout=300)
    return parse_probe(b"Welcome!\n" + ran.stdout, "npu")


def _python(directory: Path, version: str) -> Path:
    """Something that says it is this Python, as old ones do."""
    directory.mkdir(exist_ok=True)
    path = directory / "python3"
    path.write_text(f"#!/bin/sh\nprintf 'python\\t{path}\\t{version}\\n'\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_finds_the_same(path: Path, shell: str) -> None:
    (path / "python3").symlink_to(sys.executable)
    far = _probe(path, shell)
    assert ("Linux", os.uname().machine, "") == (far.system, far.machine, far.installed)
    [python] = usable_pythons(far, "npu")
    mine = this_python()
    assert (mine.version, mine.machine, mine.libc, mine.suffixes) == (
        python.version, python.machine, python.libc, python.suffixes,
    )  # fmt: skip
    assert f"{path.parent}/home/.cache/cas" == usable_directory(far, "npu").path


def test_an_old_python_is_named_with_what_to_do(path: Path) -> None:
    old = _python(path, "3.9.18")
    with pytest.raises(SourceError) as caught:
        usable_pythons(_probe(path), "npu")
    assert f"no Python >= 3.10 was found on npu; found 3.9.18 at {old}" in caught.value.what
    assert "uv python install" in caught.value.advice


def test_no_python_at_all(path: Path) -> None:
    with pytest.raises(SourceError, match=r"no Python >= 3\.10 was found on npu \("):
        usable_pythons(_probe(path), "npu")


def test_a_python_beside_the_path_is_found(path: Path) -> None:
    _python(path, "3.9.18")
    (path.parent / "home").mkdir()
    _python(path.parent / "home" / "more", "3.8.1")
    assert {(3, 9, 18), (3, 8, 1)} == {python.version for python in _probe(path).pythons}


def test_a_cas_in_the_path_is_seen(path: Path) -> None:
    (path / "cas").symlink_to("/bin/sh")
    assert f"{path}/cas" == _probe(path).installed


def test_a_cache_named_by_the_environment_comes_first(path: Path, tmp_path: Path) -> None:
    far = _probe(path, XDG_CACHE_HOME=str(tmp_path / "not yet there"))
    assert f"{tmp_path}/not yet there/cas" == far.directories[0].path
    assert far.directories[0].free > 0


def test_what_is_held_already_comes_first(path: Path, tmp_path: Path) -> None:
    agent = tmp_path / "home" / ".cache" / "cas" / "agent"
    agent.mkdir(parents=True)
    (agent / "cas-1.0").touch()
    far = _probe(path, XDG_CACHE_HOME=str(tmp_path / "other"))
    assert [False, True] == [place.held for place in far.directories[:2]]
    assert str(agent.parent) == usable_directory(far, "npu").path


@pytest.fixture
def noexec(tmp_path: Path) -> Iterator[Path]:
    """A file system where no code may be run from."""
    place = tmp_path / "noexec"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "noexec,size=100m", "cas-test", str(place)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a tmpfs cannot be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.root
def test_no_code_can_be_run_from_a_noexec_directory(path: Path, noexec: Path) -> None:
    far = _probe(path, XDG_CACHE_HOME=str(noexec))
    assert "noexec" == far.directories[0].state
    assert far.directories[0].path != usable_directory(far, "npu").path


def _far(*rows: str) -> FarEnd:
    lines = [BEGIN, "system\tLinux", "machine\tx86_64", *rows, END]
    return parse_probe("\n".join(lines).encode() + b"\n", "npu")


def test_each_directory_that_will_not_do_is_listed_with_its_reason() -> None:
    far = _far(
        f"directory\t/a\tnoexec\t{ROOM}\t",
        f"directory\t/b\tclosed\t{ROOM}\t",
        "directory\t/c\twritable\t1\t",
    )
    with pytest.raises(SourceError) as caught:
        usable_directory(far, "npu")
    assert "/a (mounted noexec), /b (not writable), /c (full)" in caught.value.what


def test_a_python_without_its_library_is_not_taken() -> None:
    row = "python\t/usr/bin/python3\t3.11.2\tcpython\t2\t62\tglibc 2.36\t.so\tlzma bz2"
    with pytest.raises(SourceError) as caught:
        usable_pythons(_far(row), "npu")
    assert "/usr/bin/python3 has no lzma, bz2" in caught.value.what
    assert "libpython3-stdlib" in caught.value.advice


def test_the_newest_python_comes_after_one_like_ours() -> None:
    ours = sys.version_info[1]
    rows = [
        f"python\t/{minor}/python3\t3.{minor}.1\tcpython\t2\t62\tglibc 2.36\t.so\t"
        for minor in (ours + 1, ours, ours + 2)
    ]
    found = [python.version[1] for python in usable_pythons(_far(*rows), "npu")]
    assert [ours, ours + 2, ours + 1] == found


def test_another_system_is_refused() -> None:
    answer = f"{BEGIN}\nsystem\tFreeBSD\n{END}\n".encode()
    with pytest.raises(SourceError, match="FreeBSD"):
        usable_pythons(parse_probe(answer, "npu"), "npu")


@pytest.mark.parametrize("answer", [b"", b"This account is closed.\n", BEGIN.encode()])
def test_a_host_that_runs_no_shell_says_so(answer: bytes) -> None:
    with pytest.raises(SourceError, match="does not run a shell"):
        parse_probe(answer, "npu")


@given(st.binary(max_size=300), st.lists(st.lists(st.text(max_size=9), max_size=9), max_size=5))
def test_any_answer_is_read_or_refused(noise: bytes, rows: list[list[str]]) -> None:
    lines = ["\t".join(("python", *row)) for row in rows]
    lines += ["\t".join(("directory", "/x", *row)) for row in rows]
    answer = noise + f"\n{BEGIN}\n".encode() + "\n".join(lines).encode() + f"\n{END}".encode()
    far = parse_probe(answer, "npu")
    assert all(python.path.startswith("/") for python in far.pythons)
    assert all(place.path.startswith("/") for place in far.directories)
