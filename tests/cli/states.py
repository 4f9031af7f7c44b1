"""States of a sync for tests: whatever the engine might say, and worse."""

from hypothesis import strategies as st

from cas.entry import Problem
from cas.pull.state import LaneState, Phase, SyncState, TierState

SIZES = st.integers(min_value=0, max_value=10**12)
PHASES = st.sampled_from(Phase)
PATHS = st.binary(max_size=60)


def tier_states(name: str) -> st.SearchStrategy[TierState]:
    """A tier with counters that need not fit together."""
    return st.builds(
        TierState,
        name=st.just(name),
        source=st.just("npu"),
        phase=PHASES,
        scanned=st.booleans(),
        names=SIZES,
        path=PATHS,
        logical=SIZES,
        unique=SIZES,
        here=SIZES,
        to_fetch=SIZES,
        fetched=SIZES,
        stored=SIZES,
        wire_in=SIZES,
        wire_out=SIZES,
        problems=st.just((Problem(b"x", "cannot be read"),)),
    )


def lane_states() -> st.SearchStrategy[LaneState]:
    """A lane, with counters that need not fit together either."""
    return st.builds(
        LaneState,
        source=st.sampled_from(["npu", "模型"]),
        number=st.integers(min_value=-1, max_value=10**6),
        state=st.sampled_from(["login", "up", "suspect", "retiring", "lost"]),
        bytes_in=SIZES,
        payload=SIZES,
        rate=st.floats(min_value=0, max_value=1e12),
        heard=st.floats(min_value=-1e6, max_value=1e6),
    )


def histories(
    names: tuple[str, ...] = ("00-critical", "weights"),
) -> st.SearchStrategy[list[list[TierState]]]:
    """The tiers of one sync at several moments, in no order that makes sense."""
    moment = st.tuples(*map(tier_states, names)).map(list)
    return st.lists(moment, min_size=1, max_size=8)


def usual(count: int = 3) -> SyncState:
    """A sync in its second tier."""
    tiers = [TierState(f"{i:02}-tier", "npu") for i in range(count)]
    first, second = tiers[:2]
    first.phase, first.scanned, first.complete = Phase.DONE, True, True
    first.names, first.logical, first.unique = 1200, 21_300_000, 18_000_000
    first.here, first.to_fetch, first.fetched, first.wire_in = 1_000_000, 17_000_000, 17_000_000, 0
    first.wire_in = 4_000_000
    second.phase, second.scanned = Phase.FETCHING, True
    second.names, second.logical, second.unique = 12_345, 563_000_000, 480_000_000
    second.here, second.to_fetch, second.fetched = 20_000_000, 460_000_000, 120_000_000
    second.wire_in, second.path = 33_000_000, b"opt/models/a"
    return SyncState(tiers)


def with_lanes(count: int) -> SyncState:
    """The same over several lanes, of which the second is silent and the last is not up yet."""
    state = usual()
    state.lanes = [
        LaneState("npu", n, "up", 1_000_000, 900_000, 33_000.0, heard=1.0) for n in range(count)
    ]
    state.lanes[1].state, state.lanes[1].heard = "suspect", -16.0
    state.lanes[-1] = LaneState("npu", -1, heard=-2.0)
    return state
