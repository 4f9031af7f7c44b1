"""What `cas audit` is asked about: a name on the command line becomes what the engine audits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from cas.entry import Content, Entry, Kind, Owner
from cas.errors import NotHeldError, UsageError
from cas.ids import DIGEST_SIZE, Digest
from cas.pack import ID_SIZE
from cas.plan import did_you_mean
from cas.store.store import Store
from cli import output, runs
from cli.inside import Inside, find_inside
from cli.options import parse_target
from cli.selection import no_such_name, snapshot_of

if TYPE_CHECKING:
    from cas.audit.lines import Audit, Line
    from cas.snapshot import Snapshot

HEX = re.compile("[0-9a-f]+")
LEAST_DIGITS = 4
NAMELESS = Owner(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is audited. `kind` is `chunk`, `file`, `tier` or `run`: all that lies below a path of a
    tier is a tier's. `entries` hold the content, `inside` is what is in an archive instead; `id`
    is that of a chunk or run."""

    kind: str
    name: str
    tier: str = ""
    snapshot: Snapshot | None = None
    path: bytes = b""
    entry: Entry | None = None
    inside: Inside | None = None
    id: bytes = b""

    def lines(self, store: Store, audit: Audit) -> Iterator[Line]:
        """An audit of a file or tier. Raises NotHeldError, DamageError."""
        if self.inside is not None:
            return member_lines(self.inside, self.tier, audit)
        if self.entry is not None:
            return audit.entries(self.tier, [self.entry])
        assert self.snapshot is not None
        return audit.entries(self.tier, store.below(self.snapshot, self.path))


def member_lines(inside: Inside, tier: str, audit: Audit) -> Iterator[Line]:
    """An audit of what is in an archive. Raises NotHeldError if there is nothing."""
    from cas.audit.members import is_within
    from cas.inside.members import normal_path

    path = normal_path(inside.path)
    where = audit.tracer.pages.map(inside.content, inside.archive.path)
    found = where.members.chunks_of(path) if path else None
    if found is not None:
        if found[0].kind is Kind.FILE and found[0].size and not found[1]:
            output.say("it is too small for chunks of its own, and lies in the archive's skeleton")
        extents = [where.extent(where.number_of(number)) for number in found[1]]
    else:
        extents = [
            extent
            for extent in where.extents()
            if extent.inner and (not path or extent.inner.startswith(path + b"/"))
        ]
        known = (mark.path for mark in where.members.marks)
        if path and not any(p.startswith(path + b"/") or is_within(p, path) for p in known):
            shown = output.show_path(inside.archive.path + b"!/" + path)
            raise NotHeldError("no such name in the archive", where=shown)
    return audit.extents(tier, inside.archive.path, extents)


def subject_of(store: Store, text: str) -> Subject:
    """What `text` names: a tier or a path of it, or a digest, a chunk or a run by its first hex
    digits. Raises NotHeldError, UsageError where it may be several."""
    tier, colon, _ = text.partition(":")
    if colon or _is_tier(store, tier):
        return _in_tier(store, text)
    if HEX.fullmatch(text) and len(text) >= LEAST_DIGITS:
        return _by_digits(store, text)
    raise NotHeldError(
        "no tier, and no hex digits of a chunk or run",
        where=text,
        advice=did_you_mean(text, store.tiers()),
    )


def _is_tier(store: Store, text: str) -> bool:
    known = store.tiers()
    return text in known or text.rpartition("@")[0] in known


def _in_tier(store: Store, text: str) -> Subject:
    target = parse_target(text)
    snapshot = snapshot_of(store, target.tier)
    if not target.path:
        return Subject("tier", text, snapshot.tier, snapshot)
    inside = find_inside(store, snapshot, target)
    if inside is not None:
        return Subject("file", text, snapshot.tier, snapshot, inside=inside)
    entry = store.find(snapshot, target.path)
    if entry is None:
        raise no_such_name(target)
    if entry.kind is Kind.DIRECTORY:
        return Subject("tier", text, snapshot.tier, snapshot, target.path)
    if entry.content is None:
        raise NotHeldError("has no content that is held", where=text)
    return Subject("file", text, snapshot.tier, snapshot, entry=entry)


def _by_digits(store: Store, text: str) -> Subject:
    if len(text) == 2 * DIGEST_SIZE:
        return _by_digest(store, Digest(bytes.fromhex(text)))
    found = [Subject("run", run.hex(), id=run) for run in runs.known(store, text)]
    if len(text) == 2 * ID_SIZE and not found:
        found = [Subject("run", text, id=bytes.fromhex(text))]
    chunks = (chunk for chunk, _ in store.index.chunks(bytes.fromhex(text[: len(text) // 2 * 2])))
    alike = (chunk for chunk in chunks if chunk.hex().startswith(text))
    found += [Subject("chunk", chunk.hex(), id=chunk) for chunk in islice(alike, 2)]
    if not found:
        raise NotHeldError("no chunk and no run begins so", where=text)
    if len(found) > 1:
        names = ", ".join(f"{one.kind} {one.name}" for one in found[:3])
        raise UsageError(f"may be {names}", where=text, advice="write more of it")
    return found[0]


def _by_digest(store: Store, digest: Digest) -> Subject:
    """A chunk, or a file of several."""
    if store.index.locate(digest) is not None:
        return Subject("chunk", digest.hex(), id=digest)
    parts = store.index.recipes_of(digest)
    if parts is None:
        raise NotHeldError("no chunk and no file has this digest", where=digest.hex())
    recipes = [store.recipe(part) for part in parts]
    size = sum(recipe.size for recipe in recipes)
    count = sum(len(recipe.ids) for recipe in recipes)
    content = Content(size, digest, count, parts)
    entry = Entry(b"", Kind.FILE, NAMELESS, 0, size, content)
    return Subject("file", digest.hex(), entry=entry)
