"""Links without loss: beside scp, and what the near end costs."""

from __future__ import annotations

import time
from pathlib import Path

from tests.bench.link.setting import Kind, LinkSetting
from tests.bench.process import CommandFailed
from tests.bench.verdict import Verdict

SIZE = 2**30
RATE = Kind("1 MB/s, 20 ms", {"rtt": 20, "rate": "1M"})
RATE_SIZE = 60_000_000
LIMITS = {20: 0.8, 200: 1.0}  # of scp's rate, by the round trip in ms


def run(setting: LinkSetting) -> list[Verdict]:
    """Measure."""
    data = setting.random_data(SIZE // 16 if setting.quick else SIZE)
    return [*(_beside_scp(setting, data, rtt) for rtt in LIMITS), _cpu(setting)]


def _beside_scp(setting: LinkSetting, data: Path, rtt: int) -> Verdict:
    """In turns, not side by side: here the processors are the limit."""
    kind = Kind(f"{rtt} ms, no loss", {"rtt": rtt})
    rounds = 1 if setting.quick or rtt > 100 else 2
    scp: list[float] = []
    cas: list[float] = []
    for _ in range(rounds):
        scp.append(_scp(setting, kind, data))
        cas.append(_cas(setting, kind, data)[0])
    size = (data / "data").stat().st_size / 2**20
    return Verdict(
        f"{kind.name}: rate of {size:.0f} MiB / scp", min(scp) / min(cas), LIMITS[rtt],
        at_least=True, detail=f"{min(cas):.1f} s beside {min(scp):.1f}",
        facts={"cas": cas, "scp": scp},
    )  # fmt: skip


def _cpu(setting: LinkSetting) -> Verdict:
    seconds, cpu = _cas(setting, RATE, setting.random_data(RATE_SIZE))
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
