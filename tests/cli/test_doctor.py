import functools
import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.diagnosis import judge, judge_space, judge_trip, judge_versions
from tests.cli.conftest import ROOT, Place, command_line
from tests.link.site import RELAY_PRIORITY
from tests.real.sshd import Server, running_sshd
from tests.tools.badlink import BadLink

GOOD = {
    "cpus": "2",
    "load": "0.10",
    "chunking": "compiled",
    "sha256": "in hardware",
    "congestion control": "bbr",
    "congestion controls available": "reno cubic bbr",
}


def _advice(changed: dict[str, str], *, sends: bool = True) -> dict[str, str]:
    facts = {**GOOD, **changed}
    return {f.name: f.advice for f in judge(facts.items(), sends=sends) if f.advice}


def test_a_good_end_needs_no_advice() -> None:
    assert {} == _advice({})
    assert {} == _advice({"chunking": "unheard of", "load": "?", "sha256": "unknown"})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"chunking": "pure Python"}, "6 MB/s"),
        ({"sha256": "in software"}, "no SHA instructions"),
        ({"load": "4.10"}, "busy"),
        (
            {"congestion control": "cubic"},
            "`sysctl -w net.core.default_qdisc=fq net.ipv4.tcp_congestion_control=bbr`",
        ),
        (
            {"congestion control": "reno", "congestion controls available": "reno cubic"},
            "`modprobe tcp_bbr; sysctl",
        ),
    ],
)
def test_what_is_slow_gets_one_line_of_advice(changed: dict[str, str], said: str) -> None:
    [(name, advice)] = _advice(changed).items()
    assert name in changed
    assert said in advice
    assert "\n" not in advice


def test_congestion_control_matters_only_where_bulk_is_sent() -> None:
    assert {} == _advice({"congestion control": "cubic"}, sends=False)


def test_what_the_far_end_says_drives_no_terminal() -> None:
    [finding] = judge([("host", "a\x1b[2J\n")], sends=True)
    assert finding.text == "a\\x1b[2J\\n"


def test_other_judgements() -> None:
    assert judge_space("store", "/s", "ext4", 10**12, "").advice == ""
    assert judge_space("store", "/s", "ext4", 10**12, "").text == "/s (ext4, 1.00 TB free)"
    assert judge_space("store", "/s", "ext4", 10**8, "").advice == "make room"
    assert judge_space("store", "/s", "nfs", 10**12, "no").advice == "no"
    assert judge_trip(0.02).advice == ""
    assert "lanes" in judge_trip(0.3).advice
    assert judge_versions("1", "1").advice == ""
    assert "1" in judge_versions("1", "2").advice


