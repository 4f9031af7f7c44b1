"""Data to measure with: real files of this machine, edited copies of them, random bytes.

Everything is seeded: the same machine gives the same data. Real files are those below /usr, in the
order of their names, archives left out: what looking into those costs and saves is measured by
itself. Where there are too few, copies with edits follow, each different.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

from cas.unpack.detect import HEAD, Form, detect
from tests.bench.verdict import MIB

REAL = Path("/usr")
SOURCE_TEXT = "c cc cpp go h hpp html java js json md pl pm py rs rst sh toml ts txt xml"
SOURCE_SUFFIXES = frozenset(f".{suffix}" for suffix in SOURCE_TEXT.split())
EDIT_EVERY = 128 * 1024  # bytes of a copy, about


def real_files(least: int, most: int, suffixes: frozenset[str] = frozenset()) -> Iterator[Path]:
    """The regular files below /usr of `least` to `most` bytes, sorted, of these suffixes if any."""
    for folder, folders, names in os.walk(REAL):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if suffixes and path.suffix not in suffixes:
                continue
            if path.is_symlink() or not path.is_file():
                continue
            if least <= path.stat().st_size <= most and not _is_archive(path):
                yield path


def _is_archive(path: Path) -> bool:
    with path.open("rb") as file:
        return detect(file.read(HEAD)) not in (None, Form.STUB)


def edited(data: bytes, source: random.Random) -> bytes:
    """`data` with a line put in here and there, as a person or a rebuild changes a file."""
    pieces = []
    at = 0
    for _ in range(1 + len(data) // EDIT_EVERY):
        to = min(len(data), at + source.randrange(2 * EDIT_EVERY))
        pieces += [data[at:to], b"\nedit %d\n" % source.getrandbits(64)]
        at = to
    return b"".join([*pieces, data[at:]])


def plain_data(directory: Path, size: int, seed: int) -> None:
    """About `size` bytes in files of 16 KiB to 32 MiB: half of it real programs, libraries and
    texts, three tenths edited copies of those, the rest random."""
    source = random.Random(seed)
    paths = list(real_files(16 * 1024, 32 * MIB))
    source.shuffle(paths)
    taken, amount = [], 0
    for path in paths:
        taken.append(path)
        amount += _write(directory / "real" / path.relative_to("/"), path.read_bytes())
        if amount >= size // 2:
            break
    while amount < size * 8 // 10:
        path = source.choice(taken)
        name = directory / "edited" / f"{amount}" / path.name
        amount += _write(name, edited(path.read_bytes(), source))
    while amount < size:
        length = min(source.randrange(64 * 1024, 32 * MIB), max(1, size - amount))
        amount += _write(directory / "random" / f"{amount}", source.randbytes(length))


def source_tree(directory: Path, count: int, seed: int, most: int = 64 * 1024) -> None:
    """`count` different small files of source text, up to `most` bytes each, in the directories
    that they have below /usr; then edited copies of them, a tree each time."""
    source = random.Random(seed)
    paths = list(real_files(1, most, SOURCE_SUFFIXES)) or list(real_files(1, most))
    seen: set[bytes] = set()
    turn = 0
    while len(seen) < count:
        for path in paths:
            data = path.read_bytes() if not turn else edited(path.read_bytes(), source)
            digest = hashlib.sha256(data).digest()
            if digest in seen:
                continue
            seen.add(digest)
            _write(directory / f"tree{turn}" / path.relative_to("/"), data)
            if len(seen) == count:
                break
        turn += 1


def large_file(path: Path, size: int, seed: int) -> None:
    """One file of `size` bytes: edited real files and random bytes in turns."""
    source = random.Random(seed)
    paths = list(real_files(MIB, 32 * MIB))
    amount = 0
    with path.open("wb") as file:
        while amount < size:
            real = edited(source.choice(paths).read_bytes(), source)
            for data in (real, source.randbytes(len(real) // 4)):
                amount += file.write(data[: size - amount])


def tree_size(directory: Path) -> tuple[int, int]:
    """How many regular files are below `directory`, and their bytes."""
    count = size = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            status = os.lstat(os.path.join(folder, name))
            count += 1
            size += status.st_size
    return count, size


def _write(path: Path, data: bytes) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.write_bytes(data)
