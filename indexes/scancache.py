"""The agent's scan cache over LMDB: `cas.interfaces.ScanCache`.

It is only a cache: what cannot be read was never remembered. Tables that are damaged, or of another
LMDB, are dropped and begun anew. Its size is bounded by one rule: past `limit` bytes everything is
forgotten.

Its transactions are synced but for the very last page (`metasync`): after a power cut the last one
may be missing, and the tables are whole. That costs one flush for each `put`; without it a power
cut could leave tables that LMDB takes for good and that are not.

Two agents may use one cache at the same time. Opening it and dropping it happen under a lock, so
that nobody opens one's lock file with another's data; who had it open goes on with what was
dropped until it fails or is closed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from cas.errors import StoreError
from cas.ids import Digest
from cas.interfaces import CachedFile, ScanCache
from indexes.datafiles import DATA
from indexes.env import Environment
from indexes.failure import failure_of, is_curable
from indexes.keys import KEY_LIMIT, OWNER_SIZE, fitted, owner_key
from indexes.view import Update, View

SCHEMA = 1
NAME = "scan-1"  # another version has another name, and leaves this one alone
DROPPED = "dropped"
LIMIT = 2 * 2**30
PAGES = b"pages"
FILES = b"files"
RECIPES = b"recipes"
STAT_SIZE = 4

Answer = TypeVar("Answer")


def open_scan_cache(
    directory: Path, *, check: Callable[[Path], None], memory: Callable[[], ScanCache]
) -> ScanCache:
    """The scan cache in `directory`, or what `memory` makes where none can be kept: `check`
    (`cas.store.filesystem.refuse_network_filesystem`) or the system refuses the directory."""
    try:
        check(directory)
        return LmdbScanCache(directory)
    except (StoreError, OSError):
        return memory()


class LmdbScanCache:
    """A scan cache in a directory. Safe to use from several threads and processes."""

    def __init__(self, directory: Path, *, limit: int = LIMIT) -> None:
        """Open or begin the cache; raises StoreError or OSError when that cannot be done here."""
        self._directory = directory
        self._path = directory / NAME
        self._limit = limit
        self._guard = threading.Lock()
        self._env: Environment | None = None
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked():
            self._clear()
            try:
                self._open()
            except StoreError as error:
                if not is_curable(error):
                    raise
                self._drop()
                self._open()

    def page(self, scope: bytes, first: bytes) -> bytes | None:
        """What was put for the page of `scope` that begins with path `first`."""
        return self._ask(lambda view: view.get(PAGES, _page_key(scope, first)), None)

    def files(self, paths: Sequence[bytes]) -> list[CachedFile | None]:
        """What was put for each path."""

        def find(view: View) -> list[CachedFile | None]:
            return [_decode_file(view.get(FILES, _file_key(path))) for path in paths]

        return self._ask(find, [None] * len(paths))

    def recipe(self, recipe_id: Digest) -> bytes | None:
        """The encoded recipe of this id."""
        return self._ask(lambda view: view.get(RECIPES, recipe_id), None)

    def put(
        self,
        *,
        pages: Iterable[tuple[bytes, bytes, bytes]] = (),
        files: Iterable[tuple[bytes, CachedFile]] = (),
        recipes: Iterable[tuple[Digest, bytes]] = (),
    ) -> None:
        """Remember; survives a kill of the process once it returns. Raises StoreError when that
        cannot be done (a full disk); what was remembered before still is."""
        page_rows = [(_page_key(scope, first), value) for scope, first, value in pages]
        file_rows = [(_file_key(path), _encode_file(file)) for path, file in files]
        recipe_rows = list(recipes)

        def work(update: Update) -> None:
            update.put(PAGES, page_rows)
            update.put(FILES, file_rows)
            update.put(RECIPES, recipe_rows)

        env = self._opened_env()
        if env.used > self._limit:
            env = self._begin_anew(env)
        try:
            env.write(work)
        except StoreError as error:
            if not is_curable(error):
                raise
            self._begin_anew(env).write(work)

    def close(self) -> None:
        """Release the cache."""
        with self._guard:
            env, self._env = self._env, None
        if env is not None:
            env.close()

    def _ask(self, read: Callable[[View], Answer], default: Answer) -> Answer:
        env = self._env
        if env is not None:
            try:
                with env.read() as view:
                    return read(view)
            except StoreError as error:
                if is_curable(error):
                    with suppress(StoreError):
                        self._begin_anew(env)
        return default

    def _opened_env(self) -> Environment:
        env = self._env
        if env is None:
            raise StoreError("the scan cache cannot be used any more", where=str(self._path))
        return env

    def _begin_anew(self, env: Environment) -> Environment:
        """Drop `env`, unless another thread or process has done so already, and open what is there
        then. Raises StoreError when that fails: nothing is remembered from then on."""
        with self._guard:
            if self._env is env:
                self._env = None
                try:
                    with self._locked():
                        is_ours = self._inode() == self._inode_opened
                        env.close()
                        if is_ours:
                            self._drop()
                        self._open()
                except OSError as error:
                    raise failure_of(type(error).__name__, str(error), self._path) from error
            return self._opened_env()

    def _open(self) -> None:
        # The map never grows: agents that grow one map at the same time would have to agree.
        self._env = Environment(
            self._path,
            (PAGES, FILES, RECIPES),
            SCHEMA,
            create=True,
            map_size=2 * self._limit,
            map_limit=2 * self._limit,
            metasync=False,
        )
        self._inode_opened = self._inode()

    def _inode(self) -> int:
        with suppress(OSError):
            return (self._path / DATA).stat().st_ino
        return 0

    def _drop(self) -> None:
        """Take the tables away; who has them open keeps them."""
        self._clear()
        self._path.rename(self._directory / DROPPED)
        self._clear()

    def _clear(self) -> None:
        shutil.rmtree(self._directory / DROPPED, ignore_errors=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fd = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


def _page_key(scope: bytes, first: bytes) -> bytes:
    return owner_key(scope) + fitted(first, KEY_LIMIT - OWNER_SIZE)


def _file_key(path: bytes) -> bytes:
    return fitted(b"/" + path, KEY_LIMIT)  # a key must not be empty


def _encode_file(file: CachedFile) -> bytes:
    return len(file.stat).to_bytes(STAT_SIZE, "little") + file.stat + file.entry


def _decode_file(value: bytes | None) -> CachedFile | None:
    if value is None:
        return None
    end = STAT_SIZE + int.from_bytes(value[:STAT_SIZE], "little")
    return CachedFile(value[STAT_SIZE:end], value[end:])
