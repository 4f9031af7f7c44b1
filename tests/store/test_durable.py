"""A committed file is all there or not at all."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

import pytest

from cas.store.durable import PendingFile, commit_bytes, commit_file, sync_directory


def test_a_file_is_committed(tmp_path: Path) -> None:
    commit_bytes(tmp_path / "f", b"data")
    assert b"data" == (tmp_path / "f").read_bytes()
    assert ["f"] == os.listdir(tmp_path)


def test_an_old_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    commit_bytes(tmp_path / "f", b"old")
    with (tmp_path / "f").open("rb") as old:
        commit_bytes(tmp_path / "f", b"new")
        assert b"old" == old.read()
    assert b"new" == (tmp_path / "f").read_bytes()


def test_the_mode_is_subject_to_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        commit_bytes(tmp_path / "usual", b"")
        commit_bytes(tmp_path / "private", b"", mode=0o600)
    finally:
        os.umask(old)
    assert 0o640 == stat.S_IMODE((tmp_path / "usual").stat().st_mode)
    assert 0o600 == stat.S_IMODE((tmp_path / "private").stat().st_mode)


def test_a_relative_path_and_a_path_of_bytes_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commit_bytes("a", b"1")
    commit_bytes(os.fsencode(tmp_path) + b"/\xff", b"2")
    assert [b"a", b"\xff"] == sorted(os.listdir(b"."))


def test_a_writer_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    commit_bytes(tmp_path / "f", b"old")

    def writer(file: BinaryIO) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        commit_file(tmp_path / "f", writer)
    assert b"old" == (tmp_path / "f").read_bytes()
    assert ["f"] == os.listdir(tmp_path)


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_nothing_is_left_of_a_commit_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def failing(*a: object, **k: object) -> None:
        raise OSError(5, "failed")

    commit_bytes(tmp_path / "f", b"old")
    monkeypatch.setattr(os, call, failing)
    with pytest.raises(OSError, match="failed"):
        commit_bytes(tmp_path / "f", b"new")
    assert b"old" == (tmp_path / "f").read_bytes()
    assert ["f"] == os.listdir(tmp_path)


def test_the_order_of_the_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def watched(name: str) -> None:
        real = getattr(os, name)

        def call(*a: object, **k: object) -> object:
            is_directory = name == "fsync" and stat.S_ISDIR(os.fstat(a[0]).st_mode)  # type: ignore[arg-type]  # a descriptor
            calls.append(name + (" directory" if is_directory else ""))
            return real(*a, **k)

        monkeypatch.setattr(os, name, call)

    watched("fsync")
    watched("rename")
    commit_bytes(tmp_path / "f", b"data")
    assert ["fsync", "rename", "fsync directory"] == calls


def test_several_files_are_written_before_the_first_is_committed(tmp_path: Path) -> None:
    pending = [PendingFile(tmp_path) for _ in range(3)]
    for number, one in enumerate(pending):
        one.file.write(b"%d" % number)
        one.finish()
    pending[0].commit(b"a")
    pending[1].commit(b"b")
    for one in pending:
        one.discard()
    sync_directory(tmp_path)
    assert {"a": b"0", "b": b"1"} == {p.name: p.read_bytes() for p in tmp_path.iterdir()}
