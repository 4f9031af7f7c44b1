import hashlib
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cas.agent.assemble import NO_DIGEST, Assembler
from cas.agent.content import READ_SIZE, ContentReader, FileState, runs
from cas.agent.roots import Opener, RootGuard
from cas.chunker import MAX_SIZE, MIN_SIZE, cut_whole
from cas.entry import HOLE_DIGEST, INCONSISTENT
from cas.ids import EMPTY_DIGEST, Digest, digest_of
from cas.recipe import PART_CHUNKS, Copy, Hole, decode_recipe, recipe_id
from cas.unpack.limits import HOLE_LEAST
from tests.agent.trees import name_of, rebuilt

ROOT = Path(__file__).resolve().parents[2]


class Reader:
    """Reads files; keeps the recipes, and says when something was read."""

    def __init__(self) -> None:
        self.recipes: dict[Digest, bytes] = {}
        self.sizes: list[int] = []
        self.attempts = 0
        self.on_read: Callable[[], None] = lambda: None

    def _count(self, files: int, size: int) -> None:
        self.attempts += files
        if size:
            self.sizes.append(size)
            self.on_read()

    def read(self, path: Path) -> FileState:
        guard = RootGuard()
        guard.admit(os.fsencode(path.parent))
        with Opener(guard) as opener:
            reader = ContentReader(opener, self.recipes.__setitem__, self._count)
            try:
                return reader.read(name_of(path))
            finally:
                reader.close()
                guard.close()


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.mark.parametrize(
    "size",
    [0, 1, MIN_SIZE - 1, MIN_SIZE, MIN_SIZE + 1, MAX_SIZE, READ_SIZE, READ_SIZE + 1, 5_000_000],
)
def test_content_is_that_of_the_bytes(tmp_path: Path, size: int) -> None:
    data = noise(size)
    (tmp_path / "x").write_bytes(data)
    reader = Reader()
    state = reader.read(tmp_path / "x")
    content = state.content
    lengths = cut_whole(data)
    assert (size, digest_of(data), len(lengths)) == (
        content.size,
        content.digest,
        content.chunk_count,
    )
    assert (0, "") == (state.flags, state.doubt)
    assert (1 if len(lengths) > 1 else 0) == len(content.parts) == len(reader.recipes)
    assert size == sum(reader.sizes)
    for part in content.parts:
        recipe = decode_recipe(reader.recipes[part])
        assert recipe_id(reader.recipes[part]) == part
        assert (size, content.digest, tuple(lengths), ()) == (
            recipe.size,
            recipe.digest,
            recipe.lengths,
            recipe.program,
        )
        starts = [sum(lengths[:number]) for number in range(len(lengths))]
        chunks = [data[a : a + n] for a, n in zip(starts, lengths, strict=True)]
        assert tuple(map(digest_of, chunks)) == recipe.ids


def test_nothing_has_the_digest_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    content = Reader().read(tmp_path / "x").content
    assert (0, EMPTY_DIGEST, 0, ()) == (
        content.size,
        content.digest,
        content.chunk_count,
        content.parts,
    )


def sparse_file(path: Path, size: int, pieces: dict[int, bytes]) -> None:
    with path.open("wb") as file:
        for offset, data in pieces.items():
            file.seek(offset)
            file.write(data)
        file.truncate(size)
    if path.stat().st_blocks * 512 >= size:
        pytest.skip("no holes in files here")


MIB = 2**20


@pytest.mark.parametrize(
    ("size", "pieces"),
    [
        (4 * MIB, {}),
        (4 * MIB, {0: noise(100_000)}),
        (4 * MIB, {3 * MIB: noise(MIB)}),
        (16 * MIB, {2 * MIB: noise(200_000), 6 * MIB: b"x", 9 * MIB: noise(3 * MIB)}),
    ],
    ids=["only a hole", "at the end", "at the start", "between"],
)
def test_holes_are_kept_and_not_read(tmp_path: Path, size: int, pieces: dict[int, bytes]) -> None:
    sparse_file(tmp_path / "sparse", size, pieces)
    reader = Reader()
    content = reader.read(tmp_path / "sparse").content
    data = (tmp_path / "sparse").read_bytes()
    assert (size, digest_of(data)) == (content.size, content.digest)
    assert data == rebuilt(content, reader.recipes, data)
    recipe = decode_recipe(reader.recipes[content.parts[0]])
    holes = [op.size for op in recipe.program if isinstance(op, Hole)]
    assert size - sum(reader.sizes) == sum(holes) > 0
    assert min(holes) >= HOLE_LEAST
    assert content.chunk_count == len(recipe.ids)
    (tmp_path / "dense").write_bytes(data)
    assert content.digest == Reader().read(tmp_path / "dense").content.digest


