import os
import shutil
import socket
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from cas._native import Scout
from cas.agent import roots as roots_module
from cas.agent import walk as walk_module
from cas.agent.mounts import Mounts
from cas.agent.roots import Opener, RootGuard
from cas.agent.walk import BATCH, Item, admit_roots, walk
from cas.entry import PATH_LIMIT, Problem, path_order
from cas.ignore import Decision, Matcher
from tests.agent.trees import another_user, name_of, public_directory


class Walked:
    """A walk to the end: what it gave and what it complained of."""

    def __init__(self, *roots: Path | bytes, rules: Matcher | None = None) -> None:
        self.problems: list[Problem] = []
        self.items = list(start(self.problems, *roots, rules=rules))
        self.paths = [path for path, _ in self.items]

    def below(self, root: Path) -> list[bytes]:
        start = name_of(root) + b"/"
        return [path.removeprefix(start) for path in self.paths if path.startswith(start)]


def start(
    problems: list[Problem], *roots: Path | bytes, rules: Matcher | None = None
) -> Iterator[Item]:
    guard = RootGuard()
    admitted = admit_roots(guard, [os.fsencode(root) for root in roots], problems.append)
    batches = walk(guard, admitted, rules or Matcher(), Mounts(), problems.append)
    return chain.from_iterable(batches)


def test_names_come_in_path_order_with_the_directories_above(tmp_path: Path) -> None:
    for name in ("b/c", "b-c", "b.c", "b/c.d/e", "b/c/f"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "b/c/x").touch()
    walked = Walked(tmp_path)
    expected = [b"b", b"b/c", b"b/c/f", b"b/c/x", b"b/c.d", b"b/c.d/e", b"b-c", b"b.c"]
    assert expected == walked.below(tmp_path)
    above = [name_of(path) for path in reversed((tmp_path, *tmp_path.parents))][1:]
    assert above == walked.paths[: len(above)]
    assert sorted(walked.paths, key=path_order) == walked.paths
    assert [] == walked.problems


def test_names_are_bytes(tmp_path: Path) -> None:
    names = [b"\xff\xfe", b"caf\xe9", "café".encode(), b"new\nline", b"\xed\xb3\xbf", b"\xf0"]
    for name in names:
        os.close(os.open(os.fsencode(tmp_path) + b"/" + name, os.O_CREAT))
    assert sorted(names) == Walked(tmp_path).below(tmp_path)


def test_links_are_listed_and_not_followed_and_specials_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "away/x").touch()
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(tmp_path / "away")
    (tree / "nowhere").symlink_to("missing")
    os.mkfifo(tree / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(tree / "socket"))
    walked = Walked(tree)
    assert [b"link", b"nowhere", b"pipe", b"socket"] == walked.below(tree)
    assert [] == walked.problems


def test_a_root_that_is_reached_through_links_stands_as_it_was_named(tmp_path: Path) -> None:
    (tmp_path / "real/inner").mkdir(parents=True)
    (tmp_path / "real/inner/x").touch()
    (tmp_path / "real/y").touch()
    (tmp_path / "one").symlink_to("real")
    (tmp_path / "two").symlink_to(tmp_path / "one/inner")
    (tmp_path / "file").symlink_to("real/y")
    walked = Walked(tmp_path / "one/inner", tmp_path / "two", tmp_path / "file")
    expected = [b"file", b"one", b"one/inner", b"one/inner/x", b"two", b"two/x"]
    assert expected == walked.below(tmp_path)
    kinds = {path: stat.S_IFMT(status.st_mode) for path, status in walked.items}
    assert stat.S_IFDIR == kinds[name_of(tmp_path / "one")]
    assert stat.S_IFREG == kinds[name_of(tmp_path / "file")]


def test_roots_within_each_other_give_each_name_once(tmp_path: Path) -> None:
    (tmp_path / "a/cache/keep").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    for name in ("a/cache/keep/x", "a/cache/y", "a/z", "b/w"):
        (tmp_path / name).touch()
    roots = (tmp_path / "a/cache/keep", tmp_path / "b", tmp_path, tmp_path / "a", tmp_path / "b")
    everything = [b"a", b"a/cache", b"a/cache/keep", b"a/cache/keep/x", b"a/cache/y", b"a/z"]
    walked = Walked(*roots)
    assert [*everything, b"b", b"b/w"] == walked.below(tmp_path)
    assert len(set(walked.paths)) == len(walked.paths)
    # The rules of the outer root leave out what the inner one names.
    walked = Walked(tmp_path / "a", tmp_path / "a/cache/keep", rules=Matcher(["cache/"]))
    assert [b"a", b"a/cache", b"a/cache/keep", b"a/cache/keep/x", b"a/z"] == walked.below(tmp_path)


