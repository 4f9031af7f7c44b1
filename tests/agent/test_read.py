import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from cas.agent.extract import CHANGED, Extractors
from cas.agent.read import READ_SIZE, Found, Missed, read_wanted
from cas.agent.roots import RootGuard
from cas.chunker import MAX_SIZE
from cas.entry import Entry
from cas.errors import SourceError
from cas.ids import digest_of
from cas.recipe import decode_recipe
from tests.agent.trees import Scanned, name_of, scan


class Tree:
    """A scanned directory, to be read from again as if it were one page."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.guard = RootGuard([os.fsencode(top)])
        self.done: Scanned = scan(top, guard=self.guard)
        self.chunk_count = sum(page.chunks for page in self.done.pages)
        self.asked = 0

    def read(self, wanted: Sequence[int]) -> list[Found | Missed]:
        def recipe_of(id_: bytes) -> bytes:
            self.asked += 1
            return self.done.objects[id_]  # type: ignore[index]  # a digest

        extractors = Extractors(recipe_of, lambda _: None)
        return list(
            read_wanted(self.done.entries, recipe_of, wanted, guard=self.guard,
                        extractors=extractors)
        )  # fmt: skip

    def chunks(self) -> list[bytes]:
        """The chunk space, as the recipes say it is."""
        found = []
        for entry in self.done.entries:
            if entry.content is not None and not entry.content.parts and entry.size:
                found.append(entry.content.digest)
            for part in entry.content.parts if entry.content else ():
                found += decode_recipe(self.done.objects[part]).ids
        return list(found)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    noise = random.Random(1)
    (tmp_path / "a").mkdir()
    (tmp_path / "a/empty").touch()
    (tmp_path / "a/small").write_bytes(b"small")
    (tmp_path / "b").write_bytes(noise.randbytes(20 * MAX_SIZE))
    (tmp_path / "c").symlink_to("b")
    with (tmp_path / "d").open("wb") as file:
        file.seek(3 * 2**20)
        file.write(noise.randbytes(2**20))
        file.seek(9 * 2**20)
        file.write(noise.randbytes(100_000))
        file.truncate(12 * 2**20)
    (tmp_path / "e").write_bytes(b"e")
    return Tree(tmp_path)


def test_all_chunks_come_in_order_and_are_right(tree: Tree) -> None:
    results = tree.read(range(tree.chunk_count))
    ids = [digest_of(result.data) for result in results if isinstance(result, Found)]
    assert tree.chunks() == ids
    assert list(range(tree.chunk_count)) == [result.index for result in results]


def test_any_choice_of_chunks_comes(tree: Tree) -> None:
    chosen = random.Random(2)
    ids = tree.chunks()
    for count in (1, 2, 5, 20, len(ids) // 2):
        wanted = sorted(chosen.sample(range(len(ids)), count))
        results = tree.read(wanted)
        assert wanted == [result.index for result in results]
        assert [ids[index] for index in wanted] == [
            digest_of(result.data) for result in results if isinstance(result, Found)
        ]
    assert [] == tree.read([])


def test_only_recipes_of_wanted_files_are_asked_for(tree: Tree) -> None:
    tree.read([0])
    assert 0 == tree.asked
    tree.read([1, 2])
    assert 1 == tree.asked


def test_a_chunk_that_the_page_does_not_have_is_refused(tree: Tree) -> None:
    with pytest.raises(SourceError, match="is wanted of a page"):
        tree.read([0, tree.chunk_count])


def outcome(results: list[Found | Missed]) -> list[int]:
    return [result.index for result in results if isinstance(result, Missed)]


def test_changed_bytes_are_missed_and_the_others_come(tree: Tree) -> None:
    with (tree.top / "b").open("r+b") as file:
        file.seek(10 * MAX_SIZE)
        file.write(bytes([file.read(1)[0] ^ 1]))
    results = tree.read(range(tree.chunk_count))
    [missed] = [result for result in results if isinstance(result, Missed)]
    assert CHANGED == missed.reason
    assert tree.chunk_count - 1 == len(results) - 1


def test_a_file_cut_short_gives_what_is_left_of_it(tree: Tree) -> None:
    os.truncate(tree.top / "b", READ_SIZE - 1)
    results = tree.read(range(1, tree.chunk_count))
    missed = outcome(results)
    assert missed
    assert list(range(missed[0], missed[-1] + 1)) == missed
    assert any(isinstance(result, Found) and result.index < missed[0] for result in results)


def replace_by_link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "change", [Path.unlink, replace_by_link, replace_by_pipe, replace_by_directory]
)
def test_what_is_no_file_any_more_is_missed(tree: Tree, change: object) -> None:
    assert callable(change)
    change(tree.top / "a/small")
    results = tree.read(range(tree.chunk_count))
    assert [0] == outcome(results)
    assert "cannot be read any more" in results[0].reason  # type: ignore[union-attr]  # see above


def test_a_directory_that_has_become_a_link_is_not_followed(tree: Tree) -> None:
    (tree.top / "a").rename(tree.top / "moved")
    (tree.top / "a").symlink_to("moved")
    assert [0] == outcome(tree.read(range(tree.chunk_count)))


def test_a_directory_that_has_gone_is_missed(tree: Tree) -> None:
    shutil.rmtree(tree.top / "a")
    assert [0] == outcome(tree.read(range(tree.chunk_count)))


def test_neighbours_are_read_together(tree: Tree, tmp_path: Path) -> None:
    """Counted in the kernel's own figures for this process."""
    io = Path("/proc/self/io")
    if not io.exists():
        pytest.skip("needs /proc/self/io")

    def calls() -> int:
        return int(dict(line.split(": ") for line in io.read_text().splitlines())["syscr"])

    chunks = tree.chunk_count
    before = calls()
    idle = calls() - before
    before = calls()
    tree.read(range(chunks))
    used = calls() - before - idle
    assert chunks > 60
    assert used <= 6 * 2**20 // READ_SIZE + 10


def test_entries_behind_a_linked_root_are_found(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/x").write_bytes(b"x")
    (tmp_path / "link").symlink_to("real")
    tree = Tree(tmp_path / "link")
    assert [Found(0, b"x")] == tree.read([0])
    entries: list[Entry] = tree.done.entries
    assert name_of(tmp_path / "link/x") == entries[-1].path
