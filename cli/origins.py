"""A source or tier on the command line, as an origin of chunks."""

from __future__ import annotations

from cas.audit.lines import Origins
from cas.errors import NotHeldError
from cas.plan import did_you_mean
from cas.store.store import Store


def origins_named(store: Store, name: str) -> tuple[Origins, list[str]]:
    """The origins that a tier or source stands for, the tier going first, and the tiers that have
    nothing to do with it. Raises NotHeldError for a name that is neither."""
    sources = {tier: store.latest(tier)[1].source for tier in store.tiers()}
    if name in sources:
        return Origins(tier=name), [tier for tier in sources if tier != name]
    if name in sources.values():
        others = [tier for tier, source in sources.items() if source != name]
        return Origins(source=name), others
    known = [*sources, *sources.values()]
    raise NotHeldError(
        "no source and no tier that is held", where=name, advice=did_you_mean(name, known)
    )
