"""What is made of a link's measurements."""

from __future__ import annotations

import pytest

from cas.transport.measure import Link, Rate
from cas.transport.tcpinfo import TcpState
from cli.diagnosis import bbr_command
from cli.link_diagnosis import judge_link, mathis


def _link(one: float = 1e6, four: float = 1.1e6, again: int = 0, **changed: object) -> Link:
    """A link by which so much comes over one connection and over four."""
    fields: dict[str, object] = {
        "trips": [0.2, 0.21, 0.19],
        "large": 0.3,
        "ours": TcpState(40, 0, 0.2, 0.19, 1448, 1500),
        "sent": TcpState(10_000, again, 0.2, 0.19, 1448, 1500, "cubic"),
        "rates": [Rate(1, round(5 * one), 5.0), Rate(4, round(5 * four), 5.0)],
        "control": "cubic",
        "available": "reno cubic bbr",
        "compression": "none",
        **changed,
    }
    return Link(1.5, **fields)  # type: ignore[arg-type]


def _advice(link: Link) -> dict[str, str]:
    return {found.name: found.advice for found in judge_link(link) if found.advice}


def _text(link: Link, name: str) -> str:
    [text] = [found.text for found in judge_link(link) if found.name == name]
    return text


def test_a_good_link_needs_no_advice() -> None:
    assert {} == _advice(_link())
    assert "one fills the link" in _text(_link(), "rate, 4 connections")
    assert "190 ms, median 200 ms, at most 210 ms (TCP: 200 ms)" == _text(
        _link(), "link round trip"
    )
    assert "0 % sent again (0 of 10,000 segments)" == _text(_link(), "loss")


def test_loss_that_holds_each_connection_back() -> None:
    link = _link(30e3, 120e3, 500)
    advice = _advice(link)
    assert {"rate, 4 connections", "loss"} == set(advice)
    assert "12 lanes should bring about 360 kB/s" in advice["rate, 4 connections"]
    assert "at least the 120 kB/s that 4 bring now, 4 times as much" in advice["loss"]
    assert "`sysctl -w net.core.default_qdisc=fq" in advice["loss"]
    assert "5 % sent again (500 of 10,000 segments); cubic makes some 41.6 kB/s" in _text(
        link, "loss"
    )
    assert "4.0 times as much" in _text(link, "rate, 4 connections")


def test_loss_where_the_link_is_full_asks_for_nothing() -> None:
    assert {} == _advice(_link(1e6, 1.05e6, 100))


def test_with_bbr_loss_is_only_told() -> None:
    sent = TcpState(10_000, 500, 0.2, 0.2, 1448, 1500, "bbr")
    assert "loss" not in _advice(_link(30e3, 120e3, sent=sent, control="bbr"))


def test_few_segments_tell_no_loss() -> None:
    assert "too few" in _text(_link(sent=TcpState(50, 0)), "loss")


def test_what_the_whole_host_sent_is_said_to_be_that() -> None:
    link = _link(30e3, 120e3, sent=TcpState(10_000, 500), exact=False)
    assert "all that the host sent meanwhile" in _text(link, "loss")
    assert "cubic" in _text(link, "loss")


def test_nothing_that_came_is_no_division_by_zero() -> None:
    assert "0 B/s" in _text(_link(0, 0, 500), "rate, 1 connection")


@pytest.mark.parametrize(
    ("changed", "name", "said"),
    [
        ({"start": 0.9}, "login shell", "~/.bashrc"),
        ({"large": None, "rates": [], "sent": None}, "large packets", "mtu 1280"),
        ({"trouble": "refused", "rates": [], "sent": None}, "rate", "try again"),
        ({"compression": "zlib@openssh.com"}, "ssh compression", "costs more"),
    ],
)
def test_what_else_can_be_wrong(changed: dict[str, object], name: str, said: str) -> None:
    [(found, advice)] = _advice(_link(**changed)).items()  # type: ignore[arg-type]
    assert name == found
    assert said in advice


def test_quick_leaves_out_what_was_not_measured() -> None:
    names = [found.name for found in judge_link(_link(rates=[], sent=None))]
    assert "loss" not in names
    assert not [name for name in names if name.startswith("rate")]


def test_bbr_has_to_be_loaded_first_where_it_is_not() -> None:
    assert bbr_command("reno cubic").startswith("`modprobe tcp_bbr; sysctl -w ")
    assert bbr_command("reno cubic bbr").startswith("`sysctl -w ")


def test_mathis() -> None:
    """1448 bytes, 200 ms, 5 %: 39.5 kB/s."""
    assert 39_500 == pytest.approx(mathis(1448, 0.2, 0.05), rel=0.01)
