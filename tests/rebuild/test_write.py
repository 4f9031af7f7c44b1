"""A content comes out of a store as it went in, whatever its shape and wherever its chunks lie."""

import io
import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cas.entry import Content
from cas.errors import DamageError, FormatError, NotHeldError, RestoreError
from cas.ids import EMPTY_DIGEST, digest_of
from cas.rebuild import scatter, spans, write
from cas.rebuild.run import content_recipes, copy_content, rebuild
from cas.rebuild.write import write_content
from cas.recipe import single_chunk
from cas.store import reader
from tests.restore.trees import pieces as pieces_of
from tests.store.build import BuiltStore
from tests.store.test_reader import CountingDecoder

Pieces = list[bytes | int]


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    return BuiltStore(tmp_path / "store", segment_size=20_000, frame_segments=3)


@pytest.fixture(params=["in order", "scattered", "small windows"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small contents take every way that large ones do."""
    if request.param != "in order":
        monkeypatch.setattr(write, "LARGE", 0)
    if request.param == "small windows":
        monkeypatch.setattr(spans, "WINDOW_LEAST", 30_000)
        monkeypatch.setattr(spans, "WINDOW_MOST", 100_000)
        monkeypatch.setattr(spans, "FRAME_LIMIT", 60_000)
        monkeypatch.setattr(scatter, "ALONE_MOST", 10_000)
        monkeypatch.setattr(scatter, "READY", 1)
        monkeypatch.setattr(scatter, "TASKS_AHEAD", 1)
    return str(request.param)


def written(
    content: Content, store: BuiltStore, path: Path, *, hashed: bool = True, readers: int = 2
) -> int:
    """Write the content to `path`; how many bytes were told."""
    told: list[int] = []
    with ThreadPoolExecutor(readers) as pool, path.open("w+b") as out:
        write_content(content, store.reader, out.fileno(), read=store.reader.read, pool=pool,
                      written=told.append, hashed=hashed)  # fmt: skip
    return sum(told)


def whole(pieces: Pieces) -> bytes:
    return b"".join(piece if isinstance(piece, bytes) else bytes(piece) for piece in pieces)


def random_pieces(rng: random.Random, old: list[bytes]) -> Pieces:
    """Data, some of it seen before, and holes, of which no two follow one another."""
    pieces: Pieces = []
    for _ in range(rng.randrange(1, 12)):
        if pieces and isinstance(pieces[-1], bytes) and rng.random() < 0.3:
            pieces.append(4096 * rng.randrange(1, 30))
        elif old and rng.random() < 0.5:
            pieces.append(rng.choice(old))
        else:
            size = 4096 * rng.randrange(1, 12)
            pieces.append(rng.randbytes(size) if rng.random() < 0.5 else bytes(size))
    merged: Pieces = []
    for piece in pieces:
        last = merged[-1] if merged else None
        if isinstance(piece, bytes) and isinstance(last, bytes):
            merged[-1] = last + piece
        else:
            merged.append(piece)
    return merged


@pytest.mark.parametrize("seed", range(12))
def test_any_content_comes_out_as_it_went_in(
    store: BuiltStore, tmp_path: Path, way: str, seed: int
) -> None:
    rng = random.Random(seed)
    old: list[bytes] = []
    contents = []
    for _ in range(6):
        pieces = random_pieces(rng, old)
        old += [piece for piece in pieces if isinstance(piece, bytes)]
        contents.append((pieces, store.sparse(pieces, chunk=4096, part=rng.choice([2, 5, 1000]))))
        if rng.random() < 0.5:
            store.plain([rng.randbytes(5000)])
    store.flush()
    for hashed in (True, False):
        for number, (pieces, content) in enumerate(contents):
            path = tmp_path / f"{number}"
            assert content.size == written(content, store, path, hashed=hashed)
            assert whole(pieces) == path.read_bytes()
            assert holes_of(pieces) <= holes_of(pieces_of(os.fsencode(path)))


def holes_of(pieces: Pieces) -> set[tuple[int, int]]:
    """Where holes of some size begin and end; a file system may have more than were asked for."""
    at, holes = 0, set()
    for piece in pieces:
        size = len(piece) if isinstance(piece, bytes) else piece
        if isinstance(piece, int):
            holes.add((at, at + size))
        at += size
    return holes


def test_plain_and_compressed_chunks_take_turns(
    store: BuiltStore, tmp_path: Path, way: str
) -> None:
    rng = random.Random(1)
    chunks = [rng.randbytes(4096) for _ in range(100)]
    for start in range(0, 100, 10):
        store.plain(chunks[start : start + 3])
    content = store.content(b"".join(chunks), chunk=4096)
    store.flush()
    written(content, store, tmp_path / "f")
    assert b"".join(chunks) == (tmp_path / "f").read_bytes()


@pytest.mark.parametrize("size", [0, 1, 5000])
def test_a_content_of_one_chunk_or_none(
    store: BuiltStore, tmp_path: Path, way: str, size: int
) -> None:
    content = store.content(b"x" * size)
    store.flush()
    assert size == written(content, store, tmp_path / "f")
    assert b"x" * size == (tmp_path / "f").read_bytes()


def test_a_content_that_is_all_hole(store: BuiltStore, tmp_path: Path, way: str) -> None:
    content = store.sparse([3 * 2**20])
    store.flush()
    assert 3 * 2**20 == written(content, store, tmp_path / "f")
    assert (3 * 2**20, 0) == ((tmp_path / "f").stat().st_size, (tmp_path / "f").stat().st_blocks)


def test_an_empty_content_of_another_digest_is_damage(store: BuiltStore, tmp_path: Path) -> None:
    store.flush()
    with pytest.raises(NotHeldError):
        written(Content(0, digest_of(b"x"), 0), store, tmp_path / "f")
    with pytest.raises(DamageError):
        written(Content(1, EMPTY_DIGEST, 1), store, tmp_path / "f")


@pytest.mark.parametrize("readers", [1, 2, 5])
def test_an_error_in_a_reader_ends_all_of_it(
    store: BuiltStore, tmp_path: Path, way: str, readers: int
) -> None:
    data = random.Random(1).randbytes(400_000)
    content = store.content(data, chunk=4096)
    store.flush()
    del store.index.located[digest_of(data[200_704:204_800])]
    with pytest.raises(NotHeldError):
        written(content, store, tmp_path / "f", readers=readers)
    content = store.content(data[:-1], chunk=4096)
    store.flush()
    store.damage(digest_of(data[200_704:204_800]))
    for hashed in (True, False):
        with pytest.raises(DamageError):
            written(content, store, tmp_path / "f", readers=readers, hashed=hashed)


def test_whoever_is_told_may_end_it(store: BuiltStore, tmp_path: Path, way: str) -> None:
    content = store.content(random.Random(1).randbytes(400_000), chunk=4096)
    store.flush()

    def stop(size: int) -> None:
        raise RestoreError("interrupted")

    with (
        ThreadPoolExecutor(2) as pool,
        (tmp_path / "f").open("w+b") as out,
        pytest.raises(RestoreError, match="interrupted"),
    ):
        write_content(content, store.reader, out.fileno(), read=store.reader.read, pool=pool,
                      written=stop)  # fmt: skip


def test_in_one_window_nothing_is_decoded_twice(
    store: BuiltStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of many frames, in an order that would open each many times."""
    monkeypatch.setattr(write, "LARGE", 0)
    monkeypatch.setattr(reader, "FrameDecoder", CountingDecoder)
    chunks = [random.Random(seed).randbytes(4096) for seed in range(200)]
    for chunk in chunks:
        store.chunk(chunk)
    store.end_frame()
    segments = sum(map(len, store.index.places.values()))
    random.Random(1).shuffle(chunks)
    content = store.content(b"".join(chunks), chunk=4096)
    store.flush()
    CountingDecoder.segments = 0
    written(content, store, tmp_path / "f", readers=1)
    assert b"".join(chunks) == (tmp_path / "f").read_bytes()
    assert CountingDecoder.segments <= segments


def test_recipes_are_run_to_any_stream(store: BuiltStore) -> None:
    pieces: Pieces = [b"a" * 10_000, 3 * 2**20, b"b" * 100, 5]
    content = store.sparse(pieces, chunk=4096, part=2)
    single = store.content(b"one")
    store.flush()
    out = io.BytesIO()
    rebuild(content_recipes(content, store.reader), store.reader, out)
    copy_content(content, store.reader, out, hashed=True)
    copy_content(single, store.reader, out, hashed=True)
    assert whole(pieces) * 2 + b"one" == out.getvalue()
    assert [single_chunk(single.digest, 3)] == list(content_recipes(single, store.reader))
    assert [] == list(content_recipes(Content(0, EMPTY_DIGEST, 0), store.reader))


def test_a_stream_is_checked_at_its_end(store: BuiltStore) -> None:
    content = store.content(random.Random(1).randbytes(100_000), chunk=4096)
    store.flush()
    wrong = Content(content.size, digest_of(b"other"), content.chunk_count, content.parts)
    copy_content(wrong, store.reader, io.BytesIO(), hashed=False)
    with pytest.raises(DamageError, match="something else"):
        copy_content(wrong, store.reader, io.BytesIO(), hashed=True)
    for size in (content.size - 1, content.size + 1):
        out = io.BytesIO()
        wrong = Content(size, content.digest, content.chunk_count, content.parts)
        with pytest.raises(DamageError, match="size"):
            copy_content(wrong, store.reader, out, hashed=True)
        assert len(out.getvalue()) <= size


def test_a_part_that_is_no_recipe_is_told(store: BuiltStore, tmp_path: Path, way: str) -> None:
    part = store.chunk(b"no recipe")
    store.flush()
    with pytest.raises(FormatError):
        written(Content(5, digest_of(b"x"), 1, (part,)), store, tmp_path / "f")


@pytest.mark.parametrize("seed", range(6))
def test_a_file_is_hashed_in_order_whoever_writes_it_and_when(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    runs: list[tuple[int, bytes]] = []
    holes: list[tuple[int, int]] = []
    size = 0
    for _ in range(60):
        length = rng.randrange(1, 600_000)
        if rng.random() < 0.3:
            holes.append((size, size + length))
        else:
            runs.append((size, rng.randbytes(length)))
        size += length
    data = bytearray(size)
    for at, run in runs:
        data[at : at + len(run)] = run
    rng.shuffle(runs)
    with (tmp_path / "file").open("w+b") as file, ThreadPoolExecutor(4) as pool:
        os.ftruncate(file.fileno(), size)
        order = scatter.InOrder(file.fileno(), holes)

        def write_one(run: tuple[int, bytes]) -> None:
            at, piece = run
            scatter.write_at(file.fileno(), memoryview(piece), at)
            order.add(at, memoryview(piece))

        list(pool.map(write_one, runs))
        assert digest_of(data) == order.digest()
