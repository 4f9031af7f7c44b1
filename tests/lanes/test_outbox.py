"""What an outbox gives to which lane, and what it gives again when a lane is lost or late."""

from __future__ import annotations

import random
import threading
import tracemalloc

import pytest

from cas import pieces
from cas.errors import LimitError
from cas.messages import (
    MESSAGES,
    PIECE_SIZE,
    Ack,
    Backlog,
    Beat,
    Look,
    Message,
    Page,
    Piece,
    decode_whole,
)
from cas.outbox import (
    FRAMES,
    HEDGE_SECONDS,
    LEAST_PIECE,
    LOOSE_LIMIT,
    OVERDUE_SECONDS,
    SILENT_SECONDS,
    TWICE_MOST,
    Outbox,
)
from cas.pieces import Assembler
from cas.underway import OWN_LIMIT, PIECE_LEAST

ALL = 2**60


class Clock:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def outbox(clock: Clock) -> Outbox:
    """An outbox with two lanes that may send what they like."""
    made = Outbox(lambda: None, clock=clock)
    made.shared = True
    made.budget = 2**30
    for lane in (0, 1):
        made.lane_opened(lane)
        made.allow(lane, ALL)
    return made


def take(outbox: Outbox, lane: int) -> Piece | None:
    """The next piece for a lane, if any."""
    message = outbox.take(lane)
    assert message is None or isinstance(message, Piece)
    return message


def drain(outbox: Outbox, lane: int) -> list[Piece]:
    """All that a lane can have now."""
    pieces = []
    while (piece := take(outbox, lane)) is not None:
        pieces.append(piece)
    return pieces


def size(pieces: list[Piece]) -> int:
    """Bytes of pieces."""
    return sum(len(piece.data) for piece in pieces)


def test_a_message_comes_whole_whatever_lanes_its_pieces_take(outbox: Outbox) -> None:
    page = Page(1, 0, random.Random(1).randbytes(5 * PIECE_SIZE))
    outbox.put_message(page, 1)
    assembler = Assembler()
    came: list[Message] = []
    for lane in (0, 1) * 3:
        whole = assembler.add(piece) if (piece := take(outbox, lane)) is not None else None
        came += [] if whole is None else [decode_whole(whole)]
    assert [page] == came


def test_messages_go_before_segments(outbox: Outbox) -> None:
    outbox.put_segment((1, 0), bytes(10))
    outbox.put_message(Look(1, ()))
    assert [MESSAGES, 1] == [piece.frame for piece in drain(outbox, 0)]


def test_what_is_of_one_lane_goes_over_no_other(outbox: Outbox) -> None:
    outbox.put_now(Beat(1), 1)
    outbox.put_now(Beat(2), 7)  # a lane that is none
    assert outbox.take(0) is None
    assert Beat(1) == outbox.take(1)
    assert outbox.take(7) is None


def test_exactly_what_had_not_arrived_goes_out_again(outbox: Outbox) -> None:
    outbox.put_segment((1, 0), bytes(4 * PIECE_SIZE))
    first = drain(outbox, 0)
    outbox.arrived(0, size(first[:2]))
    outbox.lane_lost(0)
    assert [2 * PIECE_SIZE, 3 * PIECE_SIZE] == [piece.offset for piece in drain(outbox, 1)]
    outbox.lane_lost(1)
    outbox.lane_opened(2)
    outbox.allow(2, ALL)
    again = drain(outbox, 2)
    assert [2 * PIECE_SIZE, 3 * PIECE_SIZE] == [piece.offset for piece in again]
    outbox.arrived(2, size(again))
    outbox.lane_lost(2)
    outbox.lane_opened(3)
    outbox.allow(3, ALL)
    assert [] == drain(outbox, 3)


def test_a_piece_that_another_lane_has_had_since_stays_with_it(
    outbox: Outbox, clock: Clock
) -> None:
    outbox.put_segment((1, 0), bytes(10))
    assert take(outbox, 0) is not None
    clock.now = SILENT_SECONDS + 1
    assert take(outbox, 1) is not None
    outbox.lane_lost(0)
    assert take(outbox, 1) is None


def test_a_lane_in_doubt_gets_nothing_and_others_what_it_had(outbox: Outbox) -> None:
    outbox.put_segment((1, 0), bytes(10))
    assert take(outbox, 0) is not None
    outbox.doubt(0)
    outbox.put_message(Look(1, ()))
    assert outbox.take(0) is None
    assert [MESSAGES, 1] == [piece.frame for piece in drain(outbox, 1)]
    outbox.trust(0)
    outbox.put_segment((1, 1), bytes(10))
    assert take(outbox, 0) is not None