def test_a_root_behind_a_link_within_another_root_is_what_lies_there(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/x").touch()
    (tmp_path / "link").symlink_to("real")
    walked = Walked(tmp_path, tmp_path / "link")
    assert [b"link", b"link/x", b"real", b"real/x"] == walked.below(tmp_path)


def test_roots_apart_list_what_is_above_them_once(tmp_path: Path) -> None:
    for name in ("p/a/x", "p/b/y", "q/c"):
        (tmp_path / name).mkdir(parents=True)
    walked = Walked(tmp_path / "p/b", tmp_path / "q/c", tmp_path / "p/a")
    assert [b"p", b"p/a", b"p/a/x", b"p/b", b"p/b/y", b"q", b"q/c"] == walked.below(tmp_path)
    assert sorted(walked.paths, key=path_order) == walked.paths


@pytest.mark.parametrize("root", [b"missing", b"x/../y", b"file/below", b"loop"])
def test_a_root_that_cannot_be_is_a_problem_and_the_others_go_on(
    tmp_path: Path, root: bytes
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    bad = os.fsencode(tmp_path) + b"/" + root
    walked = Walked(bad, tmp_path / "file")
    assert [b"file"] == walked.below(tmp_path)
    assert [(bad.lstrip(b"/"), True)] == [(p.path, p.left_out) for p in walked.problems]


def test_relative_roots_are_refused() -> None:
    walked = Walked(b"tmp")
    assert [Problem(b"tmp", "not an absolute path")] == walked.problems
    assert [] == walked.items


def test_rules_see_paths_from_the_root(tmp_path: Path) -> None:
    for name in ("a/b", "a/c", "d"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("a/b/keep", "a/b/drop", "a/c/drop", "d/x.o", "d/y", "top"):
        (tmp_path / name).touch()
    some = Walked(tmp_path, rules=Matcher(["*.o", "/a/c/", "drop"]))
    assert [b"a", b"a/b", b"a/b/keep", b"d", b"d/y", b"top"] == some.below(tmp_path)
    # Directories come along with what is included below them, and only with that.
    one = Walked(tmp_path, rules=Matcher(["*"], ["/a/b/keep", "/d/missing"]))
    assert [b"a", b"a/b", b"a/b/keep"] == one.below(tmp_path)
    assert name_of(tmp_path) in one.paths
    none = Walked(tmp_path, rules=Matcher(["*"]))
    assert [] == none.below(tmp_path)


def test_the_kernels_file_systems_are_not_entered_but_may_be_roots() -> None:
    if not Path("/proc/self/mountinfo").exists():
        pytest.skip("needs /proc")
    assert [b"proc"] == Walked(b"/", rules=Matcher(["/*", "!/proc/"])).paths
    assert b"proc/sys/kernel/ostype" in Walked(b"/proc/sys/kernel").paths


def test_other_mounts_are_crossed() -> None:
    shm = Path("/dev/shm")
    if not shm.is_dir() or shm.stat().st_dev == Path("/dev").stat().st_dev:
        pytest.skip("/dev/shm is no mount point of its own")
    mine = shm / f"cas-test-{os.getpid()}"
    mine.touch()
    try:
        walked = Walked(b"/dev", rules=Matcher(["/*", "!/shm/"]))
        assert name_of(mine) in walked.paths
    finally:
        mine.unlink()


class Meddler(Matcher):
    """Rules that leave nothing out, and do something to the tree when they are asked about `path`:
    after its status was taken, before anything below or beside it is looked at."""

    def __init__(self, path: bytes, meddle: Callable[[], object]) -> None:
        super().__init__(["/nothing/at/all"])
        self._path = path
        self._meddle = meddle

    def directory(self, path: bytes) -> Decision:
        self._asked(path)
        return Decision.ENTER

    def excludes_file(self, path: bytes) -> bool:
        self._asked(path)
        return False

    def _asked(self, path: bytes) -> None:
        if path == self._path:
            self._meddle()


def test_a_name_that_goes_is_no_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk_module, "FRESH_SECONDS", -1)
    for name in ("a", "b", "c"):
        (tmp_path / name).touch()
    walked = Walked(tmp_path, rules=Meddler(b"a", (tmp_path / "b").unlink))
    assert [b"a", b"c"] == walked.below(tmp_path)
    assert [(name_of(tmp_path / "b"), False)] == [(p.path, p.left_out) for p in walked.problems]


def test_what_was_looked_at_too_long_ago_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"old")
    rules = Meddler(b"a", lambda: (tmp_path / "b").write_bytes(b"newer"))
    sizes = {}
    for seconds in (-1.0, 1e6):
        (tmp_path / "b").write_bytes(b"old")
        monkeypatch.setattr(walk_module, "FRESH_SECONDS", seconds)
        items = dict(Walked(tmp_path, rules=rules).items)
        sizes[seconds] = items[name_of(tmp_path / "b")].st_size
    assert {-1.0: 5, 1e6: 3} == sizes


def test_a_large_directory_is_looked_at_name_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [b"%02d" % number for number in range(20)]
    for name in names:
        (tmp_path / os.fsdecode(name)).touch()
    for most in (19, 20):
        monkeypatch.setattr(walk_module, "LOOKED_AT_ONCE", most)
        assert names == Walked(tmp_path).below(tmp_path)
    monkeypatch.setattr(walk_module, "LOOKED_AT_ONCE", 19)
    walked = Walked(tmp_path, rules=Meddler(b"03", (tmp_path / "17").unlink))
    assert [name for name in names if name != b"17"] == walked.below(tmp_path)
    assert [(name_of(tmp_path / "17"), False)] == [(p.path, p.left_out) for p in walked.problems]


def test_a_directory_that_becomes_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "tree/d").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/x").touch()

    def swap() -> None:
        (tmp_path / "tree/d").rmdir()
        (tmp_path / "tree/d").symlink_to(tmp_path / "secret")

    walked = Walked(tmp_path / "tree", rules=Meddler(b"d", swap))
    assert [b"d"] == walked.below(tmp_path / "tree")
    assert [name_of(tmp_path / "tree/d")] == [p.path for p in walked.problems]


