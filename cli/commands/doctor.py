"""`cas doctor`: what is wrong or slow, at both ends."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cas.errors import EXIT_DONE, EXIT_FAILED, CasError
from cli import options, output

if TYPE_CHECKING:
    from cas.plan import Plan, Source
    from cas.transport.base import Dialer
    from cas.transport.measure import Link
    from cli.diagnosis import Finding
    from cli.wiring import Wishes

TRIPS = 3


@click.command("doctor", short_help="Say what is wrong or slow, here and at a source.")
@click.argument("name", metavar="[SOURCE|HOST]", required=False)
@click.option("--quick", is_flag=True, help="Let the source send nothing to measure its link.")
@options.plan_option
@options.store_option
@options.ssh_config_option
@options.json_option
def command(
    name: str | None,
    quick: bool,
    plan_path: str | None,
    store_path: Path | None,
    ssh_config: str | None,
    as_json: bool,
) -> int:
    """Say what is wrong or slow here and at a source, and what would help.

    A name is that of a source in the plan or else a host for ssh; without one, all sources of the
    plan are looked at. The exit code is 1 if one of them cannot be reached or has no agent.

    A remote source sends up to 24 MB of random bytes, for about 12 s, so that rate and loss can be
    seen; not with --quick.

    \b
    Examples:
      cas doctor
      cas doctor --quick user@npu.example.org
    """
    from cli import wiring

    plan = wiring.maybe_plan(plan_path)
    _show("here", _here(plan, store_path), as_json)
    code = EXIT_DONE
    wishes = wiring.Wishes(ssh_config=ssh_config)
    wishes = wiring.Wishes(ssh_config=ssh_config)
    for source in _sources(plan, name):
        findings, is_well = _there(source, wishes, quick=quick)
        code = code if is_well else EXIT_FAILED
        where = source.host or "this machine"
        _show(f"{source.name} ({where})", findings, as_json)
    return code


def _sources(plan: Plan | None, name: str | None) -> list[Source]:
    from cas.plan import Source

    known = plan.sources if plan is not None else {}
    if name is None:
        return list(known.values())
    return [known.get(name) or Source(name, host=name)]


def _here(plan: Plan | None, store_path: Path | None) -> list[Finding]:
    from cas import __version__
    from cas.agent.facts import agent_facts
    from cli import wiring
    from cli.diagnosis import Finding, judge

    findings = [Finding("cas", __version__), *judge(agent_facts(), sends=False)]
    store = store_path or (Path(plan.store) if plan is not None else None)
    if store is not None:
        findings.append(_space("store", store))
    return [*findings, _space("cache", wiring.cache_directory())]


def _space(name: str, path: Path) -> Finding:
    from cas.store.filesystem import filesystem_of, refuse_network_filesystem
    from cli.diagnosis import judge_space

    refused = ""
    try:
        refuse_network_filesystem(path)
    except CasError as error:
        refused = f"{error.what}; {error.advice}"
    existing = next((p for p in (path, *path.parents) if p.exists()), Path("/"))
    if not os.access(existing, os.W_OK):
        refused = "this user may not write there"
    found = os.statvfs(existing)
    return judge_space(
        name, str(path), filesystem_of(path), found.f_bavail * found.f_frsize, refused
    )


def _there(source: Source, wishes: Wishes, *, quick: bool) -> tuple[list[Finding], bool]:
    """What is to be said of a source, of its link first, which needs no agent there; and whether
    it can be used."""
    from cli import wiring
    from cli.link_diagnosis import judge_controls, judge_link

    link = None
    try:
        if source.host is not None and source.via != "sftp":
            link = _measured(source, wishes, quick=quick)
        dialer = wiring.dialer_for(source, wishes)
        if source.via == "sftp":
            findings = _sftp(dialer)
        else:
            findings = _agent(dialer, remote=source.host is not None)
        is_well = True
    except CasError as error:
        findings = [_failure(error), *([] if link is None else judge_controls(link))]
        is_well = False
    return [*findings, *([] if link is None else judge_link(link))], is_well


def _measured(source: Source, wishes: Wishes, *, quick: bool) -> Link | None:
    """The link; None if the host runs no shell for us. Raises CasError when it is out of reach."""
    from cas.transport.measure import measure
    from cas.transport.talk import NoShell
    from cli import interrupt, wiring
    from cli.link_diagnosis import volume

    if not quick:
        output.say(f"measuring the link: {source.name} sends up to {volume()} (not with --quick)")
    try:
        return interrupt.run(
            measure(lambda words: wiring.ssh_dialer(source, words, wishes), quick=quick)
        )
    except NoShell as error:
        output.say(output.printable(f"the link is not measured: {error}"))
        return None


def _agent(dialer: Dialer, *, remote: bool) -> list[Finding]:
    from cas import __version__
    from cli import interrupt
    from cli.diagnosis import Finding, judge, judge_trip, judge_versions

    facts, version, connecting, trip = interrupt.run(_ask(dialer))
    return [
        judge_versions(__version__, version),
        Finding("connecting", f"{connecting:.2f} s"),
        judge_trip(trip),
        *judge(facts, sends=remote),
    ]


def _sftp(dialer: Dialer) -> list[Finding]:
    from cas.sftp.source import SftpDialer
    from cli import interrupt
    from cli.diagnosis import Finding, judge_trip

    assert isinstance(dialer, SftpDialer)
    trial = interrupt.run(dialer.try_out())
    tells = "asked first: what is held here is not fetched" if trial.runs_commands else "not run"
    return [
        Finding("agent", "none: it is read over SFTP"),
        Finding("connecting", f"{trial.connecting:.2f} s"),
        judge_trip(trial.trip),
        Finding("begins in", output.printable(trial.home.decode("utf-8", "backslashreplace"))),
        Finding("sha256sum there", tells),
    ]


async def _ask(dialer: Dialer) -> tuple[tuple[tuple[str, str], ...], str, float, float]:
    """The agent's facts and version, the seconds to connect, and those of a round trip."""
    from cas.messages import Beat, Bye
    from cas.pull.lane import open_lane

    began = time.monotonic()
    lane = await open_lane(dialer)
    try:
        connecting = time.monotonic() - began
        trips = []
        for number in range(1, TRIPS + 1):
            began = time.monotonic()
            await lane.send(Beat(number))
            while await lane.receive() != Beat(number):
                pass
            trips.append(time.monotonic() - began)
        await lane.send(Bye())
        return lane.peer.facts, lane.peer.version, connecting, min(trips)
    finally:
        await lane.close()


def _failure(error: CasError) -> Finding:
    from cli.diagnosis import Finding

    what = " / ".join(map(output.printable, error.what.splitlines()))
    return Finding("connecting", what, error.advice or "try it by hand with ssh")


def _show(end: str, findings: list[Finding], as_json: bool) -> None:
    import sys

    from cli.summary import print_facts

    if as_json:
        for finding in findings:
            output.json_line(
                {"end": end, "name": finding.name, "text": finding.text, "advice": finding.advice}
            )
        return
    output.result(output.paint(output.printable(end), output.BOLD, sys.stdout))
    width = max((len(finding.name) for finding in findings), default=0) + 2
    for finding in findings:
        print_facts([(finding.name, finding.text)], width, margin="  ")
        if finding.advice:
            output.result(output.paint(f"    ! {finding.advice}", output.YELLOW, sys.stdout))
