"""What a link's measurements mean, and what would make it quicker, with the gain to expect.

How loss, round trip and speed hang together: a TCP that takes every lost packet for a full link
(reno, cubic) gets at most about 1.22 x segment / (round trip x sqrt(loss)) (Mathis, Semke, Mahdavi,
Ott, CCR 27(3), 1997). Each connection has this limit for itself, so that many bring many times as
much, until the link is full. BBR has no such limit.

Pure: measurements in, findings out.
"""

from __future__ import annotations

import math

from cas.transport.measure import BYTES, LANES, LARGE, LARGE_SECONDS, Link
from cas.transport.tcpinfo import TcpState
from cli import output
from cli.diagnosis import GOOD_CONTROLS, Finding, bbr_command, judge

MATHIS = 1.22
USUAL_SEGMENT = 1448  # bytes
SLOW_SHELL = 0.5  # seconds
LOSSY = 0.001
FEW_SEGMENTS = 200  # from fewer no loss is told
GROWS, FULL = 2.0, 1.3  # what LANES bring by what one brings: loss is the limit, the link is
MANY_LANES = 12


def volume() -> str:
    """How much a measurement makes a host send at most."""
    return output.size(BYTES * len(LANES))


def judge_link(link: Link) -> list[Finding]:
    """All that was measured; advice where something can be done."""
    findings = [
        Finding("ssh login", f"{link.connecting:.2f} s"),
        _shell(link),
        Finding("link round trip", _trip(link)),
        *_packets(link),
        _compression(link),
    ]
    findings += [_rate(link, number) for number in range(len(link.rates))]
    if link.trouble:
        text = f"not measured to the end: {output.printable(link.trouble)}"
        findings.append(Finding("rate", text, "try again, or sync with few lanes"))
    if link.sent is not None:
        findings.append(_loss(link, link.sent))
    if link.ours is not None and link.ours.again:
        findings.append(Finding("sent again from here", _again(link.ours)))
    return findings


def judge_controls(link: Link) -> list[Finding]:
    """What an agent would say of congestion control, where there is none to say it."""
    facts = {"congestion control": link.control, "congestion controls available": link.available}
    return judge([(name, text) for name, text in facts.items() if text], sends=True)


def mathis(segment: int, trip: float, loss: float) -> float:
    """The bytes a second that one connection can reach with reno or cubic."""
    return MATHIS * segment / (trip * math.sqrt(loss))


def _shell(link: Link) -> Finding:
    advice = ""
    if link.start > SLOW_SHELL:
        advice = (
            "every lane waits for it: see what the login shell's start-up files do (~/.bashrc, "
            "~/.profile), they are read for commands too"
        )
    return Finding("login shell", f"{link.start:.2f} s until it runs a command", advice)


def _trip(link: Link) -> str:
    text = f"{_ms(link.trip)}, median {_ms(link.usual_trip)}, at most {_ms(max(link.trips))}"
    if link.ours is not None and link.ours.rtt:
        text += f" (TCP: {_ms(link.ours.rtt)})"
    return text


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if seconds < 0.01 else f"{1000 * seconds:.0f} ms"


def _packets(link: Link) -> list[Finding]:
    findings = []
    if link.ours is not None and link.ours.segment_size:
        text = f"{link.ours.segment_size} bytes each, path MTU {link.ours.path_mtu}"
        findings.append(Finding("segments", text))
    if link.large is None:
        advice = (
            "full packets get lost on the way, which small ones do not: lower the MTU of the VPN's "
            "interface here, `ip link set dev IFACE mtu 1280`"
        )
        text = f"an answer of {output.size(LARGE)} did not come within {LARGE_SECONDS:.0f} s"
        findings.append(Finding("large packets", text, advice))
    return findings


def _compression(link: Link) -> Finding:
    off = link.compression in ("", "none")
    advice = "" if off else "it costs more than it brings: what is sent is compressed already"
    return Finding("ssh compression", output.printable(link.compression or "none"), advice)


def _rate(link: Link, number: int) -> Finding:
    rate, first = link.rates[number], link.rates[0]
    name = f"rate, {output.plural(rate.lanes, 'connection')}"
    text = f"{output.size(rate.speed)}/s ({output.size(rate.size)} in {rate.seconds:.1f} s)"
    if number == 0 or not first.speed:
        return Finding(name, text)
    gain = rate.speed / first.speed
    if gain < FULL:
        return Finding(name, f"{text}; one fills the link, more lanes bring little")
    advice = ""
    if gain >= GROWS:
        many = rate.speed / rate.lanes * MANY_LANES
        advice = (
            f"each connection is slowed down for itself: {MANY_LANES} lanes should bring about "
            f'{output.size(many)}/s if the link has room; lanes = "auto" finds out'
        )
    return Finding(name, f"{text}, {gain:.1f} times as much", advice)


def _loss(link: Link, sent: TcpState) -> Finding:
    text = _again(sent) if link.exact else f"{_again(sent)}; all that the host sent meanwhile"
    if sent.segments < FEW_SEGMENTS and not sent.again:
        return Finding("loss", f"{text}: too few to tell")
    loss = sent.again / sent.segments
    control = sent.control or link.control
    if loss < LOSSY or control in GOOD_CONTROLS or not control:
        return Finding("loss", text)
    limit = mathis(sent.segment_size or USUAL_SEGMENT, link.trip, loss)
    text += f"; {output.printable(control)} makes some {output.size(limit)}/s a connection of that"
    return Finding("loss", text, _bbr(link, limit))


def _again(state: TcpState) -> str:
    """How much was sent again: what was lost, and a little that was only late."""
    count = f"{output.number(state.again)} of {output.plural(state.segments, 'segment')}"
    return f"{100 * state.again / max(state.segments, 1):.2g} % sent again ({count})"


def _bbr(link: Link, limit: float) -> str:
    """BBR, with the gain to expect: one connection brings then what many bring now, or more."""
    first, last = link.rates[0], link.rates[-1]
    if not first.speed or last.speed < FULL * first.speed:
        return ""
    alone = min(first.speed, limit) if limit else first.speed
    return (
        "BBR does not slow down for lost packets: expect one connection to bring at least the "
        f"{output.size(last.speed)}/s that {last.lanes} bring now, "
        f"{last.speed / alone:.0f} times as much or more; if root there allows it, "
        f"{bbr_command(link.available)}"
    )
