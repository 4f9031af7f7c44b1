"""The small corpus over a lossy link on which something happens every 20 seconds."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable

from tests.bench import corpus
from tests.bench.link.setting import LOSSY, LinkSetting
from tests.bench.verdict import Verdict
from tests.link import faults
from tests.link.running import Running
from tests.link.site import Site

EVERY = 20.0
LIMIT = 3600.0


def run(setting: LinkSetting) -> list[Verdict]:
    """Measure."""
    seed = int(os.environ.get("CAS_SEED") or random.SystemRandom().randrange(10**6))
    print(f"unattended: seed {seed} (CAS_SEED={seed} does the same again)", flush=True)
    tiers = corpus.tiers(setting.corpus)
    with setting.site(LOSSY) as site:
        site.plan(tiers)
        running = site.sync(*setting.options)
        happened = _trouble(site, running, random.Random(seed))
        code = running.wait(60)
        wrong = f"exit code {code}: {running.said}" if code else site.check(tiers)
        detail = f"seed {seed}, {len(happened)} faults: {', '.join(happened)}; {wrong}"
        summary = running.summary
    return [
        Verdict("the corpus with a fault every 20 s: not right in the end", float(bool(wrong)),
                0.0, "runs", detail=detail, facts={"summary": summary, "seed": seed}),
        Verdict("the same: time", running.age, None, "s"),
        Verdict("the same: came twice", running.fetched_again / 1e6, None, "MB",
                detail=f"of {summary.get('wire_in', 0) / 1e6:.1f} MB"),
    ]  # fmt: skip


def _trouble(site: Site, running: Running, source: random.Random) -> list[str]:
    """Let things happen until the run has ended; what they were."""
    happened: list[str] = []
    kinds = sorted(_KINDS)
    began = time.monotonic()
    while running.process.poll() is None and running.age < LIMIT:
        due = began + EVERY * (len(happened) + 1)
        while time.monotonic() < due and running.process.poll() is None:
            time.sleep(0.2)
        if running.process.poll() is None:
            site.link.set(loss=LOSSY.options["loss"], rate=LOSSY.options["rate"])
            happened.append(source.choice(kinds))
            _KINDS[happened[-1]](site, source)
    return happened


def _dead(site: Site, source: random.Random) -> None:
    if ports := site.ports():
        site.link.forget(port=source.choice(ports))


_KINDS: dict[str, Callable[[Site, random.Random], object]] = {
    "blackout": lambda site, source: site.link.stall(source.uniform(3, 18)),
    "one way dark": lambda site, source: site.link.stall(source.uniform(3, 18), dir="down"),
    "held": lambda site, source: site.link.stall(source.uniform(3, 18), hold=True),
    "forgotten": lambda site, _: faults.forget(site),
    "reset": lambda site, _: faults.reset(site),
    "one dead": _dead,
    "slow": lambda site, _: site.link.set(rate="100K"),
    "more loss": lambda site, _: site.link.set(loss=15),
}