def test_many_names_come_in_batches_that_end_anywhere(tmp_path: Path) -> None:
    names = [b"%04d" % number for number in range(3 * BATCH)]
    for name in names:
        (tmp_path / "d" / name.decode() / "below").mkdir(parents=True)
    expected = [b"d", *chain.from_iterable((b"d/" + n, b"d/" + n + b"/below") for n in names)]
    assert expected == Walked(tmp_path).below(tmp_path)
    # A directory waits with its decision until something below it is in, however far away that is.
    last = os.fsdecode(b"/d/" + names[-1] + b"/below")
    only = Walked(tmp_path, rules=Matcher(["*"], [last]))
    assert [b"d", expected[-2], expected[-1]] == only.below(tmp_path)


@pytest.mark.root
def test_what_may_not_be_read_is_listed_and_the_rest_goes_on() -> None:
    with public_directory() as top:
        store = top / "containers/storage/overlay"
        for parent in (top, store):
            for name in ("closed/x", "half/y", "open/z"):
                (parent / name).mkdir(parents=True)
            (parent / "closed").chmod(0o700)
            (parent / "half").chmod(0o744)
        with another_user():
            walked = Walked(top)
        left = {problem.path: problem for problem in walked.problems}
        refused = [parent / name for parent in (top, store) for name in ("closed", "half")]
        assert set(map(name_of, refused)) == set(left)
        assert all("Permission denied" in problem.reason for problem in left.values())
        assert "podman unshare" in left[name_of(store / "closed")].hint
        assert "podman unshare" not in left[name_of(top / "closed")].hint
        assert name_of(store / "open/z") in walked.paths
        assert name_of(top / "closed") in walked.paths