def test_a_lane_with_nothing_to_do_takes_what_is_late(outbox: Outbox, clock: Clock) -> None:
    outbox.put_segment((1, 0), bytes(3 * PIECE_SIZE))
    drain(outbox, 0)
    outbox.arrived(0, PIECE_SIZE)
    assert [] == drain(outbox, 1)
    clock.now = SILENT_SECONDS + 0.1
    assert [PIECE_SIZE, 2 * PIECE_SIZE] == [piece.offset for piece in drain(outbox, 1)]
    assert [] == drain(outbox, 0)  # its own are no news, and those of 1 are fresh
    outbox.ack(((1, 0),))
    clock.now *= 3
    assert [] == drain(outbox, 0) + drain(outbox, 1)


def test_no_lane_sends_more_than_it_may_but_small_messages(outbox: Outbox) -> None:
    outbox.lane_opened(2)
    outbox.put_segment((1, 0), bytes(4 * PIECE_SIZE))
    assert take(outbox, 2) is None
    outbox.put_message(Look(1, ()))
    small = take(outbox, 2)
    assert small is not None
    assert small.frame == MESSAGES
    outbox.allow(2, len(small.data) + 2 * PIECE_SIZE)
    assert 2 == len(drain(outbox, 2))
    outbox.put_message(Page(1, 0, random.Random(1).randbytes(10_000)))
    assert take(outbox, 2) is None  # a large one waits for its turn
    assert 3 == len(drain(outbox, 0))


def test_acks_make_room_and_frames_under_way_are_limited(outbox: Outbox) -> None:
    for frame in range(FRAMES):
        outbox.put_segment((frame + 1, 0), bytes(10))
    assert FRAMES == len(drain(outbox, 0))
    outbox.put_segment((1, 1), bytes(10))  # a frame that is under way may go on
    outbox.ack(((2, 0),))
    outbox.put_segment((FRAMES + 1, 0), bytes(10))  # would wait for ever without the ack
    assert 2 == len(drain(outbox, 0))
    outbox.close()
    outbox.put_segment((FRAMES + 2, 0), bytes(10))  # nobody waits any more
    assert [] == drain(outbox, 0)


def test_a_lane_alone_gets_messages_as_they_are() -> None:
    outbox = Outbox(lambda: None)
    outbox.lane_opened(0)
    outbox.put_message(Ack(()))
    outbox.put_segment((1, 0), bytes(10))
    assert [Ack(()), Piece(1, 0, 0, 10, bytes(10)), None] == [outbox.take(0) for _ in range(3)]


def test_what_a_far_end_does_not_take_does_not_pile_up(outbox: Outbox) -> None:
    for number in range(10 * OWN_LIMIT):
        outbox.put_now(Beat(number), 1)
        outbox.put_now(Backlog(number))
    loose = [outbox.take(0) for _ in range(LOOSE_LIMIT)]
    assert Backlog(10 * OWN_LIMIT - 1) == loose[-1]
    assert outbox.take(0) is None
    own = [outbox.take(1) for _ in range(OWN_LIMIT)]
    assert Beat(10 * OWN_LIMIT - 1) == own[-1]
    assert outbox.take(1) is None


def test_what_is_known_of_arrivals_does_not_grow_with_them(outbox: Outbox, clock: Clock) -> None:
    def arrive(count: int) -> int:
        for _ in range(count):
            clock.now += 0.001
            outbox.arrived(0, int(clock.now * 1e6))
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        few = arrive(10_000)
        assert arrive(50_000) - few < 2**20
    finally:
        tracemalloc.stop()


def test_the_least_pieces_of_a_large_message_make_it_whole() -> None:
    data = random.Random(1).randbytes(4 * 2**20)
    assembler = Assembler()
    whole = None
    for at in range(0, len(data), LEAST_PIECE):
        assert whole is None
        part = data[at : at + LEAST_PIECE]
        whole = assembler.add(Piece(MESSAGES, 0, at, len(data), part))
    assert data == whole


