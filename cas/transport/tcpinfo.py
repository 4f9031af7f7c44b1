"""What the kernel knows of a TCP connection: ours by its socket, the other end's by what `ss` says.

`struct tcp_info` (linux/tcp.h) has only ever grown at its end, so a field is where it is if the
kernel gave that many bytes. Numbers of another end are read as `ss -tin` of iproute2 prints them.
"""

from __future__ import annotations

import re
import socket
import struct
from dataclasses import dataclass
from typing import Any

_CONTROL = re.compile(
    r"^\s+(?:(?:ts|sack|ecn|ecnseen|fastopen) )*([a-z][a-z0-9_]*)\b", re.MULTILINE
)
_SIZE = 256
_MSS, _MTU, _RTT, _RETRANSMITTED, _MIN_RTT, _SEGMENTS = 16, 60, 68, 100, 148, 156  # offsets


@dataclass(frozen=True, slots=True)
class TcpState:
    """One end of a connection. `segments` with data were sent, `again` of them for a second time
    or more; times in seconds, 0 where unknown, and so are sizes."""

    segments: int
    again: int
    rtt: float = 0.0
    least_rtt: float = 0.0
    segment_size: int = 0
    path_mtu: int = 0
    control: str = ""


def own_state(sock: Any) -> TcpState | None:
    """Our end; None if the socket is none of TCP's (behind a ProxyCommand) or the kernel is old."""
    try:
        data = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _SIZE)
    except (AttributeError, OSError):
        return None
    if len(data) < _SEGMENTS + 4:
        return None

    def field(offset: int) -> int:
        value: int = struct.unpack_from("=I", data, offset)[0]
        return value

    least = field(_MIN_RTT)
    return TcpState(
        field(_SEGMENTS),
        field(_RETRANSMITTED),
        field(_RTT) / 1e6,
        least / 1e6 if least != 0xFFFFFFFF else 0.0,
        field(_MSS),
        field(_MTU),
    )


def state_of_ss(text: str) -> TcpState | None:
    """The other end, from the lines of `ss -tin` for one connection; None if they do not tell."""
    segments = re.search(r"\bdata_segs_out:(\d{1,12})\b", text)
    if segments is None:
        return None
    again = re.search(r"\bretrans:\d+/(\d{1,12})\b", text)  # not there while it is 0
    control = _CONTROL.search(text)
    return TcpState(
        int(segments[1]),
        int(again[1]) if again else 0,
        _milliseconds(r"\brtt:([0-9.]{1,12})/", text),
        _milliseconds(r"\bminrtt:([0-9.]{1,12})\b", text),
        _number(r"\bmss:(\d{1,6})\b", text),
        _number(r"\bpmtu:(\d{1,6})\b", text),
        control[1] if control else "",
    )


def state_of_host(before: str, after: str) -> TcpState | None:
    """All that a host sent between two looks at its /proc/net/snmp, whoever sent it."""
    first, last = _counters(before), _counters(after)
    try:
        segments = last["OutSegs"] - first["OutSegs"]
        again = last["RetransSegs"] - first["RetransSegs"]
    except KeyError:
        return None
    return TcpState(segments, again) if segments > 0 and again >= 0 else None


def _counters(text: str) -> dict[str, int]:
    rows = [line.split()[1:] for line in text.splitlines() if line.startswith("Tcp:")]
    if len(rows) != 2:
        return {}
    return {name: int(value) for name, value in zip(*rows, strict=False) if value.isdecimal()}


def _milliseconds(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    return float(found[1]) / 1000 if found and found[1].count(".") <= 1 else 0.0


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else 0
