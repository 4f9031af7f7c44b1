"""The walk over SFTP beside the agent's, and names that no honest server gives."""

from __future__ import annotations

import os
import random
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from cas.agent import walk as agents
from cas.agent.mounts import Mounts
from cas.agent.roots import RootGuard
from cas.entry import Problem, path_order
from cas.ignore import Matcher
from cas.sftp.walk import AHEAD, Item, Places, admit, walk
from cas.transport.sftp import Listed
from tests.sftp.fakes import Tree


def walked(
    top: Path, *roots: bytes, rules: Matcher | None = None, tree: Tree | None = None
) -> tuple[list[Item], list[Problem], Places]:
    server = tree or Tree(top)
    problems: list[Problem] = []
    places = admit(server, roots or [os.fsencode(top)], problems.append)
    batches = walk(server, places, rules or Matcher(), problems.append)
    return [item for batch in batches for item in batch], problems, places


def agent_walked(roots: list[bytes], rules: Matcher) -> list[bytes]:
    problems: list[Problem] = []
    guard = RootGuard()
    admitted = agents.admit_roots(guard, roots, problems.append)
    batches = agents.walk(guard, admitted, rules, Mounts(), problems.append)
    return [item[0] for batch in batches for item in batch]


def grow(top: Path, rng: random.Random, depth: int = 0) -> None:
    for name in rng.sample(
        [b"a", b"a.o", b"b", b"c-d", b"keep", b"\xff", b"z z"], rng.randrange(7)
    ):
        path = Path(os.fsdecode(os.path.join(os.fsencode(top), name)))
        kind = rng.randrange(4)
        if kind == 0 or depth > 3:
            path.touch()
        elif kind == 1:
            path.symlink_to("..")
        else:
            path.mkdir()
            grow(path, rng, depth + 1)


RULES = [
    Matcher(),
    Matcher(("*.o", "/a/")),
    Matcher(("*",), ("keep",)),
    Matcher(("b/",), ("/b/a/",)),
]


@pytest.mark.parametrize("seed", range(20))
def test_it_goes_the_agents_way(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    top = tmp_path / "top"
    top.mkdir()
    grow(top, rng)
    inner = [
        os.fsencode(path) for path in top.rglob("*") if path.is_dir() and not path.is_symlink()
    ]
    roots = [os.fsencode(top), *rng.sample(inner, min(len(inner), 2))]
    for rules in RULES:
        found, problems, _ = walked(top, *roots, rules=rules)
        assert [] == problems
        paths = [path for path, _ in found]
        assert agent_walked(roots, rules) == paths
        assert sorted(paths, key=path_order) == paths


def test_directories_are_listed_ahead_of_their_turn(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"d{number:03d}/e").mkdir(parents=True)
    tree = Tree(tmp_path)
    places = admit(tree, [os.fsencode(tmp_path)], lambda _: None)
    batches = walk(tree, places, Matcher(), lambda _: None)
    next(batches)
    assert AHEAD < len(tree.listings) <= 256 + 2 * AHEAD
    assert sum(len(batch) for batch in batches) > 0
    assert 401 == len(set(tree.listings)) == len(tree.listings)


def test_a_root_stands_where_it_was_named(tmp_path: Path) -> None:
    (tmp_path / "real/dir").mkdir(parents=True)
    (tmp_path / "real/dir/file").touch()
    (tmp_path / "named").symlink_to("real")
    root = os.fsencode(tmp_path / "named/dir")
    found, problems, places = walked(tmp_path, root)
    assert [] == problems
    assert root[1:] + b"/file" == found[-1][0]
    assert os.fsencode(tmp_path / "real/dir/file") == places.path_of(root[1:] + b"/file")
    assert any(path == os.fsencode(tmp_path / "named")[1:] for path, _ in found)


def test_home_is_the_far_ends(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    found, _, _ = walked(tmp_path, b"~", b"~/x", b"~/gone")
    assert os.fsencode(tmp_path / "x")[1:] == found[-1][0]


def test_what_is_not_there_is_listed(tmp_path: Path) -> None:
    found, problems, _ = walked(tmp_path, b"/no/such/path", b"relative", b"/a\0b")
    assert [] == found
    assert [b"no/such/path", b"relative", b"a\0b"] == [problem.path for problem in problems]
    assert all(problem.left_out for problem in problems)


def test_names_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "honest").touch()
    top = os.fsencode(tmp_path)
    names = [b"", b"a/b", b"../x", b"/etc/passwd", b"n\0l", b"twice", b"twice", b"l" * 256]
    found, problems, _ = walked(tmp_path, tree=Tree(tmp_path, names={top: [*names, b"\xfe\n"]}))
    below = [path[len(top) :] for path, _ in found if path.startswith(top[1:] + b"/")]
    assert [b"honest", b"twice", b"\xfe\n"] == below
    assert 7 == len(problems)
    assert all(problem.left_out for problem in problems)


def test_dots_are_passed_over(tmp_path: Path) -> None:
    tree = Tree(tmp_path, names={os.fsencode(tmp_path): [b"..", b"."]})
    found, problems, _ = walked(tmp_path, tree=tree)
    assert [] == problems
    assert not [path for path, _ in found if path.endswith(b".")]


def test_owners_above_are_called_as_in_the_roots_listing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    class Naming(Tree):
        def list(self, path: bytes) -> Future[list[Listed]]:
            named: Future[list[Listed]] = Future()
            named.set_result(
                [
                    replace(one, attributes=replace(one.attributes, user=b"someone", group=b"all"))
                    for one in super().list(path).result()
                ]
            )
            return named

    for root in (tmp_path, tmp_path / "file"):
        found, _, _ = walked(tmp_path, os.fsencode(root), tree=Naming(tmp_path))
        mine = os.fsencode(tmp_path)[1:]
        assert (b"someone", b"all") == (dict(found)[mine].user, dict(found)[mine].group)
        assert b"someone" == dict(found)[mine + b"/file"].user


def test_a_directory_that_cannot_be_listed_stays(tmp_path: Path) -> None:
    (tmp_path / "d/e").mkdir(parents=True)

    class Refusing(Tree):
        def list(self, path: bytes) -> object:  # type: ignore[override]
            if path.endswith(b"/d"):
                path += b"/nowhere"
            return super().list(path)

    found, problems, _ = walked(tmp_path, tree=Refusing(tmp_path))
    assert found[-1][0].endswith(b"/d")
    assert [os.fsencode(tmp_path / "d")[1:]] == [problem.path for problem in problems]


def test_the_kernels_file_systems_are_not_entered() -> None:
    tree = Tree(Path("/"))
    found, _, _ = walked(Path("/"), b"/", rules=Matcher(("/*", "!/proc", "!/sys")), tree=tree)
    assert [b"proc", b"sys"] == [path for path, _ in found]
    assert [b"/"] == tree.listings
    found, _, _ = walked(Path("/"), b"/proc/sys/kernel/random")
    assert b"proc/sys/kernel/random/boot_id" in [path for path, _ in found]
