"""TOML with the line of every key, for errors that point at it.  [only import of tomllib, tomli]

The TOML parser says nothing of lines once it is done. So the text is gone through a second time,
by a scanner that may trust it: it is valid, so brackets match, strings end, and keys come where
keys belong. A key's path is what leads to its value in the parsed document:

    [[tier]]                   ("tier", 0)              line 1
    name = "a"                 ("tier", 0, "name")      line 2
    exclude = ["*.o",          ("tier", 0, "exclude")   line 3, and ("tier", 0, "exclude", 0)
               "*.pyc"]        ("tier", 0, "exclude", 1)  line 4
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from cas.errors import PlanError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KeyPath: TypeAlias = tuple[str | int, ...]

_TOKEN = re.compile(
    r'''
      (?P<blank>  [ \t\r]+ | \#[^\n]* )
    | (?P<newline> \n )
    | (?P<string> """ (?: \\. | [^\\] )*? "{3,5} | \'\'\' .*? \'{3,5}
                | " (?: \\. | [^"\\] )* " | ' [^']* ' )
    | (?P<mark> [\[\]{}=,.] )
    | (?P<bare> [^\s\[\]{}=,.\#"']+ )
    ''',
    re.VERBOSE | re.DOTALL,
)


def parse_toml(data: bytes, file: str) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    """The document in `data`, and the line of each of its keys, tables and list elements.

    Raises PlanError, which names `file` and the line, when it is not valid TOML.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PlanError("not UTF-8", where=f"{file}:{line}") from None
    try:
        return tomllib.loads(text), _Scanner(list(_tokens(text))).document()
    except tomllib.TOMLDecodeError as error:
        line, what = _place(str(error), text)
        raise PlanError(f"not valid TOML: {what}", where=f"{file}:{line}") from None
    except ValueError as error:  # a number of more digits than int() takes
        raise PlanError(f"not valid TOML: {error}", where=file) from None
    except RecursionError:
        raise PlanError("lists or tables are nested too deep", where=file) from None


def _place(message: str, text: str) -> tuple[int, str]:
    """Line and text of the parser's message, which has the line only in words."""
    said = re.search(r" \(at line (\d+), column (\d+)\)$", message)
    if said:
        return int(said[1]), f"{message[: said.start()]} (column {said[2]})"
    return text.rstrip().count("\n") + 1, message.removesuffix(" (at end of document)")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    line: int


def _tokens(text: str) -> Iterator[_Token]:
    line = 1
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        if kind != "blank":
            yield _Token(kind, match[0], line)
        line += match[0].count("\n")
    yield _Token("end", "", line)


class _Scanner:
    """One pass over the tokens of a valid document."""

    __slots__ = ("_at", "_last_of", "_lines", "_tokens")

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._lines: dict[KeyPath, int] = {}
        self._last_of: dict[KeyPath, int] = {}  # index of the last [[table]] of each name

    def document(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._peek().kind != "end":
            if self._peek().kind == "newline":
                self._take()
            elif self._peek().text == "[":
                table = self._header()
            else:
                self._pair(table)
        return self._lines

    def _header(self) -> KeyPath:
        line = self._take().line
        is_list = self._peek().text == "["
        if is_list:
            self._take()
        *above, name = self._key("]")
        if is_list:
            self._take()
        path: KeyPath = ()
        for part in above:
            path = self._into((*path, part), line)
        path = (*path, name)
        if is_list:
            self._last_of[path] = self._last_of.get(path, -1) + 1
        return self._into(path, line)

    def _into(self, path: KeyPath, line: int) -> KeyPath:
        """`path`, or its last element when it is a list of tables; with the line noted."""
        self._lines.setdefault(path, line)
        if path in self._last_of:
            path = (*path, self._last_of[path])
            self._lines.setdefault(path, line)
        return path

    def _pair(self, table: KeyPath) -> None:
        line = self._peek().line
        path = table
        for part in self._key("="):
            path = (*path, part)
            self._lines.setdefault(path, line)
        self._value(path)

    def _key(self, end: str) -> list[str]:
        """The parts of a dotted key; `end` is taken too."""
        parts = []
        while (token := self._take()).text != end:
            if token.kind == "string":
                parts.append(str(tomllib.loads(f"key = {token.text}")["key"]))
            elif token.kind == "bare":
                parts.append(token.text)
        return parts

    def _value(self, path: KeyPath) -> None:
        if self._peek().text == "[":
            self._take()
            for index in self._elements("]"):
                element: KeyPath = (*path, index)
                self._lines[element] = self._peek().line
                self._value(element)
        elif self._peek().text == "{":
            self._take()
            for _ in self._elements("}"):
                self._pair(path)
        else:
            while self._peek().kind not in ("newline", "end") and self._peek().text not in ",]}":
                self._take()

    def _elements(self, end: str) -> Iterator[int]:
        """Stand at each element in turn, up to `end`, which is taken."""
        index = 0
        while self._peek().text != end:
            if self._peek().kind == "newline" or self._peek().text == ",":
                self._take()
            else:
                yield index
                index += 1
        self._take()

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        self._at += 1
        return self._tokens[self._at - 1]
