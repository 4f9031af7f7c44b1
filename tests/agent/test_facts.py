import os
import platform
import pwd
import socket
from pathlib import Path

import pytest

from cas import messages, wire
from cas.agent import facts
from cas.agent.facts import agent_facts


def test_facts_describe_this_process_and_machine() -> None:
    said = dict(agent_facts())
    assert said["host"] == socket.gethostname()
    assert said["user"] == pwd.getpwuid(os.geteuid()).pw_name
    assert said["python"] == platform.python_version()
    assert int(said["cpus"]) >= 1
    assert said["chunking"] in ("compiled", "pure Python")
    assert said["sha256"] in ("in hardware", "in software", "unknown")
    assert len(said) == len(agent_facts())


def test_a_machine_that_tells_nothing_gives_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(facts, "TCP", tmp_path)
    (tmp_path / "tcp_congestion_control").write_bytes(b"")
    assert dict(agent_facts())["congestion control"] == "unknown"
    assert dict(agent_facts())["congestion controls available"] == "unknown"


def test_facts_fit_into_a_greeting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(facts, "TCP", tmp_path)
    (tmp_path / "tcp_available_congestion_control").write_bytes(b"\xff" * 100_000)
    hello = messages.Hello(1, "0", "x", tuple(agent_facts()))
    encoded = messages.encode_message(hello)
    assert len(encoded) < messages.limit_of(messages.Hello.TYPE)
    assert all(wire.as_text(text, "fact", 4096) == text for _, text in hello.facts)
