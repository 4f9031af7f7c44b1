"""What can happen to a link, while random data comes over eight lanes; each on one of its own.

The bytes that come twice are counted twice: by cas itself (segments that were whole), and as what
came down the link beyond what a run without a fault, beside it, took.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.bench.link.setting import NARROW, LinkSetting, side_by_side
from tests.bench.verdict import Verdict
from tests.link import faults
from tests.link.site import Site

SIZE = 24_000_000
AFTER = 8_000_000  # bytes that have come when the fault does
LANES = 8
BACK_SECONDS = 20.0
SLOW_SECONDS = 45.0
IN_FLIGHT = 2.0  # MB: what eight lanes have under way here, and what goes out again for it

FAULTS: dict[str, Callable[[Site], float] | None] = {
    "none": None,
    "a blackout of 60 s": faults.blackout(60),
    "a blackout of 150 s": faults.blackout(150),
    "all connections forgotten": faults.forget,
    "all connections reset": faults.reset,
    "one of eight lanes dead": faults.one_dead,
    "a tenth of the rate": faults.slower("40K"),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """`wrong` is "" when the run ended well and all of it is right."""

    seen: faults.Seen
    again: float
    delivered: float
    seconds: float
    wrong: str
    notes: tuple[str, ...]


def run(setting: LinkSetting) -> list[Verdict]:
    """Measure."""
    setting.random_data(SIZE)
    jobs = {name: partial(_outcome, setting, name) for name in FAULTS}
    outcomes = side_by_side(jobs, len(jobs))
    calm = outcomes.pop("none")
    verdicts = [Verdict("no fault", calm.seconds, None, "s", detail=calm.wrong)]
    for name, outcome in outcomes.items():
        verdicts += _verdicts(name, outcome, calm)
    return verdicts


def _outcome(setting: LinkSetting, name: str) -> Outcome:
    data, fault = setting.random_data(SIZE), FAULTS[name]
    seen = faults.Seen(0.0, reached=True)
    with setting.site(NARROW) as site:
        site.plan({"one": data})
        running = site.sync("--lanes", str(LANES))
        if fault is not None:
            seen = faults.strike(site, running, fault, after=AFTER, limit=300)
        if fault is FAULTS["a tenth of the rate"]:
            ends = running.age + SLOW_SECONDS
            running.until(lambda point: point.at > ends, 2 * SLOW_SECONDS)
            site.link.set(rate=NARROW.options["rate"])
        code = running.wait(900)
        wrong = f"exit code {code}: {running.said}" if code else site.check({"one": data})
        notes = tuple(running.notes)
        again = running.fetched_again / 1e6
        return Outcome(seen, again, site.delivered() / 1e6, running.age, wrong, notes)


def _verdicts(name: str, outcome: Outcome, calm: Outcome) -> list[Verdict]:
    back = outcome.seen.back
    detail = "; ".join(outcome.notes[:6])
    if not outcome.seen.reached:
        detail = "it had ended before the fault"
    return [
        Verdict(f"{name}: not right in the end", float(bool(outcome.wrong)), 0.0, "runs",
                detail=outcome.wrong),
        Verdict(f"{name}: data flows again after", 999.0 if back is None else back, BACK_SECONDS,
                "s", detail=detail),
        Verdict(f"{name}: came twice, by cas's own count", outcome.again, IN_FLIGHT, "MB"),
        Verdict(f"{name}: came beyond a run without it", outcome.delivered - calm.delivered,
                IN_FLIGHT, "MB", detail=f"{outcome.delivered:.1f} MB beside {calm.delivered:.1f}"),
    ]  # fmt: skip
