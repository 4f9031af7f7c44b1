import os
import threading
from pathlib import Path

import pytest

from cas.agent.roots import Opener, RootGuard, entry_path
from cas.errors import SourceError
from tests.agent.trees import another_user, name_of, public_directory, scan


def fs(path: Path) -> bytes:
    return os.fsencode(path)


@pytest.mark.parametrize(
    ("named", "expected"),
    [(b"/", b""), (b"//a///b/", b"a/b"), (b"/./a/.", b"a"), (b"/\xff", b"\xff")],
)
def test_entry_paths(named: bytes, expected: bytes) -> None:
    assert expected == entry_path(named)


@pytest.mark.parametrize("named", [b"", b"a", b"/a/..", b"/..", b"/a\0b"])
def test_paths_that_mean_nothing_certain_are_refused(named: bytes) -> None:
    with pytest.raises(SourceError):
        entry_path(named)


def test_nothing_outside_the_allowed_directories_is_admitted(tmp_path: Path) -> None:
    (tmp_path / "in/side").mkdir(parents=True)
    (tmp_path / "inner").mkdir()
    (tmp_path / "in/out").symlink_to(tmp_path / "inner")
    (tmp_path / "in/back").symlink_to(tmp_path / "in/side")
    guard = RootGuard([fs(tmp_path / "in")])
    for refused in (tmp_path, tmp_path / "inner", tmp_path / "in/out", Path("/")):
        with pytest.raises(SourceError, match="outside"):
            guard.admit(fs(refused))
    root = guard.admit(fs(tmp_path / "in/back"))
    assert (name_of(tmp_path / "in/back"), (name_of(tmp_path / "in"),)) == (
        root.path,
        root.ancestors,
    )


def test_an_agent_that_is_limited_lists_and_reads_nothing_outside(tmp_path: Path) -> None:
    (tmp_path / "in/side").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/x").write_bytes(b"secret")
    (tmp_path / "in/side/leak").symlink_to(tmp_path / "secret")
    guard = RootGuard([fs(tmp_path / "in")])
    done = scan(tmp_path / "in/side", tmp_path / "secret", tmp_path / "in/side/leak", guard=guard)
    paths = [name_of(tmp_path / name) for name in ("in", "in/side", "in/side/leak")]
    assert paths == [entry.path for entry in done.entries]
    refused = {name_of(tmp_path / "secret"), name_of(tmp_path / "in/side/leak")}
    assert refused == {problem.path for problem in done.problems}


def test_an_allowed_directory_may_be_the_root_of_a_tier(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x")
    done = scan(tmp_path, guard=RootGuard([fs(tmp_path)]))
    assert [name_of(tmp_path), name_of(tmp_path / "x")] == [e.path for e in done.entries]


def test_a_link_that_comes_into_an_admitted_path_later_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "in/a/b").mkdir(parents=True)
    (tmp_path / "out/b").mkdir(parents=True)
    (tmp_path / "out/b/x").touch()
    guard = RootGuard([fs(tmp_path / "in")])
    guard.admit(fs(tmp_path / "in/a/b"))
    (tmp_path / "in/a").rename(tmp_path / "in/was")
    (tmp_path / "in/a").symlink_to(tmp_path / "out")
    with Opener(guard) as opener, pytest.raises(OSError, match="Not a directory"):
        opener.regular_file(name_of(tmp_path / "in/a/b/x"))


def test_what_no_root_was_admitted_for_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with Opener(RootGuard()) as opener, pytest.raises(PermissionError):
        opener.regular_file(name_of(tmp_path / "x"))


def test_specials_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "file").write_bytes(b"x")
    guard = RootGuard()
    guard.admit(fs(tmp_path))
    # A writer that waits for a reader would go on if the pipe were opened.
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(b""), daemon=True)
    writer.start()
    with Opener(guard) as opener:
        for name in ("pipe", "link", "."):
            with pytest.raises(OSError, match=r"no regular file|\[Errno"):
                opener.regular_file(name_of(tmp_path / name))
        assert writer.is_alive()
        fd, _ = opener.regular_file(name_of(tmp_path / "file"))
        assert b"x" == os.read(fd, 2)
        os.close(fd)
    (tmp_path / "pipe").read_bytes()
    writer.join()


@pytest.mark.root
def test_directories_that_can_only_be_passed_through_do_not_hinder() -> None:
    with public_directory() as top:
        (top / "passage/mine").mkdir(parents=True)
        (top / "passage/mine/x").write_bytes(b"x")
        (top / "passage").chmod(0o711)
        with another_user():
            done = scan(top / "passage/mine", guard=RootGuard())
        assert [] == done.problems
        assert b"mine" in done.below(top / "passage")
        assert b"mine/x" in done.below(top / "passage")


def test_reading_leaves_access_times_alone(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x")
    long_ago = 10**18
    os.utime(tmp_path / "x", ns=(long_ago, 2 * long_ago))
    os.utime(tmp_path, ns=(long_ago, 2 * long_ago))
    scan(tmp_path)
    assert long_ago == (tmp_path / "x").stat().st_atime_ns
    assert long_ago == tmp_path.stat().st_atime_ns


def test_closing_lets_go_of_every_descriptor(tmp_path: Path) -> None:
    (tmp_path / "a/b/c").mkdir(parents=True)
    before = len(os.listdir("/proc/self/fd"))
    guard = RootGuard()
    scan(tmp_path, guard=guard)
    guard.close()
    assert before == len(os.listdir("/proc/self/fd"))
