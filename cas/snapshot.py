"""A snapshot: one finished scan of a tier, immutable (docs/format.md, section 4).

The file names the tier's pages by id; pages and recipes lie in packs as chunks do. Its own name is
the SHA-256 of its bytes. It is written after every page and recipe it names is durable, so a
snapshot that exists can be read. It does not promise that the content is here: `cas status` and
`cas verify` say that.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from cas import wire
from cas.entry import PATH_LIMIT, Problem, check_path, path_order
from cas.errors import FormatError, LimitError
from cas.ids import Digest, as_digest, digest_of
from cas.page import ENTRIES_LIMIT

MAGIC = b"CASs\x01"
SNAPSHOT_LIMIT = 64 * 2**20  # bytes, encoded
PAGES_LIMIT = 2**18  # some 200 million entries
PROBLEMS_LIMIT = 100_000
TEXT_LIMIT = 4096  # characters
RUN_SIZE = 16


@dataclass(frozen=True, slots=True)
class PageRef:
    """One page: its id, its first path (so that a path is found by bisection), how many entries
    it has, their bytes of content, and how long its chunk space is."""

    id: Digest
    first: bytes
    entries: int
    logical: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a tier was at the end of one scan. Times are ms since 1970; `run` is the run's id;
    `unique` is the bytes of its distinct chunks."""

    tier: str
    source: str
    host: str
    roots: tuple[bytes, ...]
    run: bytes
    started_ms: int
    finished_ms: int
    chunker: str
    version: str
    unique: int
    pages: tuple[PageRef, ...]
    problems: tuple[Problem, ...]

    @property
    def entries(self) -> int:
        """How many names the tier has."""
        return sum(page.entries for page in self.pages)

    @property
    def logical(self) -> int:
        """Bytes of content as the source would count them, duplicates included."""
        return sum(page.logical for page in self.pages)


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """The one encoded form of `snapshot`; raises LimitError for one that no reader would accept."""
    if len(snapshot.pages) > PAGES_LIMIT or len(snapshot.problems) > PROBLEMS_LIMIT:
        raise LimitError("a snapshot of too many pages or problems", where=snapshot.tier)
    pages = [[p.id, p.first, p.entries, p.logical, p.chunks] for p in snapshot.pages]
    problems = [[p.path, p.reason, p.hint, p.left_out] for p in snapshot.problems]
    fields = [
        snapshot.tier, snapshot.source, snapshot.host, list(snapshot.roots), snapshot.run,
        snapshot.started_ms, snapshot.finished_ms, snapshot.chunker, snapshot.version,
        snapshot.unique, pages, problems,
    ]  # fmt: skip
    encoded = MAGIC + wire.encode(fields)
    if len(encoded) > SNAPSHOT_LIMIT:
        raise LimitError(f"a snapshot of {len(encoded)} bytes", where=snapshot.tier)
    return encoded


def snapshot_id(encoded: bytes) -> Digest:
    """The id of a snapshot, from its encoded form."""
    return digest_of(encoded)


def decode_snapshot(data: bytes) -> Snapshot:
    """The snapshot in `data`; raises FormatError (LimitError) unless it is wholly valid."""
    if data[: len(MAGIC)] != MAGIC:
        raise FormatError(
            "not a snapshot of this version", advice="a newer cas may have written it"
        )
    body = wire.decode(memoryview(data)[len(MAGIC) :], limit=SNAPSHOT_LIMIT, what="snapshot")
    (
        tier, source, host, roots, run, started, finished, chunker, version, unique, pages,
        problems,
    ) = wire.as_list(body, "snapshot", 12)  # fmt: skip
    return Snapshot(
        wire.as_text(tier, "tier", TEXT_LIMIT),
        wire.as_text(source, "source", TEXT_LIMIT),
        wire.as_text(host, "host", TEXT_LIMIT),
        tuple(wire.as_name(root, "root", PATH_LIMIT) for root in wire.as_list(roots, "roots")),
        wire.as_fixed(run, "run", RUN_SIZE),
        wire.as_int(started, "time"),
        wire.as_int(finished, "time"),
        wire.as_text(chunker, "chunker", TEXT_LIMIT),
        wire.as_text(version, "version", TEXT_LIMIT),
        wire.as_int(unique, "unique size"),
        _decode_pages(pages),
        decode_problems(problems),
    )


def _decode_pages(value: object) -> tuple[PageRef, ...]:
    rows = wire.as_list(value, "pages")
    if len(rows) > PAGES_LIMIT:
        raise LimitError(f"a snapshot of {len(rows)} pages is over the limit of {PAGES_LIMIT}")
    pages = tuple(_decode_page_ref(row) for row in rows)
    if any(path_order(one.first) >= path_order(other.first) for one, other in pairwise(pages)):
        raise FormatError("a snapshot's pages are not in path order")
    return pages


def _decode_page_ref(row: object) -> PageRef:
    id_, first, entries, logical, chunks = wire.as_list(row, "page", 5)
    return PageRef(
        as_digest(id_),
        check_path(wire.as_bytes(first, "first path", PATH_LIMIT)),
        wire.as_int(entries, "entries", 1, ENTRIES_LIMIT),
        wire.as_int(logical, "logical size"),
        wire.as_int(chunks, "chunks"),
    )


def decode_problems(value: object) -> tuple[Problem, ...]:
    """Problems from their wire rows `[path, reason, hint, left_out]`; raises FormatError
    (LimitError past `PROBLEMS_LIMIT`, which whoever collects them must keep)."""
    rows = wire.as_list(value, "problems")
    if len(rows) > PROBLEMS_LIMIT:
        raise LimitError(f"{len(rows)} problems are over the limit of {PROBLEMS_LIMIT}")
    return tuple(_decode_problem(row) for row in rows)


def _decode_problem(row: object) -> Problem:
    path, reason, hint, left_out = wire.as_list(row, "problem", 4)
    if type(left_out) is not bool:
        raise FormatError("a problem's last field must be true or false")
    return Problem(
        wire.as_bytes(path, "path", PATH_LIMIT),
        wire.as_text(reason, "reason", TEXT_LIMIT),
        wire.as_text(hint, "hint", TEXT_LIMIT),
        left_out,
    )