def test_chunks_after_a_hole_are_those_of_the_same_bytes_anywhere(tmp_path: Path) -> None:
    data = noise(3 * MIB)
    sparse_file(tmp_path / "sparse", 11 * MIB, {8 * MIB: data})
    (tmp_path / "plain").write_bytes(data)
    ids = []
    for name in ("sparse", "plain"):
        reader = Reader()
        content = reader.read(tmp_path / name).content
        ids.append(decode_recipe(reader.recipes[content.parts[0]]).ids)
    assert ids[0] == ids[1]


def test_small_holes_are_read_as_zeros(tmp_path: Path) -> None:
    pieces = {offset: noise(70_000) for offset in range(0, 4 * MIB, 400_000)}
    sparse_file(tmp_path / "sparse", 4 * MIB, pieces)
    (tmp_path / "dense").write_bytes((tmp_path / "sparse").read_bytes())
    sparse, dense = Reader(), Reader()
    assert dense.read(tmp_path / "dense").content == sparse.read(tmp_path / "sparse").content
    assert dense.recipes == sparse.recipes


def test_too_much_hole_to_hash_gives_the_digest_of_the_recipe(tmp_path: Path) -> None:
    sparse_file(tmp_path / "x", 2**40, {2**39: noise(300_000)})
    reader = Reader()
    state = reader.read(tmp_path / "x")
    assert HOLE_DIGEST == state.flags
    assert 2**40 == state.content.size
    assert sum(reader.sizes) < 400_000
    [part] = state.content.parts
    assert state.content.digest == recipe_id(reader.recipes[part])
    recipe = decode_recipe(reader.recipes[part])
    assert NO_DIGEST == recipe.digest
    assert 2**40 == recipe.size


def test_runs_cover_a_file_without_gaps(tmp_path: Path) -> None:
    sparse_file(tmp_path / "x", 9 * MIB, {3 * MIB: b"x" * 5000, 5 * MIB + 7: b"y"})
    with (tmp_path / "x").open("rb") as file:
        found = list(runs(file.fileno(), 9 * MIB))
    ends = [offset + length for offset, length, _ in found]
    assert [0, *ends[:-1]] == [offset for offset, _, _ in found]
    assert 9 * MIB == ends[-1]
    assert [True, False, True, False, True] == [hole for _, _, hole in found]


def test_a_file_that_says_it_is_empty_and_is_not() -> None:
    path = Path("/proc/sys/kernel/ostype")
    if not path.exists():
        pytest.skip("needs /proc")
    data = path.read_bytes()
    content = Reader().read(path).content
    assert (len(data), digest_of(data), 1) == (content.size, content.digest, content.chunk_count)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as made:
        yield made


@pytest.mark.parametrize("count", [PART_CHUNKS, PART_CHUNKS + 1, 2 * PART_CHUNKS + 7])
def test_many_chunks_make_several_parts(pool: ThreadPoolExecutor, count: int) -> None:
    recipes: dict[Digest, bytes] = {}
    assembler = Assembler(pool, recipes.__setitem__)
    whole, parts = hashlib.sha256(), []
    for number in range(count):
        if number % PART_CHUNKS == 0:
            parts.append(hashlib.sha256())
        byte = bytes([number % 251])
        assembler.data(byte)
        assembler.end_run()
        whole.update(byte)
        parts[-1].update(byte)
    content = assembler.finish()
    assert (count, whole.digest(), count) == (content.size, content.digest, content.chunk_count)
    decoded = [decode_recipe(recipes[part]) for part in content.parts]
    assert [part.digest() for part in parts] == [recipe.digest for recipe in decoded]
    assert all(PART_CHUNKS == len(recipe.ids) for recipe in decoded[:-1])
    assert all(() == recipe.program for recipe in decoded)


