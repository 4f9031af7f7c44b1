"""Links without loss: beside scp, and what the near end costs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.link.setting import Kind, LinkSetting
from tests.bench.process import CommandFailed
from tests.bench.verdict import Verdict

GIB = 2**30
RATE = Kind("1 MB/s, 20 ms", {"rtt": 20, "rate": "1M"}, 60_000_000)
# With the least share of scp's rate. Without a rate, the processors are the limit, the relay's too.
KINDS = (
    (Kind("20 ms", {"rtt": 20}, GIB), 0.8),
    (Kind("20 ms, 12.5 MB/s", {"rtt": 20, "rate": "12.5M"}, GIB // 2), 0.8),
    (Kind("200 ms", {"rtt": 200}, GIB), 1.0),
)


def run(setting: LinkSetting) -> Iterator[Verdict]:
    """Measure."""
    for kind, limit in KINDS:
        yield _beside_scp(setting, kind, limit)
    yield _cpu(setting)


def _beside_scp(setting: LinkSetting, kind: Kind, limit: float) -> Verdict:
    """In turns, not side by side: they would take the processors from each other."""
    data = setting.random_data(kind.plenty // 16 if setting.quick else kind.plenty)
    rounds = 2 if kind is KINDS[0][0] and not setting.quick else 1
    scp: list[float] = []
    cas: list[float] = []
    for _ in range(rounds):
        scp.append(_scp(setting, kind, data))
        cas.append(_cas(setting, kind, data)[0])
    size = (data / "data").stat().st_size / 2**20
    return Verdict(
        f"{kind.name}, no loss: rate of {size:.0f} MiB / scp", min(scp) / min(cas), limit,
        at_least=True, detail=f"{min(cas):.1f} s beside {min(scp):.1f}",
        facts={"cas": cas, "scp": scp},
    )  # fmt: skip


def _cpu(setting: LinkSetting) -> Verdict:
    seconds, cpu = _cas(setting, RATE, setting.random_data(RATE.plenty))
    return Verdict(
        f"{RATE.name}: the client's processor time, start included", cpu / seconds * 100, 10.0,
        "% of a core", detail=f"{cpu:.1f} s in {seconds:.0f} s",
    )  # fmt: skip


def _scp(setting: LinkSetting, kind: Kind, data: Path) -> float:
    with setting.site(kind) as site:
        source = f"{site.server.alias}:{data}/data"
        command = ["scp", "-q", "-F", str(site.server.config), source, str(site.job / "copy")]
        began = time.monotonic()
        if code := site.near(command).wait():
            raise CommandFailed(f"scp: exit code {code}")
        return time.monotonic() - began


def _cas(setting: LinkSetting, kind: Kind, data: Path) -> tuple[float, float]:
    """Seconds, and seconds of the processor, for a whole run."""
    with setting.site(kind) as site:
        site.plan({"one": data})
        running = site.sync(*setting.options)
        code = running.wait(1200)
        seconds = running.age
        wrong = running.said if code else site.check({"one": data})
        if wrong:
            raise CommandFailed(f"{kind.name}: cas sync: exit code {code}: {wrong}")
        return seconds, running.cpu