def test_pieces_are_limited_however_small_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECES_LIMIT", 100)
    assembler = Assembler()
    for segment in range(10):  # what is whole does not count
        for at in range(100):
            whole = assembler.add(Piece(1, segment, at, 100, b"a"))
        assert 100 * b"a" == whole
    for at in range(100):
        assembler.add(Piece(2, at // 50, at % 50, 1000, b"a"))
    with pytest.raises(LimitError, match="too many pieces"):
        assembler.add(Piece(2, 2, 0, 1000, b"a"))


@pytest.mark.parametrize("seed", range(20))
def test_everything_arrives_once_whatever_happens_to_lanes(seed: int) -> None:
    """Lanes that lose, delay and die at random: each message and segment is whole there, once."""
    rng = random.Random(seed)
    clock = Clock()
    outbox = Outbox(lambda: None, clock=clock)
    outbox.shared, outbox.budget = True, 2**30
    sent = {(1, n): rng.randbytes(rng.randrange(1, 4 * PIECE_SIZE)) for n in range(30)}
    pages = [Page(1, n, rng.randbytes(rng.randrange(1, 2 * PIECE_SIZE))) for n in range(10)]
    for page in pages:
        outbox.put_message(page)
    for key, data in sent.items():
        outbox.put_segment(key, data)
    lanes: dict[int, list[Piece]] = {}
    counts: dict[int, int] = {}
    assembler = Assembler()
    whole: list[tuple[int, bytes]] = []
    number = 0
    while len(whole) < len(sent) + len(pages):
        clock.now += rng.random()
        if len(lanes) < 4:
            lanes[number], counts[number] = [], 0
            outbox.lane_opened(number)
            outbox.allow(number, ALL)
            number += 1
        lane = rng.choice(list(lanes))
        act = rng.random()
        if act < 0.5 and (piece := take(outbox, lane)) is not None:
            lanes[lane].append(piece)
        elif act < 0.9 and lanes[lane]:
            piece = lanes[lane].pop(0)
            counts[lane] += len(piece.data)
            if (came := assembler.add(piece)) is not None:
                whole.append((piece.frame, came))
            if rng.random() < 0.7:
                outbox.arrived(lane, counts[lane])
        elif act < 0.93:
            del lanes[lane]
            outbox.lane_lost(lane)
        elif act < 0.95:
            outbox.doubt(lane)
        elif act < 0.97:
            outbox.trust(lane)
    assert sorted(sent.values()) == sorted(data for frame, data in whole if frame)
    messages = [decode_whole(data) for frame, data in whole if not frame]
    assert all(messages.count(page) == 1 for page in pages)


def test_what_its_lane_brings_soon_is_left_to_it(outbox: Outbox, clock: Clock) -> None:
    outbox.put_segment((1, 0), bytes(14 * PIECE_SIZE))
    taken = [take(outbox, 0) for _ in range(12)] + [take(outbox, 1) for _ in range(2)]
    assert None not in taken
    for second in range(1, 7):  # both bring a piece a second
        clock.now = second
        outbox.arrived(0, second * PIECE_SIZE)
        outbox.arrived(1, min(second, 2) * PIECE_SIZE)
    assert clock.now > HEDGE_SECONDS
    late = take(outbox, 1)  # six are left with lane 0, and the last of them would take it 6 s
    assert late is not None
    assert late.offset >= 10 * PIECE_SIZE


def test_a_segment_can_ask_for_a_smaller_budget(outbox: Outbox) -> None:
    """It waits where another would not, and only for acks."""
    outbox.put_segment((1, 0), bytes(10))
    waiting = threading.Thread(target=outbox.put_segment, args=((1, 1), bytes(10), 15), daemon=True)
    waiting.start()
    outbox.put_segment((1, 2), bytes(10))
    assert [0, 2] == [piece.segment for piece in drain(outbox, 0)]
    assert waiting.is_alive()
    outbox.ack(((1, 0), (1, 2)))
    waiting.join(120)
    assert [1] == [piece.segment for piece in drain(outbox, 0)]


def test_a_slow_lane_gets_small_pieces(outbox: Outbox, clock: Clock) -> None:
    outbox.put_segment((1, 0), bytes(8 * PIECE_SIZE))
    assert PIECE_SIZE == len(take_one(outbox, 0).data)  # nothing is known of it yet
    for second in range(1, 6):
        clock.now = float(second)
        outbox.arrived(0, second * 10_000)
    assert PIECE_LEAST == len(take_one(outbox, 0).data)
    for second in range(6, 12):
        clock.now = float(second)
        outbox.arrived(0, 50_000 + (second - 5) * 60_000)
    assert 20_000 <= len(take_one(outbox, 0).data) <= 30_000


def test_little_goes_out_twice_while_there_is_something_new(outbox: Outbox, clock: Clock) -> None:
    outbox.put_segment((1, 0), bytes(16 * PIECE_SIZE))
    for _ in range(8):
        take_one(outbox, 0)  # and nothing of it arrives
    outbox.put_segment((1, 1), bytes(64 * PIECE_SIZE))
    clock.now = OVERDUE_SECONDS + 1
    pieces = []
    for _ in range(20):
        pieces.append(take_one(outbox, 1))
        clock.now += 1
    again = [piece for piece in pieces if (piece.segment, piece.offset // PIECE_SIZE) < (0, 8)]
    assert TWICE_MOST == size(again)
    outbox.arrived(1, size(pieces) // 2)
    clock.now += 1
    # What may go twice for that is less than a piece.
    assert take_one(outbox, 1).offset >= 8 * PIECE_SIZE


def test_what_takes_long_everywhere_is_not_sent_twice(outbox: Outbox, clock: Clock) -> None:
    outbox.put_segment((1, 0), bytes(40 * PIECE_SIZE))
    sent = 0
    for _ in range(20):  # each piece takes 8 s
        sent += len(take_one(outbox, 0).data)
        clock.now += 8
        outbox.arrived(0, sent)
    late = take_one(outbox, 0)
    clock.now += OVERDUE_SECONDS + 1
    assert late.offset != take_one(outbox, 1).offset
    clock.now += 4 * 8
    assert late.offset == take_one(outbox, 1).offset


def take_one(outbox: Outbox, lane: int) -> Piece:
    """The next piece for a lane, which there must be."""
    piece = take(outbox, lane)
    assert piece is not None
    return piece
