"""What the facts of an end mean: which of them slow things down, and what can be done about it.

Pure: facts in, findings out. A finding without advice is fine as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cas.agent.facts import PURE_PYTHON, SOFTWARE
from cli import output

LITTLE_SPACE = 10**9
LONG_TRIP = 0.15  # seconds
GOOD_CONTROLS = ("bbr", "bbr2", "bbr3", "brutal")


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact of an end, and what to do about it if it is not as it should be."""

    name: str
    text: str
    advice: str = ""


def judge(facts: Iterable[tuple[str, str]], *, sends: bool) -> list[Finding]:
    """What an end's facts mean; `sends` for the end that bulk data comes from."""
    said = dict(facts)
    advice = {
        "chunking": _chunking(said),
        "sha256": _sha256(said),
        "load": _load(said),
        "congestion control": _congestion(said) if sends else "",
    }
    hidden = () if sends else ("congestion controls available",)
    return [
        Finding(name, output.printable(text), advice.get(name, ""))
        for name, text in said.items()
        if name not in hidden
    ]


def _chunking(said: Mapping[str, str]) -> str:
    if said.get("chunking") != PURE_PYTHON:
        return ""
    return (
        "new files are read at about 6 MB/s: use a Python that fastcdc has a wheel for (CPython "
        "3.9 to 3.12 on x86-64), or install a C compiler and fastcdc anew"
    )


def _sha256(said: Mapping[str, str]) -> str:
    if said.get("sha256") != SOFTWARE:
        return ""
    return (
        "the processor has no SHA instructions: hashing is several times slower, which is felt "
        "only where the link is fast"
    )


def _load(said: Mapping[str, str]) -> str:
    try:
        busy = float(said["load"]) > 2 * int(said["cpus"])
    except (KeyError, ValueError):
        return ""
    return "the machine is busy with something else" if busy else ""


def _congestion(said: Mapping[str, str]) -> str:
    control = said.get("congestion control", "unknown")
    if control == "unknown" or control in GOOD_CONTROLS:
        return ""
    command = bbr_command(said.get("congestion controls available", ""))
    return f"{control} slows down at every lost packet; if root there allows it, {command}"


def bbr_command(available: str) -> str:
    """What root types to have BBR, given the names of what the kernel has loaded."""
    first = "" if "bbr" in available.split() else "modprobe tcp_bbr; "
    settings = "net.core.default_qdisc=fq net.ipv4.tcp_congestion_control=bbr"
    return f"`{first}sysctl -w {settings}`"


def judge_space(name: str, path: str, kind: str, free: int, refused: str) -> Finding:
    """A directory that is written to: its file system, its free bytes, why it cannot be used."""
    text = f"{output.printable(path)} ({kind or 'unknown file system'}, {output.size(free)} free)"
    if refused:
        return Finding(name, text, refused)
    return Finding(name, text, "make room" if free < LITTLE_SPACE else "")


def judge_trip(seconds: float) -> Finding:
    """The round trip of a heartbeat."""
    advice = "far away: several lanes are worth more there" if seconds > LONG_TRIP else ""
    return Finding("round trip", f"{1000 * seconds:.1f} ms", advice)


def judge_versions(here: str, there: str) -> Finding:
    """The far end's version of cas."""
    advice = "" if here == there else f"another version than here ({here})"
    return Finding("cas", output.printable(there), advice)
