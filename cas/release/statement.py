"""A statement: which tiers were looked at, whether all of it is safe here, and what is not.

It is JSON: one object, whose `digest` is the SHA-256 of the same object without it, written with
sorted keys and without spaces in ASCII. That shows that a statement is whole and as it was made; it
does not say by whom.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from cas.errors import FormatError
from cas.jsonnames import name_fields
from cas.release.check import Doubt

VERSION = 1
STATEMENT_LIMIT = 2**30
ASKED, UNASKED = "asked", "not asked"


@dataclass(frozen=True, slots=True)
class TierStatement:
    """One tier: what was held, when it was scanned (ms since 1970), what is not safe. `packed` are
    archives that are held whole, but parts of which could not be taken apart."""

    name: str
    source: str
    host: str
    snapshot: str
    scanned_ms: int
    paths: tuple[bytes, ...]
    names: int
    files: int
    size: int
    doubts: Sequence[Doubt]
    packed: Sequence[Doubt]
    is_asked: bool

    @property
    def is_safe(self) -> bool:
        """Whether all of it may go at the source."""
        return self.is_asked and not self.doubts


def statement(tiers: Sequence[TierStatement], *, made_ms: int, cas: str, host: str) -> bytes:
    """The statement about `tiers`, made now, by this version of cas on this host."""
    fields: dict[str, object] = {
        "statement": "cas release",
        "version": VERSION,
        "made_ms": made_ms,
        "cas": cas,
        "host": host,
        "safe": all(tier.is_safe for tier in tiers),
        "tiers": [_tier(tier) for tier in tiers],
    }
    return _encoded({**fields, "digest": _digest(fields)}) + b"\n"


def check_statement(data: bytes) -> dict[str, object]:
    """The fields of a statement that is as it was made; raises FormatError."""
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or fields.get("statement") != "cas release":
        raise FormatError("this is no statement of cas release")
    said = fields.pop("digest", None)
    if said != _digest(fields):
        raise FormatError("the statement is not as it was made: its digest does not fit")
    return fields


def _tier(tier: TierStatement) -> dict[str, object]:
    return {
        "name": tier.name,
        "source": tier.source,
        "host": tier.host,
        "snapshot": tier.snapshot,
        "scanned_ms": tier.scanned_ms,
        "paths": [name_fields("path", path) for path in tier.paths],
        "names": tier.names,
        "files": tier.files,
        "bytes": tier.size,
        "source_asked": tier.is_asked,
        "safe": tier.is_safe,
        "unsafe": [_doubt(doubt) for doubt in tier.doubts],
        "packed": [_doubt(doubt) for doubt in tier.packed],
    }


def _doubt(doubt: Doubt) -> dict[str, object]:
    return {**name_fields("path", b"/" + doubt.path), "reason": doubt.reason}


def _digest(fields: Mapping[str, object]) -> str:
    return sha256(_encoded(fields)).hexdigest()


def _encoded(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode("ascii")
