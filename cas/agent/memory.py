"""One scan's dealings with the agent's cache: asks it in batches, and writes to it now and then,
so that a scan that is killed has not worked for nothing.

A file is kept under its path with its identity. What was modified within `SETTLING_NS` before it
was looked at is not kept: file systems date by a clock that ticks (every few ms, on some every two
seconds), so it might be modified again within the same tick and look as it did. Git calls such
index entries racily clean.

The cache is a help only. When it fails, the scan goes on without and says so.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable

from cas import wire
from cas._native import Status
from cas.agent.content import FileState
from cas.agent.pages import KeptPage, decode_kept, encode_kept
from cas.agent.spool import Spool
from cas.archive import decode_archive_recipe, is_archive
from cas.chunker import IDENTITY
from cas.entry import FLAGS, Content, Problem
from cas.errors import CasError, FormatError
from cas.ids import Digest, as_digest, digest_of, split_digests
from cas.interfaces import CachedFile, ScanCache
from cas.page import PAGE_LIMIT

SETTLING_NS = 2 * 10**9
WRITE_SECONDS = 3.0
WRITE_SIZE = 16 * 2**20  # bytes that wait at most

# Names what a kept file or page depends on besides its identity: another chunker, another form of
# these values or more archives that are taken apart, and what was kept is as good as gone.
FORMAT = "4"
_TAG = digest_of(f"{IDENTITY} {FORMAT}".encode())[:8]


class Memory:
    """The cache for one scan, whose pages go by `scope`. Recipes, new ones and those recalled, go
    to `spool` too: a cache may forget them any time. `report` is told when the cache fails."""

    def __init__(
        self, cache: ScanCache, scope: bytes, spool: Spool, report: Callable[[Problem], None]
    ) -> None:
        self._cache: ScanCache | None = cache
        self._spool = spool
        self._scope = digest_of(_TAG + scope)
        self._report = report
        self._begin()

    def _begin(self) -> None:
        self._pages: list[tuple[bytes, bytes, bytes]] = []
        self._files: list[tuple[bytes, CachedFile]] = []
        self._recipes: list[tuple[Digest, bytes]] = []
        self._size = 0
        self._since = time.monotonic()

    def page(self, first: bytes) -> KeptPage | None:
        """What is kept of the page that begins with the path `first`."""
        if self._cache is None:
            return None
        try:
            value = self._cache.page(self._scope, first)
            return None if value is None else decode_kept(_unsealed(value))
        except FormatError:
            return None
        except CasError as error:
            self._fail(error)
            return None

    def files(self, paths: list[bytes]) -> dict[bytes, CachedFile]:
        """What is kept of the files at `paths`."""
        if self._cache is None or not paths:
            return {}
        try:
            rows = self._cache.files(paths)
        except CasError as error:
            self._fail(error)
            return {}
        return {path: row for path, row in zip(paths, rows, strict=True) if row is not None}

    def recall_recipes(self, recipes: Iterable[Digest]) -> bool:
        """Bring these recipes into the spool, and the skeletons of archives' recipes before them;
        false when the cache lacks one."""
        return all(recipe in self._spool or self._recall(recipe) for recipe in recipes)

    def _recall(self, recipe: Digest) -> bool:
        encoded = self._remembered(recipe)
        if encoded is None:
            return False
        if is_archive(encoded):
            found = decode_archive_recipe(encoded)
            for chunk in found.ids[: found.skeleton]:
                data = self._remembered(chunk)
                if data is None:
                    return False
                self._spool.put(chunk, data)
        self._spool.put(recipe, encoded)
        return True

    def _remembered(self, object_id: Digest) -> bytes | None:
        try:
            data = None if self._cache is None else self._cache.recipe(object_id)
        except CasError as error:
            self._fail(error)
            return None
        return data if data is not None and digest_of(data) == object_id else None

    def keep_page(self, page: KeptPage) -> None:
        """Remember a page."""
        value = _sealed(encode_kept(page))
        self._pages.append((self._scope, page.page.first, value))
        self._added(len(value))

    def keep_file(self, path: bytes, identity: bytes, state: FileState) -> None:
        """Remember a file."""
        row = CachedFile(_TAG + identity, _sealed(_encode_state(state)))
        self._files.append((path, row))
        self._added(len(path) + len(row.entry) + len(row.stat))

    def keep_recipe(self, recipe: Digest, encoded: bytes) -> None:
        """Spool and remember a recipe, or a chunk of an archive's skeleton."""
        self._spool.put(recipe, encoded)
        self._recipes.append((recipe, encoded))
        self._added(len(encoded))

    def _added(self, size: int) -> None:
        self._size += size
        if self._size >= WRITE_SIZE or time.monotonic() - self._since >= WRITE_SECONDS:
            self.write()

    def write(self) -> None:
        """Write down what waits."""
        pages, files, recipes = self._pages, self._files, self._recipes
        self._begin()
        if self._cache is None or not (pages or files or recipes):
            return
        try:
            self._cache.put(pages=pages, files=files, recipes=recipes)
        except (CasError, OSError) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._cache = None
        reason = f"the scan is not remembered, so the next one reads all again: {error}"
        self._report(Problem(b"", reason[:1000], left_out=False))


def is_settled(status: Status, now_ns: int) -> bool:
    """Whether any later modification would show, since the last one is not too fresh."""
    horizon = now_ns - SETTLING_NS
    # A time of modification may be set to anything, the future included; a ctime may not.
    modified = status.st_mtime_ns
    return status.st_ctime_ns <= horizon and not horizon < modified <= now_ns + SETTLING_NS


def recalled(row: CachedFile, identity: bytes, status: Status) -> FileState | None:
    """The state in a row of the cache, if it is that of the file with this identity."""
    if row.stat != _TAG + identity:
        return None
    try:
        return _decode_state(_unsealed(row.entry), status)
    except FormatError:
        return None


def _sealed(value: bytes) -> bytes:
    return zlib.crc32(value).to_bytes(4, "little") + value


def _unsealed(sealed: bytes) -> bytes:
    """What was sealed; raises FormatError when it has changed since: a cache is nobody's care."""
    value = sealed[4:]
    if zlib.crc32(value) != int.from_bytes(sealed[:4], "little"):
        raise FormatError("a value of the cache is damaged")
    return value


def _encode_state(state: FileState) -> bytes:
    content = state.content
    return wire.encode(
        [
            content.size,
            content.digest,
            content.chunk_count,
            b"".join(content.parts),
            state.flags,
            [list(pair) for pair in state.xattrs],
        ]
    )


def _decode_state(value: bytes, status: Status) -> FileState:
    fields = wire.decode(value, limit=PAGE_LIMIT, what="kept file")
    size, digest, count, parts, flags, xattrs = wire.as_list(fields, "kept file", 6)
    content = Content(
        wire.as_int(size, "size"),
        as_digest(digest),
        wire.as_int(count, "chunks"),
        tuple(split_digests(wire.as_bytes(parts, "recipes", PAGE_LIMIT))),
    )
    pairs = tuple((name, data) for name, data in wire.as_list(xattrs, "xattrs"))
    return FileState(status, content, pairs, wire.as_int(flags, "flags", 0, FLAGS))