def test_a_part_may_end_before_a_hole(pool: ThreadPoolExecutor) -> None:
    recipes: dict[Digest, bytes] = {}
    assembler = Assembler(pool, recipes.__setitem__, hashed=False)
    for _ in range(PART_CHUNKS):
        assembler.data(b"x")
        assembler.end_run()
    assembler.hole(5)
    assembler.data(b"y")
    assembler.end_run()
    content = assembler.finish()
    decoded = [decode_recipe(recipes[part]) for part in content.parts]
    assert [(), (Hole(5), Copy(1))] == [recipe.program for recipe in decoded]
    assert PART_CHUNKS + 6 == content.size
    both = b"".join(recipes[part] for part in content.parts)
    assert digest_of(both) == content.digest


def test_a_file_that_changes_once_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(noise(3 * MIB))
    reader = Reader()

    def change() -> None:
        reader.on_read = lambda: None
        path.write_bytes(noise(2 * MIB, seed=2))

    reader.on_read = change
    state = reader.read(path)
    assert (0, "") == (state.flags, state.doubt)
    assert digest_of(path.read_bytes()) == state.content.digest
    assert 2 == reader.attempts


def test_a_file_that_is_replaced_meanwhile_is_read_as_it_is_then(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(noise(3 * MIB))
    (tmp_path / "new").write_bytes(b"new")
    (tmp_path / "new").chmod(0o600)
    reader = Reader()

    def replace() -> None:
        reader.on_read = lambda: None
        (tmp_path / "new").rename(path)

    reader.on_read = replace
    state = reader.read(path)
    assert (0, digest_of(b"new")) == (state.flags, state.content.digest)
    assert path.stat().st_ino == state.status.st_ino


@pytest.mark.parametrize("size", [100, 3 * MIB])
def test_a_file_that_grows_all_the_time_is_taken_with_a_doubt(tmp_path: Path, size: int) -> None:
    path = tmp_path / "log"
    path.write_bytes(noise(size))
    stop = threading.Event()
    written = threading.Semaphore(0)

    def write() -> None:
        with path.open("ab", buffering=0) as log:
            while not stop.wait(0.001):
                log.write(b"x" * 1000)
                written.release()

    def wait_for_writer() -> None:
        while written.acquire(blocking=False):
            pass
        # The first may have been begun before; the second was not.
        written.acquire()
        written.acquire()

    reader = Reader()
    reader.on_read = wait_for_writer
    writer = threading.Thread(target=write)
    writer.start()
    try:
        state = reader.read(path)
    finally:
        stop.set()
        writer.join()
    assert INCONSISTENT == state.flags
    assert "changed" in state.doubt
    assert 4 == reader.attempts
    # Appending leaves what was there before as it was, so it can be told what must be held.
    data = path.read_bytes()[: state.content.size]
    assert size <= state.content.size == len(data)
    if state.content.parts:
        assert digest_of(data) == state.content.digest
        assert data == rebuilt(state.content, reader.recipes, data)


def test_a_file_that_is_cut_short_meanwhile_gives_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(noise(3 * MIB))
    reader = Reader()

    reader.on_read = lambda: os.truncate(path, 3 * MIB - 600_000 * reader.attempts)
    state = reader.read(path)
    assert INCONSISTENT == state.flags
    assert READ_SIZE == state.content.size  # had been read before it was cut to less
    [part] = state.content.parts
    assert READ_SIZE == decode_recipe(reader.recipes[part]).size


MEMORY = """
import os, resource, sys
from pathlib import Path
from tests.agent.trees import scan
small, large = Path(sys.argv[1]), Path(sys.argv[2])
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
scan(small)
before = peak()
done = scan(large)
print(peak() - before, done.progress.read, sum(page.chunks for page in done.pages))
"""


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    for name in ("small", "large"):
        (tmp_path / name).mkdir()
    (tmp_path / "small/x").write_bytes(noise(2 * MIB))
    piece = noise(MIB)
    with (tmp_path / "large/x").open("wb") as file:
        for number in range(256):
            file.write(number.to_bytes(2, "little") + piece[2:])
        file.seek(2**30 - MIB)
        file.write(piece)
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, tmp_path / "small", tmp_path / "large"],
        check=True,
        capture_output=True,
        cwd=ROOT,
    )
    grown_kib, read, chunks = map(int, done.stdout.split())
    assert 257 * MIB == read
    assert chunks > 2000
    assert grown_kib < 16 * 1024
