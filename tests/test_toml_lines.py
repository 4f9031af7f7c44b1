"""The lines of keys in TOML, and what is said of text that is no TOML."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cas.errors import PlanError
from cas.toml_lines import KeyPath, parse_toml

# Every scalar is the number of its own line.
NUMBERED = r'''
a = 2
"quoted # [key]" = 3
'b.c'.d."\u0065" = 4
[table] # [not] = a
x.y = 6
x.z = [7, 7,
  8, # ] , 99
  [9, [
  10]],
  { p = 11, "q" = [11] }, 11,]
[ table . "deeper" ]
one = """13""" # = """
two = """14\
"""
skip = """\"""
a = 1
[table]
\\"""
three = 20
four = \'\'\'21\'\'\'
five = \'\'\'
[[list]]
\'\'\'\'\'
six = "25" # "
seven = { a = { b = [26,
27], c.d = 27 }, e = 27 }
[[list]]
n = 29
[[list.inner]]
n = 31
[[list.inner]]
n = 33
[list.inner.table]
n = 35
[[list]]
n = 37
[[list.inner]]
n = 39
date = 1979-05-27 07:32:00
n2 = 41
float = 42.0
'''.replace(r"\'", "'")


def _numbers(value: Any, path: KeyPath = ()) -> dict[KeyPath, int]:
    if isinstance(value, dict):
        parts = [_numbers(inner, (*path, key)) for key, inner in value.items()]
    elif isinstance(value, list):
        parts = [_numbers(inner, (*path, index)) for index, inner in enumerate(value)]
    else:
        number = str(value).removesuffix(".0")
        return {path: int(number)} if number.isdigit() else {}
    return {place: line for part in parts for place, line in part.items()}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_key_and_element_has_its_line(newline: str) -> None:
    document, lines = parse_toml(NUMBERED.replace("\n", newline).encode(), "x")
    numbers = _numbers(document)
    assert 29 == len(numbers)
    assert numbers == {path: lines[path] for path in numbers}


def test_tables_have_the_line_of_their_first_header() -> None:
    _, lines = parse_toml(NUMBERED.encode(), "x")
    assert 5 == lines["table",]
    assert 12 == lines["table", "deeper"]
    assert 28 == lines["list",] == lines["list", 0]
    assert 30 == lines["list", 0, "inner"] == lines["list", 0, "inner", 0]
    assert 32 == lines["list", 0, "inner", 1]
    assert 34 == lines["list", 0, "inner", 1, "table"]
    assert 36 == lines["list", 1]
    assert 38 == lines["list", 1, "inner", 0]


@settings(max_examples=300)
@given(st.binary() | st.text("[]{}=,.\"'#\\\n a1").map(str.encode))
def test_any_bytes_are_a_document_or_our_error(data: bytes) -> None:
    try:
        document, lines = parse_toml(data, "x")
    except PlanError:
        return
    assert set(_paths(document)) <= set(lines) | {()}


def _paths(value: Any, path: KeyPath = ()) -> list[KeyPath]:
    if isinstance(value, dict):
        return [path, *(p for key in value for p in _paths(value[key], (*path, key)))]
    if isinstance(value, list):
        return [path, *(p for i, inner in enumerate(value) for p in _paths(inner, (*path, i)))]
    return [path]