def deep_tree(top: Path, levels: int, name: bytes) -> None:
    fd = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=fd)
        inner = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(os.open(b"~", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        os.close(fd)
        fd = inner
    os.close(fd)


@pytest.fixture
def deep_path(tmp_path: Path) -> Iterator[Path]:
    """A directory for a tree that is too deep for anyone but rm to remove."""
    top = tmp_path / "deep"
    top.mkdir()
    yield top
    subprocess.run(["rm", "-rf", top], check=True)


@pytest.mark.parametrize(("levels", "name"), [(300, b"d"), (300, b"d" * 60)])
def test_deep_trees_are_walked(deep_path: Path, levels: int, name: bytes) -> None:
    deep_tree(deep_path, levels, name)
    before = len(os.listdir("/proc/self/fd"))
    walked = Walked(deep_path)
    down = [b"/".join([name] * level) for level in range(1, levels + 1)]
    up = [b"/".join([*[name] * level, b"~"]) for level in reversed(range(levels))]
    assert down + up == walked.below(deep_path)
    assert [] == walked.problems
    assert before + 1 >= len(os.listdir("/proc/self/fd"))


def test_paths_beyond_the_limit_are_problems(deep_path: Path) -> None:
    name = b"d" * 250
    deep_tree(deep_path, 140, name)
    walked = Walked(deep_path)
    assert max(map(len, walked.paths)) <= PATH_LIMIT
    assert {"the path is too long"} == {problem.reason for problem in walked.problems}
    assert PATH_LIMIT // 251 - 2 < len(walked.below(deep_path)) // 2


def test_a_walk_keeps_few_descriptors_open(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"{number}/x").mkdir(parents=True)
    before = len(os.listdir("/proc/self/fd"))
    most = max(len(os.listdir("/proc/self/fd")) for _ in start([], tmp_path))
    assert most < before + 70


def _thicket(top: Path) -> None:
    """Directories by the dozen, within each other, large, empty, and links to them."""
    for number in range(40):
        inner = top / f"{number % 7}" / f"{number}" / "x" / "y"
        inner.mkdir(parents=True)
        for name in range(number):
            (inner / f"{name}").touch()
        (inner.parent / "link").symlink_to(top)
    deep = top / "deep"
    for _ in range(80):
        deep /= "d"
    deep.mkdir(parents=True)
    (deep / "end").touch()


def test_a_scout_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _thicket(tmp_path)
    monkeypatch.setattr(walk_module, "LOOKED_AT_ONCE", 30)
    taken = []
    take = Scout.take

    class Counted:
        def __init__(self, *arguments: Any) -> None:
            self.scout = Scout(*arguments)

        def take(self, path: bytes, prefix: bytes) -> Any:
            listing = take(self.scout, path, prefix)
            taken.append(listing is not None)
            return listing

        def close(self) -> None:
            self.scout.close()

    monkeypatch.setattr(roots_module, "Scout", Counted)
    ahead = Walked(tmp_path)
    assert sum(taken) > 150
    assert not all(taken)
    monkeypatch.setattr(Opener, "scout", lambda *_: None)
    alone = Walked(tmp_path)
    assert alone.paths == ahead.paths
    same = [one.identity(True) == other.identity(True)
            for (_, one), (_, other) in zip(alone.items, ahead.items, strict=True)]  # fmt: skip
    assert all(same)


def test_a_scout_whose_directory_is_gone_is_not_waited_for(tmp_path: Path) -> None:
    """What it listed and the walk does not enter leaves the walk to itself."""
    _thicket(tmp_path)
    problems: list[Problem] = []
    walked = start(problems, tmp_path)
    first = [path for path, _ in [next(walked) for _ in range(10)]]
    shutil.rmtree(tmp_path / "5")
    paths = [*first, *(path for path, _ in walked)]
    assert name_of(tmp_path / "6") in paths
    assert name_of(tmp_path / "deep/d/d") in paths


def test_a_walk_that_is_given_up_ends_its_scout(tmp_path: Path) -> None:
    _thicket(tmp_path)
    before = threading.active_count(), len(os.listdir("/proc/self/task"))
    guard = RootGuard()
    batches = walk(guard, admit_roots(guard, [os.fsencode(tmp_path)], print), Matcher(), Mounts(),
                   lambda _: None)  # fmt: skip
    next(batches)
    batches.close()
    assert before == (threading.active_count(), len(os.listdir("/proc/self/task")))
