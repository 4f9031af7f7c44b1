"""Measures the link to a host by plain SSH connections; no agent is needed there, only a shell.

One connection, the control, has a shell that answers questions: how long that takes is the round
trip, and what the host's kernel counts is asked for by it while others are busy. Those carry random
bytes, which nothing on the way can compress, for a few seconds: one first, then several at once.
All of them begin at the same word, so that none is ahead of the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from cas.errors import TransportError
from cas.transport.base import Dialer, Transport
from cas.transport.channel import Channel
from cas.transport.talk import NoShell, Shell
from cas.transport.tcpinfo import TcpState, own_state, state_of_host, state_of_ss
from cas.transport.within import within

TRIPS = 9
LARGE = 12_000  # bytes, each way: several full packets
LARGE_SECONDS = 30.0  # a packet that is lost, and once more, is there long before
ANSWER_SECONDS = 60.0
LANES = (1, 4)
SECONDS = 5.0  # of each download
WARM_UP_SECONDS = 1.0
BYTES = 12_000_000  # of each download at most, all lanes together
START_SECONDS = 60.0
FLOW = 'printf "cas-flow %s\\n" "$SSH_CONNECTION"; read -r go; exec head -c {size} /dev/urandom'
SHELL = ("sh",)

Reach = Callable[[Sequence[str]], Dialer]


@dataclass(frozen=True, slots=True)
class Rate:
    """What came by so many connections at once."""

    lanes: int
    size: int
    seconds: float

    @property
    def speed(self) -> float:
        """Bytes a second."""
        return self.size / self.seconds if self.seconds else 0.0


@dataclass(slots=True)
class Link:
    """What was found out. Times in seconds; `large` is None when a large answer did not come.
    `sent` is what the host counts of the downloads; if not `exact`, of all that it sent meanwhile.
    `trouble` says why not all of them came to an end.
    """

    connecting: float
    start: float = 0.0
    trips: list[float] = field(default_factory=list)
    large: float | None = None
    ours: TcpState | None = None
    sent: TcpState | None = None
    exact: bool = True
    rates: list[Rate] = field(default_factory=list)
    control: str = ""
    available: str = ""
    compression: str = ""
    trouble: str = ""

    @property
    def trip(self) -> float:
        """The round trip: the least of all. Loss and a busy host only make it longer."""
        return min(self.trips)

    @property
    def usual_trip(self) -> float:
        """The median of all."""
        return statistics.median(self.trips)


async def measure(reach: Reach, *, quick: bool) -> Link:
    """Measure; `reach` makes a dialer for a command. `quick` leaves the downloads out.

    Raises what `connect` raises, and NoShell where only the shell or what it starts is amiss.
    """
    dialer = reach(SHELL)
    began = time.monotonic()
    transport = await dialer.connect()
    link = Link(time.monotonic() - began)
    try:
        shell = Shell(transport, dialer.name)
        first = await _trip(shell, ANSWER_SECONDS)
        link.trips = [await _trip(shell, ANSWER_SECONDS) for _ in range(TRIPS)]
        link.start = max(0.0, first - link.trip)
        link.compression = str(_fact(transport, "recv_compression") or "")
        link.ours = own_state(_fact(transport, "socket"))
        with contextlib.suppress(asyncio.TimeoutError):
            link.large = await _trip(shell, LARGE_SECONDS, "x" * LARGE)
        if link.large is not None:
            await _ask_controls(shell, link)
            if not quick:
                link.trouble = await _tried(_downloads(reach, shell, link))
    except asyncio.TimeoutError:
        raise NoShell("the host's shell does not answer", where=dialer.name) from None
    finally:
        await transport.close()
    return link


async def _tried(work: Coroutine[Any, Any, None]) -> str:
    """Do it; why it failed, if the network is to blame."""
    try:
        await work
    except asyncio.TimeoutError:
        return "a connection was made and brought nothing"
    except TransportError as error:
        return error.what
    return ""


async def _trip(shell: Shell, seconds: float, text: str = "") -> float:
    """How long it takes for an answer as long as the question."""
    began = time.monotonic()
    await shell.ask(f"printf %s '{text}'", seconds)
    return time.monotonic() - began


def _fact(transport: Transport, name: str) -> object:
    return transport.fact(name) if isinstance(transport, Channel) else None


async def _ask_controls(shell: Shell, link: Link) -> None:
    name = "/proc/sys/net/ipv4/tcp_{}congestion_control"
    link.control = await shell.ask(f"cat {name.format('')} 2>/dev/null", ANSWER_SECONDS)
    link.available = await shell.ask(f"cat {name.format('available_')} 2>/dev/null", ANSWER_SECONDS)


async def _downloads(reach: Reach, shell: Shell, link: Link) -> None:
    """Each of LANES, and what the host counted meanwhile."""
    look = "cat /proc/net/snmp 2>/dev/null"
    before = await shell.ask(look, ANSWER_SECONDS)
    states = []
    for lanes in LANES:
        async with _flows(reach, lanes) as flows:
            link.rates.append(await _download(flows))
            for flow in flows:
                said = await shell.ask(f"ss -tin dport = :{flow.port} 2>/dev/null", ANSWER_SECONDS)
                states.append(state_of_ss(said))
    known = [state for state in states if state is not None]
    if len(known) == len(states):
        link.sent = _together(known)
        return
    link.exact = False
    link.sent = state_of_host(before, await shell.ask(look, ANSWER_SECONDS))


def _together(states: Sequence[TcpState]) -> TcpState:
    one = states[0]
    least = min(state.least_rtt for state in states)
    segments, again = sum(s.segments for s in states), sum(s.again for s in states)
    return TcpState(segments, again, one.rtt, least, one.segment_size, one.path_mtu, one.control)


class _Flow:
    """A connection that carries random bytes once it is told to. `port` is ours, as the host sees
    it."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.port = 0

    @property
    def size(self) -> int:
        """Bytes that have come, counted on the wire, where they come in small pieces."""
        return self.transport.bytes_in

    async def ready(self) -> None:
        """Wait for its first line, whatever else the login shell prints."""
        said = bytearray()
        while b"\n" not in said.partition(b"cas-flow ")[2]:
            data = await self.transport.receive()
            if not data or len(said) > 64 * 1024:
                raise NoShell("the host sends nothing")
            said += data
        words = said.partition(b"cas-flow ")[2].split(b"\n")[0].split()
        self.port = int(words[1]) if len(words) == 4 and words[1].isdigit() else 0

    async def carry(self) -> None:
        """Take what comes, to the end."""
        with contextlib.suppress(TransportError):
            while await self.transport.receive():
                pass


