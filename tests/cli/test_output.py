import base64
import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cas.errors import CasError, StoreMissing
from cli import output


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (b"plain", "plain"),
        ("größe".encode(), "größe"),
        ("模型".encode(), "模型"),
        (b"a\nb", "a\\nb"),
        (b"\x1b[2J", "\\x1b[2J"),
        (b"\xff\xfe", "\\xff\\xfe"),
        ("\u202e".encode(), "\\u202e"),
        ("\x9b".encode(), "\\u009b"),
        (b"back\\slash", "back\\\\slash"),
        (b"", ""),
    ],
)
def test_names_are_shown_on_one_line(name: bytes, expected: str) -> None:
    assert output.show(name) == expected


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_no_two_names_look_alike_and_none_drives_a_terminal(one: bytes, other: bytes) -> None:
    assert output.show(one).isprintable()
    assert (output.show(one) == output.show(other)) == (one == other)


@given(st.binary(max_size=40))
def test_json_loses_no_name(name: bytes) -> None:
    fields = json.loads(json.dumps(output.name_fields("path", name)))
    raw = fields.get("path_b64")
    assert name == (base64.b64decode(raw) if raw is not None else fields["path"].encode())
    assert (raw is None) == _is_utf8(name)


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (999_499, "999 kB"),
        (999_500, "1.00 MB"),
        (21_300_000, "21.3 MB"),
        (436_000_000, "436 MB"),
        (18_200_000_000, "18.2 GB"),
        (2**80, "1208926 EB"),
    ],
)
def test_sizes(count: int, expected: str) -> None:
    assert output.size(count) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-1, "0 s"),
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (200, "3 min 20 s"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (273_600, "3 d 4 h"),
    ],
)
def test_durations(seconds: float, expected: str) -> None:
    assert output.duration(seconds) == expected


def test_counts() -> None:
    assert output.plural(1, "entry", "entries") == "1 entry"
    assert output.plural(12345, "name") == "12,345 names"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colours_follow_the_environment(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: bool
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert output.has_colours(_Terminal()) == expected
    assert not output.has_colours(io.StringIO())


def test_an_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    output.say_error(StoreMissing("no store", where="/a\x1b[2J", advice="make one"))
    said = capsys.readouterr()
    assert said.err == "cas: /a\\x1b[2J: no store (make one)\n"
    assert said.out == ""


def test_an_error_of_several_faults_keeps_their_lines(capsys: pytest.CaptureFixture[str]) -> None:
    output.say_error(CasError("one\ntwo"))
    assert capsys.readouterr().err == "cas: one\ntwo\n"


def test_json_is_ascii_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    output.json_line({"a": "ü\n\x9b"})
    said = capsys.readouterr().out
    assert said.isascii()
    assert said.count("\n") == 1
    assert json.loads(said) == {"a": "ü\n\x9b"}


def test_a_poor_locale_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    output.survive_any_locale()
    output.result("größe")
    sys.stdout.flush()
    assert raw.getvalue() == b"gr\\xf6\\xdfe\n"
