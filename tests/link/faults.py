"""What can happen to a link while a sync is running, and what is seen of the run afterwards."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.link.running import Running
from tests.link.site import Site

FLOWING = 200_000  # wire bytes that are no logins and heartbeats: data flows


@dataclass(frozen=True, slots=True)
class Seen:
    """`back`: seconds from the link's return until data flowed, None if it never did."""

    back: float | None
    reached: bool  # the run was still going on when the fault was to come


def strike(
    site: Site, running: Running, fault: Callable[[Site], float], *, after: int, limit: float
) -> Seen:
    """Let `fault` happen when `after` bytes have come; it returns for how many seconds the link
    is of no use then. Waits `limit` seconds at most for data after that."""
    if running.until(lambda point: point.wire_in >= after, 600) is None:
        return Seen(None, reached=False)
    returns = running.age + fault(site)
    while running.age < returns and running.process.poll() is None:
        time.sleep(0.1)
    base = running.now.wire_in
    came = running.until(lambda p: p.at > returns and p.wire_in > base + FLOWING, limit)
    if came is None and running.process.poll() is not None:
        came = running.age  # what was missing was less than that
    return Seen(None if came is None else max(0.0, came - returns), reached=True)


def blackout(seconds: float) -> Callable[[Site], float]:
    """Nothing gets through for so long, and what was under way is lost."""

    def fault(site: Site) -> float:
        site.link.stall(seconds)
        return seconds

    return fault


def forget(site: Site) -> float:
    """A router forgets all connections: they are silent for ever, new ones work."""
    site.link.forget()
    return 0.0


def reset(site: Site) -> float:
    """All connections are reset, at both ends."""
    site.link.reset()
    return 0.0


def one_dead(site: Site) -> float:
    """One connection is forgotten."""
    site.link.forget(port=random.choice(site.ports()))
    return 0.0


def slower(rate: str) -> Callable[[Site], float]:
    """The link carries no more than `rate` from now on."""

    def fault(site: Site) -> float:
        site.link.set(rate=rate)
        return 0.0

    return fault
