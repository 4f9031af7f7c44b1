"""Watches over the lanes to one agent: four times a second it looks at each, and acts.

- A lane in doubt keeps its connection, gets no work, and is replaced; what it had is sent again.
- When all are in doubt the link is out: one login at a time tries it, until it is back or
  given up.
- Lanes that are too many, when more did not pay, get no more to do and are closed.
- Lanes that are missing are opened, a few at a time, once there is something to send over them;
  at once where the first login was slow.
- A login that finds no agent means a new agent, if no other lane is left.

What is to be done is decided elsewhere, without a clock: how many lanes in `climb.py`, which
of them are in doubt in `silence.py`, how much may come over each in `flow.py`.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cas.agent.attach import NO_AGENT
from cas.errors import CasError, TransportError
from cas.messages import DOUBTED, TRUSTED, Beat, Doubt
from cas.outbox import Outbox
from cas.pull.climb import Climb
from cas.pull.flow import TICK_SECONDS, Throttle
from cas.pull.lane import Lane, open_lane, within
from cas.pull.member import Member
from cas.pull.silence import GIVE_UP_SECONDS, Silence
from cas.pull.state import LaneState, SyncState
from cas.transport.base import Dialer

LATE_SECONDS = 3.0  # since the last tick: this process did not run
BEAT_SECONDS = 15.0
REFUSAL_SECONDS = 10.0  # what fails later was not refused, but silent
STALE_SECONDS = 30.0  # a login that takes longer (22 s: the slowest of 24 at 80 kB/s)
MOST = 24
HUNGRY_SECONDS = 1.5  # between two frames the agent may have nothing for a moment
SLOW_SECONDS = 2.5  # a login that takes so long is on a link on which lanes are wanted soon
WORTH_LANES = 256 * 2**10  # bytes that wait at the agent: a sync that brings less needs one lane
TURNED_AWAY = 3  # lanes that found no agent, while others have one, before no more are tried


class AgentGoneError(TransportError):
    """The agent has ended; another can be started."""


class GivenUpError(TransportError):
    """The source was out of reach for as long as one is willing to wait."""


@dataclass(frozen=True, slots=True)
class LaneOptions:
    """`fixed` lanes, or up to `most`, beginning with what was `remembered`; `limit` says how many
    bytes a second may come now, None for any number."""

    fixed: int | None = None
    most: int = MOST
    remembered: int | None = None
    give_up: float = GIVE_UP_SECONDS
    limit: Callable[[], int | None] = lambda: None


class Lanes(Protocol):
    """What is watched over."""

    members: dict[int, Member]
    outbox: Outbox
    backlog: int
    brought: int
    is_awaited: bool

    @property
    def is_full(self) -> bool:
        """Whether we do not read on: silence is ours then."""

    def add(self, lane: Lane, shown: LaneState, seconds: float) -> None:
        """One more lane is up, after so many seconds."""

    def lost(self, member: Member, why: str) -> None:
        """A lane is given up."""

    def fail(self, error: BaseException) -> None:
        """All is over."""

    def note(self, text: str) -> None:
        """Something worth a line has happened."""


class Minder:
    """Minds `lanes`, of which more can be opened by `attaching`."""

    def __init__(
        self,
        lanes: Lanes,
        attaching: Dialer,
        options: LaneOptions,
        state: SyncState,
        source: str,
    ) -> None:
        now = time.monotonic()
        self._lanes = lanes
        self._attaching = attaching
        self._options = options
        self._state = state
        self._source = source
        self._climb = Climb(
            now, most=options.most, fixed=options.fixed, remembered=options.remembered
        )
        self._silence: Silence[int] = Silence(now, give_up=options.give_up)
        self._throttle = Throttle(now, options.limit())
        self._logins: set[asyncio.Task[None]] = set()
        self._beats = 0
        self._beaten = self._looked = now
        self._turned_away = 0
        self._needed = options.fixed is not None  # else once there is something to fetch
        self._hungry = 0.0  # when more was ready than lanes took

    @property
    def best(self) -> int | None:
        """How many lanes did best, when that is known."""
        return self._climb.best

    async def mind(self) -> None:
        """Watch until cancelled."""
        try:
            while True:
                await asyncio.sleep(TICK_SECONDS)
                self._tick(time.monotonic())
        finally:
            for login in self._logins:
                login.cancel()
            await asyncio.gather(*self._logins, return_exceptions=True)

    def opened(self, member: Member, now: float, *, seconds: float) -> None:
        """A lane is up, after so many seconds: nothing may come over it until it is told so."""
        self._silence.opened(member.number, now, seconds=seconds)
        self._needed = self._needed or seconds > SLOW_SECONDS
        self._beat(member, now)
        self.credit(member, now)

    def ended(self, member: Member) -> None:
        """A lane is gone."""
        self._silence.ended(member.number, time.monotonic())

    def expect(self) -> None:
        """Content is on its way: further lanes are worth their logins."""
        self._needed = True

    def progress(self) -> None:
        """Something useful has come: the far end is not merely answering."""
        self._silence.progress(time.monotonic())

    def credit(self, member: Member, now: float) -> None:
        """Tell the far end what has arrived over a lane and what may come, if it is time."""
        credit = member.credit(now, self._throttle)
        if credit is not None:
            self._lanes.outbox.put_now(credit, member.number)

    def _tick(self, now: float) -> None:
        members = self._lanes.members
        self._note_pause(now)
        self._throttle.set_rate(self._options.limit(), now)
        for member in members.values():
            if member.lane.heard > member.noted or self._lanes.is_full:
                member.noted = now
                self._silence.came(member.number, now)
            self.credit(member, now)
            member.show(now)
        for number in self._silence.pings_due(now):
            self._beat(members[number], now)
        if now - self._beaten >= BEAT_SECONDS and members:
            self._beaten = now
            self._beat(next(iter(members.values())), now)
        self._doubt(now)
        self._climb.observe(
            now,
            verified=self._lanes.brought,
            open_lanes=self._healthy,
            is_hungry=self._is_hungry(now),
        )
        self._retire(now)
        self._give_up(now)
        self._call(now)
        for member in members.values():
            member.waker.set()  # some piece may have been on its way for too long

    @property
    def _healthy(self) -> int:
        return sum(member.shown.state == "up" for member in self._lanes.members.values())

    def _is_hungry(self, now: float) -> bool:
        """Whether the link sets the pace: more is ready there than lanes take."""
        if self._lanes.backlog:
            self._hungry = now
        free = now - self._hungry < HUNGRY_SECONDS and not self._throttle.holds(now)
        return free and not self._silence.is_outage(now)

    def _note_pause(self, now: float) -> None:
        """What was spent on work of ours, or asleep, is no silence of others."""
        lately, self._looked = now - self._looked, now
        if lately > LATE_SECONDS:
            self._silence.paused(lately)

    def _give_up(self, now: float) -> None:
        seconds = f"{self._options.give_up:.0f} s"
        what = ""
        if not self._lanes.is_awaited:
            self._silence.progress(now)
            for member in self._lanes.members.values():
                member.lane.rest()
        if self._silence.given_up(now):
            what = f"nothing has come for {seconds}"
        elif self._silence.stalled(now):
            what = f"the agent answers, but nothing of use has come for {seconds}"
        if what:
            # Whoever wants something of it later may try anew.
            kind = GivenUpError if self._lanes.is_awaited else AgentGoneError
            self._lanes.fail(kind(what, where=self._attaching.name))

    def _beat(self, member: Member, now: float) -> None:
        self._beats += 1
        member.asked(self._beats, now)
        self._silence.asked(member.number, now)
        self._lanes.outbox.put_now(Beat(self._beats), member.number)

    def _doubt(self, now: float) -> None:
        suspects = self._silence.suspects(now)
        members = self._lanes.members.values()
        fallen = [m for m in members if m.number in suspects and m.shown.state == "up"]
        back = [m for m in members if m.number not in suspects and m.shown.state == "suspect"]
        for member in fallen:
            self._judge(member, "suspect", DOUBTED)
        for member in back:
            self._judge(member, "up", TRUSTED)
        if fallen:
            silent = max(now - member.lane.heard for member in fallen)
            self._lanes.note(f"{_named(fallen)} silent for {silent:.0f} s")
        if back:
            self._lanes.note(f"{_named(back)} back")
        for number in self._silence.to_drop(now):
            self._lanes.lost(self._lanes.members[number], "silent, and replaced")

    def _retire(self, now: float) -> None:
        """Let lanes go that are too many: those in doubt at once, others when what they have been
        allowed has come."""
        surplus = self._healthy - self._climb.wanted
        members = list(self._lanes.members.values())
        if surplus >= 0:
            for member in members:
                if member.shown.state == "suspect":
                    self._lanes.lost(member, "silent, and replaced")
        healthy = [member for member in members if member.shown.state == "up"]
        for member in sorted(healthy, key=lambda one: one.shown.rate)[: max(surplus, 0)]:
            member.shown.state, member.retired = "retiring", now
        for member in members:
            if member.retired is not None and member.is_spent(now):
                self._lanes.lost(member, "not needed any more")

    def _judge(self, member: Member, state: str, worth: int) -> None:
        outbox = self._lanes.outbox
        member.shown.state = state
        (outbox.trust if worth == TRUSTED else outbox.doubt)(member.number)
        outbox.put_message(Doubt(member.number, worth))

    def _call(self, now: float) -> None:
        """Log in as often as lanes are missing, but not too often at a time."""
        # Those that an outage has caught wake as late as lanes do: they hold up no others.
        shown = [lane for lane in self._state.lanes if lane.source == self._source]
        ages = [now - lane.heard for lane in shown if lane.state == "login"]
        if self._silence.is_outage(now):
            limit = self._silence.login_limit
            if self._silence.probe_due(now, sum(age < limit for age in ages)):
                self._log_in(limit)
            return
        going = sum(age < STALE_SECONDS for age in ages)
        self._needed = self._needed or self._lanes.backlog >= WORTH_LANES
        if not self._needed:
            return
        lacking = self._climb.wanted - self._healthy - going
        if self._turned_away < TURNED_AWAY:
            for _ in range(min(lacking, self._silence.logins_allowed(now, going))):
                self._log_in(None)

    def _log_in(self, seconds: float | None) -> None:
        shown = LaneState(self._source, -1, heard=time.monotonic())
        self._state.lanes.append(shown)
        login = asyncio.create_task(self._one_more(shown, seconds))
        self._logins.add(login)
        login.add_done_callback(self._login_ended)

    def _login_ended(self, task: asyncio.Task[None]) -> None:
        self._logins.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._lanes.fail(error)

    async def _one_more(self, shown: LaneState, seconds: float | None) -> None:
        began = time.monotonic()
        opening = open_lane(self._attaching, silence=self._options.give_up)
        try:
            lane = await (opening if seconds is None else within(seconds, opening, Lane.close))
            try:
                self._lanes.add(lane, shown, time.monotonic() - began)
            except CasError:
                await lane.close()
                raise
            self._turned_away = 0
        except (CasError, asyncio.TimeoutError, OSError) as error:
            now = time.monotonic()
            is_late = isinstance(error, asyncio.TimeoutError) or now - began >= REFUSAL_SECONDS
            self._silence.login_failed(now, is_refused=not is_late, jitter=random.random())
            self._refused(error)
        finally:
            if shown.state == "login" and shown in self._state.lanes:
                self._state.lanes.remove(shown)

    def _refused(self, error: Exception) -> None:
        """A login came to nothing: it is tried again, unless it can never work."""
        if isinstance(error, TransportError) and type(error) is TransportError:
            if NO_AGENT not in str(error):
                return
            if not self._healthy:
                gone = AgentGoneError("the agent has ended", where=self._attaching.name)
                self._lanes.fail(gone)
                return
        elif isinstance(error, CasError) and not self._healthy:
            self._lanes.fail(error)
            return
        elif isinstance(error, asyncio.TimeoutError):
            return
        self._turned_away += 1
        if self._turned_away == TURNED_AWAY:
            self._lanes.note(f"no more lanes can be had: {error}")


def _named(members: Sequence[Member]) -> str:
    """`lane 3 is`, `lanes 1, 3, 4 are`."""
    numbers = ", ".join(str(member.number) for member in members)
    return f"lane {numbers} is" if len(members) == 1 else f"lanes {numbers} are"
