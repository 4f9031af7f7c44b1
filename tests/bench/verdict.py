"""What a benchmark says: claims, each with its number, its limit and whether it holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Verdict:
    """One claim. `value` must not pass `limit`, downwards if `at_least`; without a limit it is for
    information. `detail` is for people, `facts` for programs."""

    claim: str
    value: float
    limit: float | None
    unit: str = "x"
    at_least: bool = False
    detail: str = ""
    facts: dict[str, object] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the claim holds."""
        if self.limit is None:
            return True
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def line(self) -> str:
        """The claim on one line."""
        if self.limit is None:
            end = "(for information)"
        else:
            sign = ">=" if self.at_least else "<="
            end = f"(limit {sign} {self.limit:g}) {'ok' if self.ok else 'NOT MET'}"
        detail = f"   {self.detail}" if self.detail else ""
        return f"{self.claim}: {self.value:.3g} {self.unit} {end}{detail}"

    def as_json(self) -> dict[str, object]:
        """The claim for a program."""
        return {
            "claim": self.claim,
            "value": self.value,
            "limit": self.limit,
            "unit": self.unit,
            "at_least": self.at_least,
            "ok": self.ok,
            "detail": self.detail,
            **self.facts,
        }


class Skipped(Exception):
    """A benchmark cannot run here; says why."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a benchmark is given: its own empty directory `work`, where the corpus is or is to be
    made, where a large zoo is if there is one, and whether small sizes will do, for a look at
    whether everything works."""

    work: Path
    corpus: Path
    zoo: Path
    quick: bool

    @property
    def rounds(self) -> int:
        """How often each contestant runs."""
        return 2 if self.quick else 3


class Benchmark(Protocol):
    """A module of this directory that `run.py` knows by name."""

    def run(self, setting: Setting) -> list[Verdict]:
        """Measure; raises Skipped, CommandFailed."""
