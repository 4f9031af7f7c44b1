"""A sync on a lossy link, and what happens to it: it ends by itself, and all of it is right."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.link import faults
from tests.link.site import Site, bad_site, lanes, missing

pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(missing()), reason=missing())]

SIZE = 4_000_000
IN_FLIGHT = 4_000_000  # bytes that may be under way on four lanes, and come twice


@pytest.mark.parametrize(
    "fault",
    [faults.blackout(20), faults.forget, faults.reset, faults.one_dead],
    ids=["blackout", "forgotten", "reset", "one dead"],
)
def test_a_sync_outlives_what_happens_to_its_link(
    tmp_path: Path, fault: Callable[[Site], float]
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "data").write_bytes(os.urandom(SIZE))
    with bad_site(tmp_path / "job", loss=1, rtt=40, rate="400K") as site:
        site.plan({"one": source})
        running = site.sync(*lanes(4))
        seen = faults.strike(site, running, fault, after=1_000_000, limit=300)
        assert (0, "") == (running.wait(300), running.said)
        assert seen.reached
        assert seen.back is not None
        assert running.fetched_again <= IN_FLIGHT
        assert running.now.wire_in <= SIZE + IN_FLIGHT
        assert "" == site.check({"one": source})
