"""A far end that breaks the protocol: the sync ends with one clear error, within memory, and the
store is as good as before. The other way round too: a client that asks an agent for nonsense."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cas.entry import Content
from cas.errors import CasError, FormatError, LimitError, PeerError, TransportError
from cas.frame import Codec
from cas.ids import Digest, digest_of
from cas.messages import (
    Look,
    Message,
    Missed,
    Page,
    Piece,
    Recipes,
    Same,
    Scan,
    Want,
)
from cas.pieces import Assembler
from cas.pull import receive
from cas.recipe import Recipe, encode_recipe
from tests.pull.scripted import (
    Peer,
    Script,
    file,
    indexes,
    page,
    run_scripts,
    scanned,
    segment,
    serve_wants,
)
from tests.pull.world import World

A, B, C = b"content of a", b"content of b", b"content of c"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def saying(*messages: Message) -> Script:
    """An agent that says this after the order to scan, and then waits."""

    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.send(*messages)
        await peer.until_gone()

    return script


def giving(*segments: list[Piece]) -> Script:
    """An agent with a page of files a, b, c that answers the want of it with these."""

    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.send(page(0, file(b"a", A), file(b"b", B), file(b"c", C)), scanned(1))
        await peer.get(Want)
        for pieces in segments:
            await peer.send(*pieces)
        await peer.until_gone()

    return script


def still_good(world: World) -> bool:
    """Whether an honest sync works, and all that the store names can be read."""
    (world.source / "x").write_bytes(b"an honest file")
    world.sync(world.tier("one"))
    store = world.open()
    for chunk, _ in world.index.chunks():
        store.reader.chunk(chunk)
    for row in store.snapshots():
        list(store.entries(store.snapshot(row.id)))
    store.reader.close()
    return world.on_disk() == world.content("one")


def test_an_honest_script_is_believed(world: World) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.send(page(0, file(b"a", A), file(b"b", B)), page(1, file(b"c", C)), scanned(2))
        await serve_wants(peer, {0: [A, B], 1: [C]}, 2)
        await peer.until_gone()

    (tier,) = run_scripts(world, script).tiers
    assert tier.complete
    assert tier.fetched == tier.to_fetch == tier.unique == len(A + B + C)
    assert {b"/a": A, b"/b": B, b"/c": C} == world.content("one")


PAGE_A = page(0, file(b"a", A))
OTHER = page(0, file(b"b", B))

WRONG_SCANS: dict[str, tuple[Message, ...]] = {
    "the same page twice": (PAGE_A, PAGE_A, scanned(1)),
    "two pages of one number": (PAGE_A, OTHER, scanned(1)),
    "a page for one that was the same": (Same(1, 0, digest_of(PAGE_A.encoded)), PAGE_A),
    "a page that is missing": (PAGE_A, page(2, file(b"c", C)), scanned(2)),
    "fewer pages than came": (PAGE_A, page(1, file(b"b", B)), scanned(1)),
    "a page of a huge number": (page(2**32 - 1, file(b"a", A)), scanned(1)),
    "a page after the end": (PAGE_A, scanned(1), page(1, file(b"b", B))),
    "an end twice": (scanned(1), scanned(1)),
    "pages in no order": (page(0, file(b"b", B)), page(1, file(b"a", A)), scanned(2)),
    "pages that overlap": (
        page(0, file(b"a", A), file(b"c", C)), page(1, file(b"b", B)), scanned(2),
    ),
    "one page under two numbers": (PAGE_A, page(1, file(b"a", A)), scanned(2)),
    "a page of another scan": (page(0, file(b"a", A), scan=2), scanned(1)),
    "the end of another scan": (PAGE_A, scanned(1, scan=7)),
    "a page that is none": (Page(1, 0, b"CASg\x01\x90"), scanned(1)),
    "a known page that is not": (Same(1, 0, digest_of(b"never sent")),),
    "recipes nobody asked for": (Recipes(1, (encode_recipe(Recipe(
        1, digest_of(b"x"), (digest_of(b"x"),), (1,))),)),),
    "misses of a page that never came": (Missed(1, 3, ((0, "gone"),)),),
    "misses of what was not wanted": (PAGE_A, Missed(1, 0, ((5, "gone"),))),
    "a miss twice": (page(0, file(b"a", A), file(b"b", B)), Missed(1, 0, ((0, ""), (0, "")))),
    "misses of another scan": (PAGE_A, Missed(2, 0, ((0, "gone"),))),
}  # fmt: skip


@pytest.mark.parametrize("messages", WRONG_SCANS.values(), ids=WRONG_SCANS)
def test_a_wrong_scan_ends_the_sync_and_harms_nothing(
    world: World, messages: tuple[Message, ...]
) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.send(*messages)
        while True:  # whatever is wanted after all is had
            want = await peer.get(Want)
            await peer.send(Missed(1, want.number, tuple((i, "") for i in indexes(want))))

    with pytest.raises((PeerError, FormatError)):
        run_scripts(world, script)
    assert not any(row.complete for row in world.index.snapshots())
    assert still_good(world)


def _run(first: int, count: int = 1, scan: int = 1, page: int = 0) -> tuple[int, int, int, int]:
    return scan, page, first, count


WRONG_SEGMENTS: dict[str, list[list[Piece]]] = {
    "no chunks": [segment((1, 0), [A], [])],
    "another scan": [segment((1, 0), [A], [_run(0, scan=2)])],
    "another page": [segment((1, 0), [A], [_run(0, page=1)])],
    "a chunk twice": [segment((1, 0), [A, A], [_run(0), _run(0)])],
    "runs that overlap": [segment((1, 0), [A, B, B, C], [_run(0, 2), _run(1, 2)])],
    "more than was wanted": [segment((1, 0), [A, B, C, C], [_run(0, 4)])],
    "four billion chunks": [segment((1, 0), [A], [_run(0, 2**32 - 1)])],
    "chunks past the last": [segment((1, 0), [A], [_run(3)])],
    "other content": [segment((1, 0), [B], [_run(0)])],
    "too little": [segment((1, 0), [A], [_run(0)], payload=A[:-1])],
    "too much": [segment((1, 0), [A], [_run(0)], payload=A + b"!")],
    "no zstd": [segment((1, 0), [A], [_run(0)], codec=Codec.ZSTD)],
    "a segment again": [
        segment((1, 0), [A], [_run(0)]), segment((2, 0), [A], [_run(0)]),
    ],
    "a segment after the last": [
        segment((1, 1), [B], [_run(1)]), segment((1, 0), [A], [_run(0)], last=True),
    ],
    "numbers that jump": [segment((1, number), [A], [_run(0)]) for number in range(1, 70)],
    "frames that never begin": [segment((2**64 - n, 1), [A], [_run(0)]) for n in range(1, 70)],
    "no head": [[Piece(1, 0, 0, 3, b"abc")]],
    "a long head": [[Piece(1, 0, 0, 8, b"\xff\xff\xff\xff    ")]],
    "two sizes": [[Piece(1, 0, 0, 100, b"abc"), Piece(1, 0, 3, 99, b"abc")]],
    "pieces that overlap": [[Piece(1, 0, 0, 4, b"abc"), Piece(1, 0, 1, 4, b"b")]],
}  # fmt: skip


@pytest.mark.parametrize("segments", WRONG_SEGMENTS.values(), ids=WRONG_SEGMENTS)
def test_a_wrong_segment_ends_the_sync_and_none_of_it_is_kept(
    world: World, segments: list[list[Piece]]
) -> None:
    with pytest.raises(CasError) as caught:
        run_scripts(world, giving(*segments))
    assert not isinstance(caught.value, TransportError)
    held = [chunk for chunk in map(digest_of, (B, C)) if world.index.locate(chunk)]
    assert held in ([], [digest_of(B)])
    assert still_good(world)


def test_what_waits_for_its_turn_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receive, "EARLY_SIZE_LIMIT", 1_000_000)
    segments = [segment((1, number), [bytes(300_000)], [_run(0)]) for number in range(1, 6)]
    with pytest.raises(LimitError):
        run_scripts(world, giving(*segments))


@pytest.mark.parametrize(
    "piece",
    [
        lambda n: Piece(1, n, 0, 17 * 2**20, b"x"),
        lambda n: Piece(n, 0, 0, 2, b"x"),
        lambda n: Piece(1, 0, n, 17 * 2**20, b"x"),
    ],
    ids=["large segments", "many segments", "small pieces"],
)
def test_what_is_put_together_is_bounded(piece: Callable[[int], Piece]) -> None:
    with pytest.raises(LimitError):
        _put_together(piece)


@pytest.mark.parametrize("order", [1, -1])
def test_pieces_that_overlap_make_no_segment(order: int) -> None:
    assembler = Assembler()
    first, second = [Piece(1, 0, 0, 10, b"01234567"), Piece(1, 0, 5, 10, b"567")][::order]
    assert assembler.add(first) is None
    with pytest.raises(PeerError, match="overlap"):
        assembler.add(second)


def test_pieces_come_in_any_order_and_twice() -> None:
    assembler = Assembler()
    pieces = [Piece(1, 0, at, 10, b"0123456789"[at : at + 3]) for at in (6, 0, 9, 0, 6, 3)]
    assert [None] * 5 + [b"0123456789"] == [*map(assembler.add, pieces)]


def _put_together(piece: Callable[[int], Piece]) -> None:
    assembler = Assembler()
    for number in range(300_000):
        assembler.add(piece(number))


def test_chunks_whose_ids_begin_alike_are_both_wanted(world: World) -> None:
    """Some 2^32 hashes make two chunks that do, which is little to ask of somebody who wants a
    file of his to be missing here and the tier to be called complete."""
    alike = Digest(digest_of(A)[:16] + bytes(16))
    twin = replace(file(b"b", B), content=Content(len(B), alike, 1))
    wanted: list[list[int]] = []

    async def script(peer: Peer) -> None:
        scan = (await peer.greet()).scan
        while True:
            await peer.send(page(0, file(b"a", A), twin, scan=scan), scanned(1, scan=scan))
            wanted.append(indexes(await peer.get(Want)))
            if scan == 1:
                await peer.send(*segment((1, 0), [A], [_run(0)], last=True))
            await peer.send(Missed(scan, 0, ((1, "as if it had changed"),)))
            scan = (await peer.get(Scan)).scan

    (tier,) = run_scripts(world, script).tiers
    assert [[0, 1], [1], [1]] == wanted
    assert not tier.complete


def _parts(*sizes: int) -> tuple[list[bytes], bytes]:
    """Chunks of these sizes, and the recipe of a file that is them end to end."""
    chunks = [bytes([number]) * size for number, size in enumerate(sizes)]
    whole = b"".join(chunks)
    recipe = Recipe(len(whole), digest_of(whole), tuple(map(digest_of, chunks)), sizes)
    return chunks, encode_recipe(recipe)


WRONG_FILES: dict[str, Content] = {
    "another size": Content(29, digest_of(b"x"), 2, (digest_of(_parts(10, 20)[1]),)),
    "fewer chunks": Content(30, digest_of(b"x"), 1, (digest_of(_parts(10, 20)[1]),)),
    "more chunks": Content(30, digest_of(b"x"), 3, (digest_of(_parts(10, 20)[1]),)),
    "a part twice": Content(30, digest_of(b"x"), 2, (digest_of(_parts(10, 20)[1]),) * 2),
}


@pytest.mark.parametrize("content", WRONG_FILES.values(), ids=WRONG_FILES)
def test_recipes_that_do_not_fit_their_file_end_the_sync(world: World, content: Content) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.send(page(0, replace(file(b"a", A), size=content.size, content=content)))
        await peer.get(Look)
        await peer.send(Recipes(1, (_parts(10, 20)[1],)), scanned(1))
        await peer.until_gone()

    with pytest.raises(PeerError, match="recipes"):
        run_scripts(world, script)
    assert still_good(world)


def test_recipes_that_never_come_keep_the_tier_from_being_complete(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cas.pull.lane.SILENCE_SECONDS", 0.05)
    monkeypatch.setattr("cas.pull.sync.RETRY_SECONDS", (0.0,))
    content = Content(30, digest_of(b"x"), 2, (digest_of(_parts(10, 20)[1]),))

    async def script(peer: Peer) -> None:
        scan = (await peer.greet()).scan
        entry = replace(file(b"a", A), size=content.size, content=content)
        await peer.send(page(0, entry, scan=scan), scanned(1, scan=scan))
        await peer.until_gone()

    with pytest.raises(TransportError):
        run_scripts(world, script)
    assert [] == world.index.snapshots()
    assert still_good(world)


@pytest.mark.parametrize("wants", [0, 1, 2])
def test_bytes_that_mean_nothing_are_the_far_ends_fault_and_end_the_lane(
    world: World, wants: int
) -> None:
    lanes: list[Peer] = []

    async def script(peer: Peer) -> None:
        lanes.append(peer)
        await peer.greet()
        await peer.send(page(0, file(b"a", A)), page(1, file(b"b", B)), page(2, file(b"c", C)))
        await serve_wants(peer, {0: [A], 1: [B], 2: [C]}, wants)
        await peer.transport.send(b"\xff" * 100)
        await peer.until_gone()

    with pytest.raises(PeerError, match="nonsense"):
        run_scripts(world, script)
    (peer,) = lanes
    assert peer.heard_end
    assert still_good(world)
