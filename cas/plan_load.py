"""Read a plan file, or say everything that is wrong with it at once.

`docs/plan.md` describes the keys. Whatever can be known to be a mistake without asking the source
is one here, for a plan is written once and then trusted with days of transfer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

from cas.errors import PlanError
from cas.plan import Plan, Source, did_you_mean
from cas.plan_table import Problems, Table, kind_of, name_fault
from cas.plan_tiers import read_tiers
from cas.toml_lines import parse_toml

PLAN_NAME = "plan.toml"
MAX_PLAN_SIZE = 1024 * 1024
MAX_LANES = 64
WAYS = ("sftp",)
MAX_LEVEL = 22  # zstd's highest

# Every key there is, with a line that would be right.
PLAN_KEYS = {
    "store": 'store = "~/archive"',
    "source": "[source.NAME]",
    "tier": "[[tier]]",
    "sets": "[sets]",
}
SOURCE_KEYS = {
    "host": 'host = "npu"',
    "agent": 'agent = "podman unshare cas serve"',
    "via": 'via = "sftp"',
    "lanes": "lanes = 8",
    "level": "level = 19",
    "ssh_config": 'ssh_config = "~/.ssh/config"',
}


def example_plan() -> str:
    """The commented plan that a new user starts from; it loads as it stands."""
    return resources.files("cas").joinpath("plan_example.toml").read_text("utf-8")


def find_plan(start: str) -> str:
    """The path of plan.toml in the directory `start` or the nearest one above that has it.

    Raises PlanError when none has.
    """
    directory = os.path.abspath(start)
    while not os.path.isfile(os.path.join(directory, PLAN_NAME)):
        above = os.path.dirname(directory)
        if above == directory:
            what = f"no {PLAN_NAME} here or above"
            raise PlanError(what, where=start, advice="cas init writes one")
        directory = above
    return os.path.join(directory, PLAN_NAME)


def load_plan(path: str) -> Plan:
    """The plan in the file `path`, checked.

    Raises PlanError (exit code 2) with one line for each fault: file, line, key, what is right.
    """
    document, lines = parse_toml(_read(path), path)
    problems = Problems(path, lines)
    plan = _plan(Table(problems, (), document, PLAN_KEYS), path)
    problems.raise_if_any()
    return plan


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_PLAN_SIZE + 1)
    except FileNotFoundError:
        raise PlanError("no such plan", where=path, advice="cas init writes one") from None
    except OSError as error:
        raise PlanError(f"cannot be read: {error.strerror}", where=path) from None
    if len(data) > MAX_PLAN_SIZE:
        raise PlanError(f"over {MAX_PLAN_SIZE} bytes, too large for a plan", where=path)
    return data


def _plan(top: Table, path: str) -> Plan:
    top.check_keys()
    directory = os.path.dirname(os.path.abspath(path))
    if "store" not in top.values:
        top.missing("store")
    named = _named(top, "source")
    sources = {name: _source(top.problems, name, named[name], directory) for name in named}
    tiers = read_tiers(top, sources)
    return Plan(
        path=path,
        store=_local_path(top, "store", directory) or "",
        sources=sources,
        tiers=tiers,
        sets=_sets(top, [tier.name for tier in tiers]),
    )


def _local_path(table: Table, key: str, directory: str) -> str | None:
    """The path on this machine at `key`, absolute; a relative one starts at the plan."""
    text = table.string(key)
    if text is None:
        return None
    expanded = os.path.expanduser(text)
    if expanded.startswith("~"):
        table.fault(key, f"there is no home directory for {text.partition('/')[0]}")
    return os.path.normpath(os.path.join(directory, expanded))


def _named(top: Table, key: str) -> Mapping[str, Any]:
    """The table at `key` of the plan, whose keys are names that the user chose."""
    values = top.values.get(key, {})
    if not isinstance(values, dict):
        top.fault(key, f"must be a table, not {kind_of(values)}")
        return {}
    for name in values:
        if fault := name_fault(name):
            top.problems.add((key, name), fault)
    return values


def _source(problems: Problems, name: str, values: object, directory: str) -> Source:
    if not isinstance(values, dict):
        what = f"must be a table, not {kind_of(values)}"
        problems.add(("source", name), what, f"write {PLAN_KEYS['source']}")
        return Source(name)
    table = Table(problems, ("source", name), values, SOURCE_KEYS)
    table.check_keys()
    host = table.string("host")
    if host is not None and (host.startswith("-") or re.search(r"\s", host)):
        table.fault("host", f"{host!r} is no host")
    if host is None and "ssh_config" in values and "host" not in values:
        table.fault("ssh_config", "a source without host is this machine", "add host, or leave it")
    return Source(
        name=name,
        host=host,
        agent=table.string("agent"),
        via=_via(table, host),
        lanes=table.number("lanes", MAX_LANES),
        level=table.number("level", MAX_LEVEL),
        ssh_config=_local_path(table, "ssh_config", directory),
    )


def _via(table: Table, host: str | None) -> str | None:
    via = table.string("via")
    if via is not None and via not in WAYS:
        table.fault("via", f"no way is called {via!r}", f"write {SOURCE_KEYS['via']}")
    elif via is not None and host is None and "host" not in table.values:
        table.fault("via", "a source without host is this machine", "add host, or leave it")
    if via is not None and "agent" in table.values:
        table.fault("agent", f"there is no agent over there via {via}", "leave one of them out")
    return via


def _sets(top: Table, tiers: list[str]) -> dict[str, tuple[str, ...]]:
    values = _named(top, "sets")
    examples = {name: f'{name} = ["{tiers[0] if tiers else "TIER"}"]' for name in values}
    table = Table(top.problems, ("sets",), values, examples)
    for name in values:
        if name in tiers:
            table.fault(name, "a tier has this name too", "give the set another")
        if values[name] == []:
            table.fault(name, "names no tier")
    return {name: _members(table, name, tiers) for name in values}


def _members(table: Table, name: str, tiers: list[str]) -> tuple[str, ...]:
    members = table.strings(name)
    for index, member in enumerate(members):
        if member in tiers:
            continue
        if member in table.values:
            what, advice = "a set holds tiers, not other sets", "name its tiers"
        else:
            what, advice = f"no tier is called {member!r}", did_you_mean(member, tiers)
        table.fault(name, what, advice, index=index)
    return members
