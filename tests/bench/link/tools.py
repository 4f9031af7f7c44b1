"""Beside scp, rsync and sftp where five packets in a hundred are lost.

A tool that would take an hour is stopped after LIMIT seconds: its time for the whole is then what
it must transfer over the rate it had, by the bytes that came down its link. mscp, several SSH
connections for one copy, is in no registry of packages; eight sftp side by side stand for it.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.bench import corpus
from tests.bench.link.goodput import cas_for_a_time
from tests.bench.link.setting import LOSSY, Facts, LinkSetting, side_by_side
from tests.bench.peers import Rsync
from tests.bench.process import CommandFailed
from tests.bench.product import stored_size
from tests.bench.verdict import Verdict
from tests.link.site import Site

SCP_SIZE = 4_000_000
LIMIT = 170.0
SFTP = 8


def run(setting: LinkSetting) -> list[Verdict]:
    """Measure."""
    tiers = corpus.tiers(setting.corpus)
    keep = setting.keep.get
    jobs: dict[str, Callable[[], Facts]] = {
        "cas": partial(_cas, setting, tiers),
        "random": partial(cas_for_a_time, setting, LOSSY, setting.random_data(LOSSY.plenty)),
        "scp": partial(keep, "one scp", partial(_scp, setting)),
        "rsync": partial(keep, "rsync -az of the corpus", partial(_rsync, setting, tiers)),
        "sftp": partial(keep, f"{SFTP} sftp of the corpus", partial(_sftp, setting, tiers)),
    }
    facts = side_by_side(jobs, len(jobs))
    return [_beside_scp(facts), *(_beside(name, facts) for name in ("rsync", "sftp"))]


def _beside_scp(facts: dict[str, Facts]) -> Verdict:
    cas, scp = facts["random"]["average"], facts["scp"]["rate"]
    return Verdict(
        "5 %, 200 ms: random data, login and climb included / one scp", cas / scp, 6.0,
        at_least=True, detail=f"{cas / 1e3:.0f} beside {scp / 1e3:.0f} kB/s",
        facts={"cas": facts["random"], "scp": facts["scp"]},
    )  # fmt: skip


def _beside(name: str, facts: dict[str, Facts]) -> Verdict:
    cas, peer = facts["cas"], facts[name]
    label = {"rsync": "rsync -az", "sftp": f"{SFTP} sftp side by side"}[name]
    fewer, faster = peer["bytes"] / cas["bytes"], peer["seconds"] / cas["seconds"]
    how = "by its rate" if peer["rate"] else "to its end"
    return Verdict(
        f"5 %, 200 ms: the small corpus, time of {label} / cas sync", faster, 1.0, at_least=True,
        detail=f"{peer['seconds']:.0f} s ({how}) beside {cas['seconds']:.0f}; "
        f"{peer['bytes'] / 1e6:.1f} MB beside {cas['bytes'] / 1e6:.1f}: "
        f"{fewer:.1f} x fewer bytes, {faster / fewer:.1f} x the rate",
        facts={"cas": cas, "peer": peer},
    )  # fmt: skip


def _cas(setting: LinkSetting, tiers: Mapping[str, Path]) -> Facts:
    with setting.site(LOSSY) as site:
        site.plan(tiers)
        running = site.sync(*setting.options)
        code = running.wait(3600)
        wrong = site.check(tiers) if code == 0 else running.said
        if wrong:
            raise CommandFailed(f"cas sync of the corpus: exit code {code}: {wrong}")
        summary = running.summary
        return {"seconds": summary["seconds"], "bytes": summary["wire_in"] + summary["wire_out"]}


def _scp(setting: LinkSetting) -> Facts:
    data = setting.random_data(SCP_SIZE)
    with setting.site(LOSSY) as site:
        copy = site.job / "copy"
        source = f"{site.server.alias}:{data}/data"
        command = ["scp", "-q", "-F", str(site.server.config), source, str(copy)]
        seconds = _for_a_time([site.near(command)], 2 * LIMIT)
        return {"rate": copy.stat().st_size / seconds, "seconds": seconds}


def _rsync(setting: LinkSetting, tiers: Mapping[str, Path]) -> Facts:
    peer = Rsync(setting.work / "rsync")
    peer.begin()
    total = sum(peer.transferred(name, path) for name, path in tiers.items())
    with setting.site(LOSSY) as site:
        shell = f"ssh -F {site.server.config}"
        root = next(iter(tiers.values())).parent
        source = f"{site.server.alias}:{root}/"
        command = ["rsync", "-az", "-e", shell, "--include=/tier*/", "--exclude=/*"]
        return _whole(site, [[*command, source, f"{site.job}/copy/"]], total)


def _sftp(setting: LinkSetting, tiers: Mapping[str, Path]) -> Facts:
    files = [path for tier in tiers.values() for path in corpus.files(tier)]
    total = sum(stored_size(tier) for tier in tiers.values())
    with setting.site(LOSSY) as site:
        commands = []
        for number, share in enumerate(_shares(files, SFTP)):
            batch = site.job / f"batch{number}"
            target = site.job / f"copy{number}"
            target.mkdir()
            lines = [f'get "{path}" "{target}/{i}"\n' for i, path in enumerate(share)]
            batch.write_text("".join(lines))
            config = str(site.server.config)
            commands.append(["sftp", "-q", "-F", config, "-b", str(batch), site.server.alias])
        return _whole(site, commands, total)


def _shares(files: Sequence[Path], count: int) -> list[list[Path]]:
    """The files in so many lists of about the same number of bytes."""
    shares: list[list[Path]] = [[] for _ in range(count)]
    sizes = [0] * count
    for path in sorted(files, key=lambda path: -path.stat().st_size):
        least = sizes.index(min(sizes))
        shares[least].append(path)
        sizes[least] += path.stat().st_size
    return shares


def _whole(site: Site, commands: Sequence[Sequence[str]], total: int) -> Facts:
    """What the whole takes, `total` bytes: `rate` is 0 if it came to its end."""
    nothing = subprocess.DEVNULL
    processes = [site.near(command, stdout=nothing, stderr=nothing) for command in commands]
    seconds = _for_a_time(processes, LIMIT)
    if all(process.returncode == 0 for process in processes):
        return {"seconds": seconds, "bytes": total, "rate": 0.0}
    rate = site.delivered() / seconds
    return {"seconds": total / rate, "bytes": total, "rate": rate}


def _for_a_time(processes: Sequence[subprocess.Popen[bytes]], limit: float) -> float:
    """How long they ran, together; ended when they take longer than `limit`."""
    began = time.monotonic()
    while any(process.poll() is None for process in processes):
        if time.monotonic() - began > limit:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()
            break
        time.sleep(0.1)
    return time.monotonic() - began
