"""What the tests of the agent share: scanning a tree, rebuilding a file, being another user."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cas.agent.notes import ScanProgress
from cas.agent.pages import ScannedPage
from cas.agent.roots import RootGuard
from cas.agent.scan import Scanner
from cas.agent.spool import Spool
from cas.entry import Content, Entry, Problem
from cas.ids import Digest
from cas.ignore import Matcher
from cas.interfaces import ScanCache
from cas.page import decode_page
from cas.recipe import Copy, decode_recipe
from cas.store.memory_index import MemoryScanCache

NOBODY = 65534


def later() -> int:
    """A clock by which everything that exists has long settled."""
    return time.time_ns() + 10**10


def name_of(path: Path | str) -> bytes:
    """The entry path of an absolute path."""
    return os.fsencode(path).lstrip(b"/")


@dataclass
class Scanned:
    """A finished scan."""

    pages: list[ScannedPage]
    problems: list[Problem]
    progress: ScanProgress
    objects: dict[Digest, bytes]

    @property
    def entries(self) -> list[Entry]:
        return [entry for page in self.pages for entry in decode_page(page.encoded)]

    def below(self, root: Path) -> dict[bytes, Entry]:
        """The entries below root, by their path from there."""
        start = name_of(root) + b"/"
        entries = [entry for entry in self.entries if entry.path.startswith(start)]
        return {entry.path.removeprefix(start): entry for entry in entries}


def scan(
    *roots: Path,
    cache: ScanCache | None = None,
    clock: Callable[[], int] = later,
    rules: Matcher | None = None,
    guard: RootGuard | None = None,
) -> Scanned:
    """Scan roots to the end; without a guard, nothing above them is listed: /tmp changes often."""
    allowed = [os.fsencode(root if root.is_dir() else root.parent) for root in roots]
    guard = guard or RootGuard([path for path in allowed if os.path.exists(path)])
    with Spool() as spool:
        scanner = Scanner(
            [os.fsencode(root) for root in roots],
            rules or Matcher(),
            cache or MemoryScanCache(),
            spool,
            guard=guard,
            clock=clock,
        )
        pages = list(scanner)
        return Scanned(pages, scanner.problems, scanner.progress, objects_of(pages, spool))


def objects_of(pages: Sequence[ScannedPage], spool: Spool) -> dict[Digest, bytes]:
    """Every page and recipe that pages name; fails when the spool lacks one."""
    ids = [page.id for page in pages]
    for page in pages:
        contents = [entry.content for entry in decode_page(page.encoded) if entry.content]
        ids += [part for content in contents for part in content.parts]
    objects = {id_: spool.get(id_) for id_ in ids}
    assert None not in objects.values()
    return {id_: data for id_, data in objects.items() if data is not None}


def rebuilt(content: Content, recipes: dict[Digest, bytes], original: bytes) -> bytes:
    """What the content's recipes write, its chunks taken from where they must lie in original."""
    if not content.parts:
        return original
    written = bytearray()
    for part in content.parts:
        recipe = decode_recipe(recipes[part])
        lengths = iter(recipe.lengths)
        for op in recipe.operations():
            if isinstance(op, Copy):
                size = sum(next(lengths) for _ in range(op.count))
                written += original[len(written) : len(written) + size]
            else:
                written += bytes(op.size)
    return bytes(written)


@contextmanager
def another_user() -> Iterator[None]:
    """Be nobody, as far as files are concerned; needs root."""
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


@contextmanager
def public_directory() -> Iterator[Path]:
    """A directory that every user may enter, as pytest's own are not."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made).resolve()
