"""The parts without a connection: names of hosts, known_hosts files, keys, the end of a text."""

from pathlib import Path

import pytest

from cas.errors import UsageError
from cas.transport.address import Address, parse_address
from cas.transport.base import TAIL_LIMIT, Tail
from cas.transport.keys import Key, keys_to_offer, locked_keys
from cas.transport.known_hosts import Line, known_hosts_files, known_hosts_lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("npu", Address("npu")),
        ("me@npu", Address("npu", "me")),
        ("me@dom@npu:2222", Address("npu", "me@dom", 2222)),
        ("npu:22", Address("npu", None, 22)),
        ("ssh://me@npu:22/", Address("npu", "me", 22)),
        ("::1", Address("::1")),
        ("me@fe80::1%eth0", Address("fe80::1%eth0", "me")),
        ("[::1]", Address("::1")),
        ("me@[::1]:22", Address("::1", "me", 22)),
    ],
)
def test_names_of_hosts(text: str, expected: Address) -> None:
    assert expected == parse_address(text)


NO_PORTS = ["npu:", "npu:0", "npu:65536", "npu:x", "npu:²", "[::1]22", "[::1]:", "npu:+1"]
NO_HOSTS = ["", "@npu", "me@", ":22", "[]", "[::1", "a b", "a;b", "$(id)", "a\nb", "a'b"]
OPTIONS = ["-oProxyCommand=x", "-x@npu", "`id`@npu"]


@pytest.mark.parametrize("text", NO_PORTS + NO_HOSTS + OPTIONS)
def test_what_is_no_name_of_a_host(text: str) -> None:
    with pytest.raises(UsageError) as failure:
        parse_address(text)
    assert text == failure.value.where


def test_names_of_known_hosts_files() -> None:
    tokens = {"h": "npu", "p": "22"}
    assert [Path("/k/npu-22%h%x"), Path("/etc/all")] == known_hosts_files(
        ["/k/%h-%p%%h%x"], ["/etc/all"], tokens
    )
    assert [] == known_hosts_files([], [], {})
    usual = known_hosts_files(None, None, {})
    assert Path("~/.ssh/known_hosts").expanduser() == usual[0]
    assert Path("/etc/ssh/ssh_known_hosts") in usual


def test_lines_of_known_hosts_files(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"\n# a remark\nnpu ssh-rsa AAAA\n  # another\n")
    two.write_bytes(b"caf\xe9 x y")
    lines = list(known_hosts_lines([tmp_path / "none", tmp_path, one, two]))
    assert [Line(one, 3, "npu ssh-rsa AAAA"), Line(two, 1, "caf\ufffd x y")] == lines
    assert f"{one}:3" == str(lines[0])


def key(name: str, offered: str = "", *, pair: bool = True, locked: bool = False) -> Key[str]:
    public = name.split("/")[1].encode()
    return Key(name, public, offered.encode() or public, name if pair else None, locked)


def test_the_order_of_keys() -> None:
    files = [key("file/c"), key("file/a"), key("file/l", pair=False, locked=True), key("file/n")]
    agent = [key("agent/x"), key("agent/l"), key("agent/a"), key("agent/y")]
    order = ["agent/l", "agent/a", "agent/x", "agent/y", "file/c", "file/n"]
    assert order == [offer.name for offer in keys_to_offer(files, agent, only_named=False)]
    order = ["agent/l", "agent/a", "file/c", "file/n"]
    assert order == [offer.name for offer in keys_to_offer(files, agent, only_named=True)]
    assert [] == locked_keys(files, agent)
    assert ["file/l"] == locked_keys(files, agent[2:])


def test_a_certificate_in_a_file_is_offered_beside_the_agents_key() -> None:
    files = [key("file/a", "certificate of a"), key("file/a")]
    offers = keys_to_offer(files, [key("agent/a")], only_named=True)
    assert [b"a", b"certificate of a"] == [offer.offered for offer in offers]


def test_what_is_kept_of_a_long_text() -> None:
    tail = Tail()
    for number in range(5000):
        tail.add(f"{number}\n".encode())
    lines = tail.text().split("\n")
    assert [str(number) for number in range(5000 - len(lines), 5000)] == lines
    assert TAIL_LIMIT - 10 < len(tail.text()) < TAIL_LIMIT


@pytest.mark.parametrize(
    ("text", "ended", "expected"),
    [
        (b"", "", ""),
        (b"", "exit status 1", "exit status 1"),
        (b"one\r\n\n two", "", "one\n two"),
        (b"one\n", "how", "one\nhow"),
        (b"\x1b[31m\x07\tcaf\xc3\xa9 \xff", "", "\\x1b[31m\\x07\tcafé \\xff"),
        ("\u202e\u2028x".encode(), "", "\\u202e\nx"),
        (b"x" * 2 * TAIL_LIMIT, "", "x" * TAIL_LIMIT),
    ],
)
def test_how_a_text_is_shown(text: bytes, ended: str, expected: str) -> None:
    tail = Tail()
    tail.add(text)
    assert expected == tail.text(ended)
