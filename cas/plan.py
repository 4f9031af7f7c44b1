"""The plan: what to bring from where, in which order. Values only; `plan_load` reads the file."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from cas.errors import UsageError


@dataclass(frozen=True, slots=True)
class Source:
    """A host that tiers are read from; without `host`, this machine.

    `agent` is the command line that starts the agent there, None for the usual one. `lanes` and
    `level` (of zstd) are None when cas is to choose. `ssh_config` is a path here, absolute. `via`
    is "sftp" for a host without an agent.
    """

    name: str
    host: str | None = None
    agent: str | None = None
    lanes: int | None = None
    level: int | None = None
    ssh_config: str | None = None
    via: str | None = None


@dataclass(frozen=True, slots=True)
class Tier:
    """A selection of paths on a source, with its gitignore rules (see `cas.ignore`).

    `paths` are absolute or begin with `~`, which the source expands; without `.`, `..`, doubled
    or trailing slashes. One may be inside another.
    """

    name: str
    source: str
    paths: tuple[bytes, ...]
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan that holds together: every source and tier that it speaks of is there.

    `path` is the file it was read from, `store` an absolute path here. Tiers stand in the order
    in which they are worth having.
    """

    path: str
    store: str
    sources: Mapping[str, Source]
    tiers: tuple[Tier, ...]
    sets: Mapping[str, tuple[str, ...]]

    def select(self, names: Iterable[str]) -> tuple[Tier, ...]:
        """The tiers that `names` of tiers and sets stand for, each once, in the plan's order.

        No names stand for every tier. Raises UsageError for a name that is neither.
        """
        asked = list(names)
        chosen = {tier for name in asked for tier in self.sets.get(name, (name,))}
        known = {tier.name for tier in self.tiers}
        unknown = [name for name in asked if name not in self.sets and name not in known]
        if unknown:
            raise UsageError(
                " and ".join(f"no tier or set is called {name!r}" for name in unknown),
                where=self.path,
                advice=did_you_mean(unknown[0], [*self.sets, *(t.name for t in self.tiers)]),
            )
        return tuple(tier for tier in self.tiers if not asked or tier.name in chosen)


def did_you_mean(word: str, known: Collection[str]) -> str:
    """Advice for a reader who wrote `word` where one of `known` belongs."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    inside = [name for name in known if word and word.lower() in name.lower()]
    if close or len(inside) == 1:
        return f"did you mean {(close or inside)[0]!r}?"
    return f"there is {', '.join(known)}" if known else "there is none"
