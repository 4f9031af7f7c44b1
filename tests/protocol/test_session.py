"""The session: every legal conversation, and every message in every state."""

from __future__ import annotations

import pytest

from cas.errors import PeerError, UsageError
from cas.messages import (
    FROM_AGENT,
    FROM_CLIENT,
    HEADER,
    MARKER,
    Bye,
    Hello,
    Message,
    encode_message,
)
from cas.session import NOISE_LIMIT, Role, Session, State
from tests.protocol.examples import EXAMPLES, HELLO

AGENT_SAYS = [m for m in EXAMPLES if isinstance(m, FROM_AGENT) and not isinstance(m, Hello)]
CLIENT_SAYS = [m for m in EXAMPLES if isinstance(m, FROM_CLIENT) and not isinstance(m, Hello)]


def _open(role: Role) -> Session:
    session = Session(role)
    if role is Role.CLIENT:
        session.receive(MARKER + encode_message(HELLO))
        assert HELLO == session.next_message()
        session.send(HELLO)
    else:
        session.greeting(HELLO)
        session.receive(encode_message(HELLO))
        assert HELLO == session.next_message()
    assert session.state is State.OPEN
    return session


def _drain(session: Session) -> list[Message]:
    messages = []
    while (message := session.next_message()) is not None:
        messages.append(message)
    return messages


@pytest.mark.parametrize("step", [1, 7, 1000, 10**9])
def test_a_conversation_arrives_whole_however_it_is_cut(step: int) -> None:
    stream = b"Welcome!\r\n" + MARKER + b"".join(map(encode_message, [HELLO, *AGENT_SAYS]))
    session = Session(Role.CLIENT)
    got = []
    for at in range(0, len(stream), step):
        session.receive(stream[at : at + step])
        got += _drain(session)
    assert [HELLO, *AGENT_SAYS] == got
    assert session.noise == b"Welcome!\r\n"


@pytest.mark.parametrize("message", CLIENT_SAYS, ids=lambda m: type(m).__name__)
def test_the_agent_takes_what_a_client_says_and_refuses_it_before_hello(message: Message) -> None:
    session = _open(Role.AGENT)
    session.receive(encode_message(message))
    assert message == session.next_message()
    early = Session(Role.AGENT)
    early.receive(encode_message(message))
    with pytest.raises(PeerError):
        early.next_message()
    assert early.state is State.CLOSED


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda m: type(m).__name__)
def test_what_only_the_other_end_says_is_refused(message: Message) -> None:
    for role, says in ((Role.CLIENT, FROM_AGENT), (Role.AGENT, FROM_CLIENT)):
        session = _open(role)
        session.receive(encode_message(message))
        if isinstance(message, says) and not isinstance(message, Hello):
            assert message == session.next_message()
        else:
            with pytest.raises(PeerError):
                session.next_message()
            assert session.state is State.CLOSED


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda m: type(m).__name__)
def test_nothing_is_sent_that_may_not_be(message: Message) -> None:
    for role, says in ((Role.CLIENT, FROM_CLIENT), (Role.AGENT, FROM_AGENT)):
        if not isinstance(message, Hello):
            with pytest.raises(UsageError):
                Session(role).send(message)
        session = _open(role)
        if isinstance(message, says) and not isinstance(message, Hello):
            assert encode_message(message) == session.send(message)
        else:
            with pytest.raises(UsageError):
                session.send(message)


def test_bye_ends_the_session_at_both_ends() -> None:
    client, agent = _open(Role.CLIENT), _open(Role.AGENT)
    agent.receive(client.send(Bye()))
    assert agent.next_message() == Bye()
    assert (client.state, agent.state) == (State.CLOSED, State.CLOSED)


def test_the_end_of_the_stream_closes_after_what_had_arrived() -> None:
    session = _open(Role.AGENT)
    session.receive(encode_message(CLIENT_SAYS[0]) + encode_message(CLIENT_SAYS[1])[:-1])
    session.receive(b"")
    assert CLIENT_SAYS[0] == session.next_message()
    assert session.next_message() is None
    assert session.state is State.CLOSED


def test_noise_without_a_marker_is_given_up_and_shown() -> None:
    session = Session(Role.CLIENT)
    session.receive(b"command not found\n" + b"x" * NOISE_LIMIT)
    with pytest.raises(PeerError, match="command not found"):
        session.next_message()


def test_the_noise_of_a_far_end_that_ended_is_kept() -> None:
    session = Session(Role.CLIENT)
    session.receive(b"sh: 1: cas: not found\n")
    session.receive(b"")
    assert session.next_message() is None
    assert session.state is State.CLOSED
    assert session.noise == b"sh: 1: cas: not found\n"


@pytest.mark.parametrize(("size", "kind"), [(2**32 - 1, 3), (70_000, 12), (0, 99), (70_000, 9)])
def test_a_length_over_its_limit_is_refused_from_the_header_alone(size: int, kind: int) -> None:
    session = _open(Role.CLIENT)
    session.receive(HEADER.pack(size, kind, 0, 0))
    with pytest.raises(PeerError):
        session.next_message()
    assert session.state is State.CLOSED
