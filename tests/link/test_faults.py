"""A sync on a lossy link, and what happens to it: it ends by itself, and all of it is right.

Most of the time is spent waiting, so all of them run side by side, each on a link of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.link import faults
from tests.link.site import Site, bad_site, missing

pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(missing()), reason=missing())]

SIZE = 4_000_000
IN_FLIGHT = 4_000_000  # bytes that may be under way on four lanes, and come twice

FAULTS: dict[str, Callable[[Site], float]] = {
    "blackout": faults.blackout(20),
    "forgotten": faults.forget,
    "reset": faults.reset,
    "one dead": faults.one_dead,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run: `wrong` is what is not right with what it brought."""

    code: int
    said: str
    seen: faults.Seen
    fetched_again: int
    came: int
    wrong: str


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Outcome]]]:
    """Runs with each of the faults, which are going on."""
    with ThreadPoolExecutor(len(FAULTS)) as pool:
        places = {name: tmp_path_factory.mktemp("link") for name in FAULTS}
        yield {name: pool.submit(_run, places[name], FAULTS[name]) for name in FAULTS}


def _run(place: Path, fault: Callable[[Site], float]) -> Outcome:
    source = place / "source"
    source.mkdir()
    (source / "data").write_bytes(os.urandom(SIZE))
    with bad_site(place / "job", loss=1, rtt=40, rate="400K") as site:
        site.plan({"one": source})
        running = site.sync("--lanes", "4")
        seen = faults.strike(site, running, fault, after=1_000_000, limit=300)
        code = running.wait(300)
        came = running.summary.get("wire_in", 0)
        wrong = site.check({"one": source})
        return Outcome(code, running.said, seen, running.fetched_again, came, wrong)


@pytest.mark.parametrize("name", FAULTS)
def test_a_sync_outlives_what_happens_to_its_link(
    outcomes: dict[str, Future[Outcome]], name: str
) -> None:
    outcome = outcomes[name].result()
    assert (0, "") == (outcome.code, outcome.said)
    assert outcome.seen.reached
    assert outcome.seen.back is not None
    assert outcome.fetched_again <= IN_FLIGHT
    assert SIZE <= outcome.came <= SIZE + IN_FLIGHT
    assert "" == outcome.wrong
