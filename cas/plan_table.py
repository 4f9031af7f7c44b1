"""Take checked values out of the tables of a plan, and note every fault with its line.

A reader notes what is wrong and gives a harmless value, so that reading goes on to the next fault.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cas.errors import PlanError
from cas.plan import did_you_mean
from cas.toml_lines import KeyPath

MAX_NAME = 100  # names of tiers become parts of file names
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SHOWN = 20  # faults in one error; whoever has more starts with these
_ECHOED = 60  # characters of a value that are worth repeating


class Problems:
    """The faults found so far in `file`."""

    __slots__ = ("_file", "_found", "_lines")

    def __init__(self, file: str, lines: Mapping[KeyPath, int]) -> None:
        self._file = file
        self._lines = lines
        self._found: list[tuple[int, PlanError]] = []

    def add(self, key: KeyPath, what: str, advice: str = "") -> None:
        """Note a fault at `key`, or at the nearest key around it that stands in the file."""
        written = key
        while written and written not in self._lines:
            written = written[:-1]
        line = self._lines.get(written, 1)
        where = f"{self._file}:{line}: {_spoken(key)}" if key else f"{self._file}:{line}"
        self._found.append((line, PlanError(what, where=where, advice=advice)))

    def raise_if_any(self) -> None:
        """Raise the only fault, or one PlanError with a line for each, in the file's order."""
        errors = [error for _, error in sorted(self._found, key=lambda found: found[0])]
        if len(errors) == 1:
            raise errors[0]
        if errors:
            lines = [str(error) for error in errors[:_SHOWN]]
            if len(errors) > _SHOWN:
                lines.append(f"and {len(errors) - _SHOWN} more")
            raise PlanError("\n".join(lines))


def _spoken(key: KeyPath) -> str:
    """`key` as it reads in an error, list elements counted from 1: tier[1].exclude[2]."""
    spoken = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in key)
    return spoken.removeprefix(".")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the plan. `examples` has every key that may stand in it, and a right line."""

    problems: Problems
    path: KeyPath
    values: Mapping[str, Any]
    examples: Mapping[str, str]

    def check_keys(self) -> None:
        """Note every key that is not known here: a misspelt `exclude` could cost gigabytes."""
        for key in self.values.keys() - self.examples.keys():
            self.problems.add((*self.path, key), "unknown key", did_you_mean(key, self.examples))

    def fault(self, key: str, what: str, advice: str = "", *, index: int | None = None) -> None:
        """Note a fault in the value of `key`, or in one element of it."""
        element = () if index is None else (index,)
        advice = advice or f"write {self.examples[key]}"
        self.problems.add((*self.path, key, *element), what, advice)

    def string(self, key: str) -> str | None:
        """The string at `key`; None when there is none."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            self.fault(key, f"must be a string, not {kind_of(value)}")
            return None
        if not value.strip() or not _is_one_line(value):
            self.fault(key, "must be one line of text, and not empty")
            return None
        return value

    def required(self, key: str) -> str:
        """The string at `key`; "" when it is missing or wrong, which is noted."""
        if key not in self.values:
            self.missing(key)
        return self.string(key) or ""

    def missing(self, key: str) -> None:
        self.problems.add(self.path, f"{key} is missing", f"write {self.examples[key]}")

    def strings(self, key: str) -> tuple[str, ...]:
        """The list of strings at `key`; empty when there is none. Elements are not checked."""
        value = self.values.get(key, [])
        if isinstance(value, list) and all(isinstance(element, str) for element in value):
            return tuple(value)
        if isinstance(value, list):
            odd = next(i for i, element in enumerate(value) if not isinstance(element, str))
            self.fault(key, f"must be a string, not {kind_of(value[odd])}", index=odd)
        elif isinstance(value, str) and len(value) <= _ECHOED:
            right = f"write {key} = [{json.dumps(value, ensure_ascii=False)}]"
            self.fault(key, "must be a list of strings, not a string", right)
        else:
            self.fault(key, f"must be a list of strings, not {kind_of(value)}")
        return ()

    def number(self, key: str, highest: int) -> int | None:
        """The number at `key`, from 1 to `highest`; None for "auto" and when there is none."""
        value = self.values.get(key, "auto")
        if value == "auto":
            return None
        if type(value) is not int or not 1 <= value <= highest:
            self.fault(key, f'must be a number from 1 to {highest}, or "auto"')
            return None
        return value


def name_fault(name: str) -> str:
    """What is wrong with `name` for a source, tier or set; "" when nothing is."""
    if not _NAME.fullmatch(name):
        return f"{name!r} is no name: letters, digits and . _ - make one, a letter or digit first"
    return f"a name has at most {MAX_NAME} characters" if len(name) > MAX_NAME else ""


def kind_of(value: object) -> str:
    """What a value of a TOML document is, in words."""
    kinds = {bool: "true or false", str: "a string", list: "a list", dict: "a table"}
    return kinds.get(type(value), "a number" if isinstance(value, int | float) else "a date")


def _is_one_line(text: str) -> bool:
    return not any(ord(character) < 32 or ord(character) == 127 for character in text)
