"""Read the tiers of a plan: their paths, and rules that can match something there."""

from __future__ import annotations

import posixpath
from collections.abc import Collection

from cas.errors import FormatError
from cas.ignore import MAX_RULES_SIZE, parse_rule
from cas.plan import Tier, did_you_mean
from cas.plan_table import Table, name_fault

TIER_KEYS = {
    "name": 'name = "00-critical-context"',
    "source": 'source = "npu"',
    "paths": 'paths = ["/opt/calrt", "~/llm"]',
    "exclude": 'exclude = ["*.o", "__pycache__/"]',
    "include": 'include = ["/cache/keep.txt"]',
}
MAX_PATH = 4095  # PATH_MAX of Linux without the NUL
_ANCHOR = "rules start at each path of the tier"


def read_tiers(top: Table, sources: Collection[str]) -> tuple[Tier, ...]:
    """The tiers of the plan `top`, which may read from the `sources` of these names."""
    values = top.values.get("tier", [])
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        top.fault("tier", "must be a list of tables")
        return ()
    if not values:
        top.missing("tier")
    tables = [
        Table(top.problems, ("tier", at), value, TIER_KEYS) for at, value in enumerate(values)
    ]
    tiers = tuple(_tier(table, sources) for table in tables)
    seen: set[str] = set()
    for table, tier in zip(tables, tiers, strict=True):
        if tier.name and tier.name in seen:
            table.fault("name", "another tier has this name", "give each its own")
        seen.add(tier.name)
    return tiers


def _tier(table: Table, sources: Collection[str]) -> Tier:
    table.check_keys()
    name = table.required("name")
    if name and (fault := name_fault(name)):
        table.fault("name", fault)
    source = table.required("source")
    if source and source not in sources:
        table.fault("source", f"no source is called {source!r}", did_you_mean(source, sources))
    paths = _paths(table)
    exclude, include = _rules(table, "exclude", paths), _rules(table, "include", paths)
    if include and "exclude" not in table.values:
        only = 'for nothing but these, write exclude = ["*"] too'
        table.fault("include", "only takes back what exclude leaves out", only)
    return Tier(name, source, tuple(path.encode() for path in paths), exclude, include)


def _paths(table: Table) -> list[str]:
    """The tier's paths in their shortest form, each once."""
    paths: list[str] = []
    seen = set()
    for index, text in enumerate(table.strings("paths")):
        if fault := _path_fault(text):
            table.fault("paths", fault, index=index)
        elif (path := _shortest(text)) in seen:
            table.fault("paths", f"{path} stands here twice", "leave one out", index=index)
        else:
            seen.add(path)
            paths.append(path)
    if "paths" not in table.values:
        table.missing("paths")
    elif table.values["paths"] == []:
        table.fault("paths", "names no path")
    return paths


def _path_fault(text: str) -> str:
    if not text.startswith("/") and text != "~" and not text.startswith("~/"):
        return f"{text!r} must be absolute or begin with ~/"
    if ".." in text.split("/"):
        return f"{text!r} must do without .."
    if len(text) > MAX_PATH:
        return f"a path has at most {MAX_PATH} characters"
    return "a path has no NUL" if "\0" in text else ""


def _shortest(path: str) -> str:
    normal = posixpath.normpath(path)
    return normal[1:] if normal.startswith("//") else normal


def _rules(table: Table, key: str, paths: list[str]) -> tuple[str, ...]:
    """The gitignore lines at `key`, each of them able to match something."""
    rules = table.strings(key)
    faults = [(index, _rule_fault(rule, paths)) for index, rule in enumerate(rules)]
    for index, fault in faults:
        if fault:
            table.fault(key, f"{rules[index]!r}: {fault.what}", fault.advice, index=index)
    if sum(map(len, rules)) > MAX_RULES_SIZE:
        table.fault(key, f"more than {MAX_RULES_SIZE} characters", "exclude whole directories")
    return rules


def _rule_fault(rule: str, paths: list[str]) -> FormatError | None:
    try:
        parse_rule(rule)
        _check_anchor(rule, paths)
    except FormatError as error:
        return error
    return None


def _check_anchor(rule: str, paths: list[str]) -> None:
    """Refuse a rule that begins with the path of its tier, or with ~/: it would match nothing."""
    text = rule.removeprefix("!")
    if text.startswith("~/"):
        raise FormatError("no file is called ~", advice=f"{_ANCHOR}: /{text[2:]}")
    for path in paths:
        if path != "/" and (text == path or text.startswith(path + "/")):
            inside = text[len(path) :].strip("/")
            raise FormatError(f"repeats the path {path}", advice=f"{_ANCHOR}: /{inside}")
