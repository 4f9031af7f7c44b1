"""A sync over SFTP on a lossy link, and what happens to it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.link import faults
from tests.link.site import Site, bad_site, missing
from tests.sftp.job import ONLY_SFTP, settle

pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(missing()), reason=missing())]

SIZE = 8_000_000
LANES = 6


@pytest.mark.parametrize(
    "fault",
    [faults.blackout(30), faults.reset, faults.forget],
    ids=["blackout", "reset", "forget"],
)
def test_it_outlives_what_happens_to_its_link(
    tmp_path: Path, fault: Callable[[Site], float]
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "data").write_bytes(os.urandom(SIZE))
    for number in range(100):
        (source / f"small-{number}").write_bytes(os.urandom(300 * number))
    settle(source)
    with bad_site(tmp_path / "job", sshd=[ONLY_SFTP], loss=1, rtt=40, rate="800K") as site:
        site.plan({"one": source}, 'via = "sftp"', f"lanes = {LANES}")
        running = site.sync()
        assert running.until(lambda point: point.wire_in >= 2_000_000, 300) is not None
        fault(site)
        assert (0, "") == (running.wait(400), running.said)
        assert running.now.wire_in <= SIZE + 1_500_000 + LANES * 2**20
        assert "" == site.check({"one": source})
