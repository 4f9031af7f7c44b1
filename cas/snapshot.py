"""A snapshot: one finished scan of a tier, immutable (docs/format.md, section 4).

The file names the tier's pages by id; pages and recipes lie in packs as chunks do. Its own name is
the SHA-256 of its bytes. It is written after every page and recipe it names is durable, so a
snapshot that exists can be read. It does not promise that the content is here: `cas status` and
`cas verify` say that.
"""

from __future__ import annotations

from dataclasses import dataclass

from cas import wire
from cas.entry import PATH_LIMIT, Problem, check_path, path_order
from cas.errors import FormatError
from cas.ids import DIGEST_SIZE, Digest, as_digest, digest_of

MAGIC = b"CASs\x01"
SNAPSHOT_LIMIT = 256 * 2**20
PAGES_LIMIT = 2**20
PROBLEMS_LIMIT = 100_000
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
    """What a tier was at the end of one scan. Times are ms since 1970; `run` is the run's id."""

    tier: str
    source: str
    host: str
    roots: tuple[bytes, ...]
    run: bytes
    started_ms: int
    finished_ms: int
    chunker: str
    version: str
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
    """The one encoded form of `snapshot`."""
    pages = [[p.id, p.first, p.entries, p.logical, p.chunks] for p in snapshot.pages]
    problems = [[p.path, p.reason, p.hint, p.left_out] for p in snapshot.problems]
    fields = [
        snapshot.tier, snapshot.source, snapshot.host, list(snapshot.roots), snapshot.run,
        snapshot.started_ms, snapshot.finished_ms, snapshot.chunker, snapshot.version,
        pages, problems,
    ]  # fmt: skip
    return MAGIC + wire.encode(fields)


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
        tier, source, host, roots, run, started, finished, chunker, version, pages, problems,
    ) = wire.as_list(body, "snapshot", 11)  # fmt: skip
    run = wire.as_bytes(run, "run", RUN_SIZE)
    if len(run) != RUN_SIZE:
        raise FormatError("a run id must be 16 bytes")
    return Snapshot(
        wire.as_text(tier, "tier"),
        wire.as_text(source, "source"),
        wire.as_text(host, "host"),
        tuple(wire.as_bytes(root, "root", PATH_LIMIT) for root in wire.as_list(roots, "roots")),
        run,
        wire.as_int(started, "time"),
        wire.as_int(finished, "time"),
        wire.as_text(chunker, "chunker"),
        wire.as_text(version, "version"),
        _decode_pages(pages),
        decode_problems(problems),
    )


def _decode_pages(rows: object) -> tuple[PageRef, ...]:
    pages: list[PageRef] = []
    for row in wire.as_list(rows, "pages"):
        id_, first, entries, logical, chunks = wire.as_list(row, "page", 5)
        page = PageRef(
            as_digest(id_),
            check_path(wire.as_bytes(first, "first path", PATH_LIMIT)),
            wire.as_int(entries, "entries", 1),
            wire.as_int(logical, "logical size"),
            wire.as_int(chunks, "chunks"),
        )
        if pages and path_order(pages[-1].first) >= path_order(page.first):
            raise FormatError("a snapshot's pages are not in path order")
        pages.append(page)
    if len(pages) > PAGES_LIMIT:
        raise FormatError(f"a snapshot of {len(pages)} pages", where=f"{DIGEST_SIZE}-byte ids")
    return tuple(pages)


def decode_problems(rows: object) -> tuple[Problem, ...]:
    """Problems from their wire rows `[path, reason, hint, left_out]`; raises FormatError."""
    problems = []
    for row in wire.as_list(rows, "problems")[:PROBLEMS_LIMIT]:
        path, reason, hint, left_out = wire.as_list(row, "problem", 4)
        if type(left_out) is not bool:
            raise FormatError("a problem's last field must be true or false")
        problems.append(
            Problem(
                wire.as_bytes(path, "path", PATH_LIMIT),
                wire.as_text(reason, "reason"),
                wire.as_text(hint, "hint"),
                left_out,
            )
        )
    return tuple(problems)
