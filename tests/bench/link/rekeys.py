"""Much through one lane whose keys are exchanged all the time, and many lanes at once."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.bench.link.setting import Kind, LinkSetting, side_by_side, write_random
from tests.bench.verdict import Verdict
from tests.link.site import CAS, Site, bad_site

SIZE = 3 * 2**30
LIMIT = 1200.0
LIMITS = ("64M", "1M 10s")  # sshd's RekeyLimit: bytes, and seconds
MANY = 24
RUNS = 6
DEFAULT = "MaxStartups 10:30:100"  # OpenSSH's own
NEAR = Kind("20 ms", {"rtt": 20})
FAR = Kind("5 %, 200 ms", {"loss": 5, "rtt": 200, "rate": "2.5M"})
SMALL = 4_000_000


def run(setting: LinkSetting) -> Iterator[Verdict]:
    """Measure."""
    size = 200 * 2**20 if setting.quick else SIZE
    data = setting.work / "large"
    data.mkdir()
    write_random(data / "data", size, seed=1)
    for limit in LIMITS:
        yield _rekeyed(setting, data, limit)
    (data / "data").unlink()
    for kind in (NEAR, FAR):
        yield _many(setting, kind)


def _rekeyed(setting: LinkSetting, data: Path, limit: str) -> Verdict:
    job = setting.work / limit.replace(" ", "-")
    with bad_site(job, sshd=[f"RekeyLimit {limit}"]) as site:
        site.plan({"one": data})
        running = site.sync("--lanes", "1")
        code = running.wait(LIMIT)
        seconds = running.age
        wrong = f"exit code {code}: {running.said}" if code else _verified(site, data)
    detail = wrong or f"{seconds:.0f} s; {'; '.join(running.notes)}"
    size = (data / "data").stat().st_size / 2**30
    return Verdict(
        f"{size:.3g} GiB through one lane, RekeyLimit {limit}: failed or not right",
        float(bool(wrong)), 0.0, "runs", detail=detail,
    )  # fmt: skip


def _verified(site: Site, data: Path) -> str:
    """As `Site.check`, without a second copy on the disk."""
    verified = site.cas("verify")
    if verified.returncode:
        return f"cas verify: exit code {verified.returncode}\n{verified.stderr}"
    same = f'"$@" | cmp - {data}/data'
    command = ["sh", "-c", same, "sh", *CAS, "cat", f"one:{data}/data"]
    done = subprocess.run(command, cwd=site.job, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"not the same: {done.stdout}{done.stderr}"


def _many(setting: LinkSetting, kind: Kind) -> Verdict:
    data = setting.random_data(SMALL)
    jobs = {str(number): partial(_one_of_many, setting, kind, data) for number in range(RUNS)}
    outcomes = side_by_side(jobs, 2)
    failed = [outcome for outcome in outcomes.values() if outcome]
    return Verdict(
        f"{kind.name}: {MANY} lanes, {DEFAULT}: failed runs of {RUNS}", float(len(failed)), 0.0,
        "runs", detail="; ".join(failed),
    )  # fmt: skip


def _one_of_many(setting: LinkSetting, kind: Kind, data: Path) -> str:
    with setting.site(kind, sshd=[DEFAULT]) as site:
        site.plan({"one": data})
        running = site.sync("--lanes", str(MANY))
        code = running.wait(600)
        return f"exit code {code}: {running.said}" if code else site.check({"one": data})