def _lines(text: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_both_ends_are_looked_at(place: Place) -> None:
    done = place.cas("doctor", "--json")
    assert done.returncode == 0
    found = _lines(done.stdout)
    here = {f["name"] for f in found if f["end"] == "here"}
    assert {"cas", "python", "chunking", "sha256", "store", "cache"} <= here
    there = {f["name"]: f for f in found if f["end"] == "here (this machine)"}
    assert {"connecting", "round trip", "python"} <= set(there)
    assert there["round trip"]["text"].endswith(" ms")
    people = place.cas("doctor").stdout.decode()
    assert people.startswith("here\n  cas ")


def test_a_source_out_of_reach_is_exit_1_and_the_rest_is_told(place: Place) -> None:
    done = place.cas("doctor", "127.0.0.1:1")
    assert done.returncode == 1
    assert "refuses connections" in done.stdout.decode()
    assert "chunking" in done.stdout.decode()


def test_through_ssh(place: Place, sshd: Server) -> None:
    agent = shlex.join(["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "cli", "serve"])
    text = (place.path / "plan.toml").read_text()
    source = f'[source.here]\nhost = "{sshd.alias}"\nagent = "{agent}"'
    (place.path / "plan.toml").write_text(text.replace("[source.here]", source))
    looked = place.cas("doctor", "here", "--ssh-config", sshd.config, "--json")
    assert looked.returncode == 0, looked.stdout
    found = {f["name"]: f for f in _lines(looked.stdout) if f["end"] != "here"}
    measured = {"link round trip", "rate, 1 connection", "rate, 4 connections", "loss"}
    assert {"congestion controls available", "round trip", *measured} <= set(found)
    assert "up to 24.0 MB" in looked.stderr.decode()
    synced = place.cas("sync", "--json", "--ssh-config", sshd.config)
    assert synced.returncode == 0, synced.stderr
    assert all(tier["complete"] for tier in _lines(synced.stdout)[-1]["tiers"])
    scanned = place.cas("scan", "--json", "--ssh-config", sshd.config)
    assert [0, 0] == [tier["to_fetch"] for tier in _lines(scanned.stdout)[-1]["tiers"]]


def test_the_agent_that_is_not_there_is_told_with_what_would_help(
    place: Place, sshd: Server
) -> None:
    text = (place.path / "plan.toml").read_text()
    source = f'[source.here]\nhost = "{sshd.alias}"\nagent = "no-such-cas serve"'
    (place.path / "plan.toml").write_text(text.replace("[source.here]", source))
    done = place.cas("sync", "--ssh-config", sshd.config)
    assert done.returncode == 1
    said = done.stderr.decode()
    assert "no-such-cas" in said
    assert "cas must be installed there" in said
    assert "Traceback" not in said


def test_a_host_without_an_agent_has_its_link_measured_all_the_same(
    place: Place, sshd: Server
) -> None:
    done = place.cas("doctor", sshd.alias, "--quick", "--json", "--ssh-config", sshd.config)
    assert done.returncode == 1
    found = {f["name"]: f for f in _lines(done.stdout) if f["end"] != "here"}
    assert f"cas bootstrap {sshd.alias}" in found["connecting"]["text"]
    assert {"congestion control", "login shell", "link round trip", "segments"} <= set(found)
    assert not [name for name in found if name.startswith(("rate", "loss"))]
    assert b"sends up to" not in done.stderr


def test_a_key_for_one_command_leaves_the_link_unmeasured(place: Place) -> None:
    agent = shlex.join([sys.executable, "-m", "cli", "serve"])
    settings = [f"SetEnv PYTHONPATH={ROOT}", f"ForceCommand {agent}"]
    with running_sshd(extra=settings) as server:
        done = place.cas("doctor", server.alias, "--ssh-config", server.config)
    assert done.returncode == 0, done.stderr
    assert "the link is not measured" in done.stderr.decode()
    assert "congestion control" in done.stdout.decode()


@pytest.mark.root
def test_a_bad_link_is_told_as_it_is(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path)}
    with BadLink(loss=5, rtt=100) as link:
        os.setpriority(os.PRIO_PROCESS, link.pid, RELAY_PRIORITY)
        spawn = functools.partial(link.popen, "server")
        with running_sshd(listen=link.server, spawn=spawn) as server:
            words = command_line("doctor", "--json", server.alias, "--ssh-config", server.config)
            done = link.run("client", words, env=environment, cwd=tmp_path, capture_output=True)
    found = {f["name"]: f for f in _lines(done.stdout) if f["end"] != "here"}
    trip = re.match(r"(\d+) ms", found["link round trip"]["text"])
    assert trip
    assert 100 <= int(trip[1]) < 200
    lost = re.match(r"([0-9.]+) % sent again \((\d+) of", found["loss"]["text"])
    assert lost, found["loss"]
    assert 1 < float(lost[1]) < 25
    assert "a connection of that" in found["loss"]["text"]
    assert "default_qdisc=fq net.ipv4.tcp_congestion_control=bbr" in found["loss"]["advice"]
    # How much more four bring is chance in so short a time; the advice is test_link_diagnosis's.
    assert "B/s" in found["rate, 4 connections"]["text"]
