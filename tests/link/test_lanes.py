"""Lanes over a real sshd at its limits: keys that change all the time, and many logins at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.link.site import bad_site, missing

pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(missing()), reason=missing())]


def _random(directory: Path, size: int) -> Path:
    directory.mkdir()
    (directory / "data").write_bytes(os.urandom(size))
    return directory


def test_one_lane_whose_keys_change_with_every_megabyte(tmp_path: Path) -> None:
    source = _random(tmp_path / "source", 60_000_000)
    with bad_site(tmp_path / "job", sshd=["RekeyLimit 1M 10s"], rtt=2) as site:
        site.plan({"one": source})
        running = site.sync("--lanes", "1")
        assert (0, "") == (running.wait(300), running.said)
        assert [] == running.notes
        assert "" == site.check({"one": source})


def test_more_lanes_than_a_server_takes_logins_at_once(tmp_path: Path) -> None:
    source = _random(tmp_path / "source", 20_000_000)
    server = ["MaxStartups 10:30:100"]  # OpenSSH's own limits, whatever the system's are
    with bad_site(tmp_path / "job", sshd=server, loss=1, rtt=20, rate="2M") as site:
        site.plan({"one": source})
        running = site.sync("--lanes", "24")
        assert (0, "") == (running.wait(300), running.said)
        assert "" == site.check({"one": source})
