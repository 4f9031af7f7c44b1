"""A bundle: entries of tiers as one `.tar.zst`, for a place that has tar and no cas.

Content comes out of the store chunk by chunk, each hashed, and each file as a whole too, while it
is compressed: what is wrong ends the bundle before it has a name. What is left out is known before
its header is written (content that has not come, sockets), and listed. The same entries, level and
version of zstd always give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from cas import tarstream
from cas.archive import AnyRecipe
from cas.entry import HOLE_DIGEST, INCONSISTENT, Content, Entry, Kind, Problem, check_path
from cas.errors import CasError, LimitError, NotHeldError
from cas.frame import stream_compressor
from cas.interfaces import ContentSource
from cas.rebuild.run import block_size, content_blocks, content_recipes, plain
from cas.recipe import Hole
from cas.tarstream import Region, SparseMap

LOCATED_AT_ONCE = 4096  # chunks

LinkKey = tuple[object, ...]


class Sink(Protocol):
    """Where the compressed bytes go."""

    def write(self, data: bytes, /) -> object: ...


class Progress(Protocol):
    """Told of bytes of content and of files as they are done."""

    def __call__(self, size: int, files: int, /) -> object: ...


@dataclass(slots=True)
class BundleReport:
    """What a bundle holds: `names` of all kinds, of them `files` with `bytes` of content, each
    once however many names it has. `missing` counts the problems of content not held."""

    names: int = 0
    files: int = 0
    bytes: int = 0
    missing: int = 0
    problems: list[Problem] = field(default_factory=list)


def write_bundle(
    entries: Iterable[Entry], source: ContentSource, out: Sink, *, level: int, progress: Progress
) -> BundleReport:
    """Write `entries`, in path order and each path once, as a compressed archive to `out`.

    Raises DamageError, NotHeldError, FormatError when content is not what it should be, and what
    `out` raises: what was written by then is worth nothing.
    """
    return _Bundle(source, out, level, progress).run(entries)


class _Bundle:
    def __init__(self, source: ContentSource, out: Sink, level: int, progress: Progress) -> None:
        self._source = source
        self._out = out
        self._progress = progress
        self._stream = stream_compressor(level)
        self._size = 0
        self._first_names: dict[LinkKey, bytes] = {}
        self._report = BundleReport()

    def run(self, entries: Iterable[Entry]) -> BundleReport:
        for entry in entries:
            self._add(entry)
        self._write(tarstream.archive_end(self._size))
        self._out.write(self._stream.flush())
        return self._report

    def _write(self, data: bytes) -> None:
        self._size += len(data)
        compressed = self._stream.compress(data)
        if compressed:
            self._out.write(compressed)

    def _add(self, entry: Entry) -> None:
        check_path(entry.path)
        key = (entry.link, entry.kind, entry.content, entry.target, entry.owner, entry.mtime_ns)
        first = self._first_names.get(key) if entry.link else None
        if first is not None:
            self._write(tarstream.header(entry, link_to=first))
            self._report.names += 1
            return
        reason = _why_left_out(entry, self._source)
        if reason is not None:
            self._report.problems.append(reason)
            self._report.missing += entry.content is not None
            return
        try:
            self._member(entry)
        except LimitError as error:
            self._report.problems.append(Problem(entry.path, error.what))
            return
        if entry.link:
            self._first_names[key] = entry.path
        self._report.names += 1

    def _member(self, entry: Entry) -> None:
        content = entry.content
        if content is None:
            self._write(tarstream.header(entry))
            return
        sparse = _sparse(content, self._source)
        self._write(tarstream.header(entry, sparse=sparse))
        data_size = content.size if sparse is None else self._write_map(content, sparse)
        try:
            self._write_data(entry, content)
        except CasError as error:
            raise _with_place(error, entry.path) from error
        self._write(tarstream.padding(data_size))
        self._report.files += 1
        self._report.bytes += content.size
        if entry.flags & INCONSISTENT:
            reason = "it changed while it was read; this is one of its states, perhaps torn"
            self._report.problems.append(Problem(entry.path, reason, left_out=False))
        self._progress(0, 1)

    def _write_map(self, content: Content, sparse: SparseMap) -> int:
        size = 0
        for piece in tarstream.sparse_map_text(sparse.regions, _regions(content, self._source)):
            self._write(piece)
            size += len(piece)
        self._write(bytes(sparse.size - size))
        return sparse.data_size

    def _write_data(self, entry: Entry, content: Content) -> None:
        # The one chunk of a small file was hashed when it was read, and its id is the digest.
        hashed = bool(content.parts) and not entry.flags & HOLE_DIGEST
        for block in content_blocks(content, self._source, hashed=hashed):
            if not isinstance(block, Hole):
                for data in block:
                    self._write(data)
            self._progress(block_size(block), 0)


def _with_place(error: CasError, path: bytes) -> CasError:
    """The same error, saying also which file it was met in."""
    name = "/" + path.decode("utf-8", "surrogateescape")
    return type(error)(f"{name}: {error.what}", where=error.where, advice=error.advice)


def _why_left_out(entry: Entry, source: ContentSource) -> Problem | None:
    """Why an archive cannot have `entry`, if it cannot."""
    problem = partial(Problem, entry.path)
    if entry.kind is Kind.SOCKET:
        return problem("a socket: an archive cannot hold it")
    if entry.kind is not Kind.FILE:
        return None
    if entry.content is None:
        return problem("its content could not be read at the source")
    if not _is_held(entry.content, source):
        return problem("its content has not all come yet", "`cas sync` fetches it")
    return None


def _is_held(content: Content, source: ContentSource) -> bool:
    try:
        for recipe in content_recipes(content, source):
            for at in range(0, len(recipe.ids), LOCATED_AT_ONCE):
                if None in source.locate(recipe.ids[at : at + LOCATED_AT_ONCE]):
                    return False
    except NotHeldError:
        return False
    return True


def _sparse(content: Content, source: ContentSource) -> SparseMap | None:
    """The map of a content that has holes."""
    for recipe in content_recipes(content, source):
        if any(isinstance(op, Hole) for op in recipe.program):
            return tarstream.sparse_map(_regions(content, source))
    return None


def _regions(content: Content, source: ContentSource) -> Iterator[Region]:
    """The data of a content with holes: runs between holes, also across recipes. As GNU tar has
    it, a hole at the end is followed by a region of nothing."""
    start = at = 0
    for step in _steps(content_recipes(content, source)):
        if isinstance(step, Hole):
            if at > start:
                yield start, at - start
            at += step.size
            start = at
        else:
            at += step
    if at > start or start:
        yield start, at - start


def _steps(recipes: Iterable[AnyRecipe]) -> Iterator[Hole | int]:
    """Holes, and sizes of data."""
    for recipe in map(plain, recipes):
        lengths = iter(recipe.lengths)
        for op in recipe.operations():
            if isinstance(op, Hole):
                yield op
            else:
                yield sum(next(lengths) for _ in range(op.count))