@contextlib.asynccontextmanager
async def _flows(reach: Reach, count: int) -> AsyncIterator[list[_Flow]]:
    """So many of them, ready to begin."""
    dialer = reach(("sh", "-c", FLOW.format(size=BYTES // count)))
    flows: list[_Flow] = []
    try:
        while len(flows) < count:
            flows.append(_Flow(await dialer.connect()))
        await within(asyncio.gather(*(flow.ready() for flow in flows)), START_SECONDS)
        yield flows
    finally:
        await asyncio.gather(*(flow.transport.close() for flow in flows))


async def _download(flows: Sequence[_Flow]) -> Rate:
    """Let them go for SECONDS. The first second, in which TCP gets up to speed, does not count
    where there is enough behind it."""
    carrying = [asyncio.create_task(flow.carry()) for flow in flows]
    try:
        began, before = time.monotonic(), sum(flow.size for flow in flows)
        for flow in flows:
            await flow.transport.send(b"go\n")
        await asyncio.wait(carrying, timeout=WARM_UP_SECONDS)
        warm, early = time.monotonic(), sum(flow.size for flow in flows)
        await asyncio.wait(carrying, timeout=SECONDS)
        ended, size = time.monotonic(), sum(flow.size for flow in flows)
    finally:
        for task in carrying:
            task.cancel()
        await asyncio.gather(*carrying, return_exceptions=True)
    if ended - warm < WARM_UP_SECONDS:
        return Rate(len(flows), size - before, ended - began)
    return Rate(len(flows), size - early, ended - warm)
