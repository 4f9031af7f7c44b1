"""What the streams are made of: `whole`, a tar, and `part`, its beginning.

The small one lies in the tree, and never changes: text of this project as it once was, a piece of
its compiled library, and bytes that try an encoder (long runs, random bytes, the same block again
at a distance of exactly 32 KiB). The large one is the source of git as Debian publishes it.
"""

from __future__ import annotations

import lzma
import os
import shutil
from pathlib import Path

from tests.zoo import debian
from tests.zoo.stream import STREAMS
from tests.zoo.workshop import CLOCK

SMALL = STREAMS / "whole.tar.xz"
PART_SIZE = {"small": 76 << 10, "large": 8 << 20}


def plains(size: str, cache: Path) -> dict[str, Path]:
    """Both files by name, made in the cache where they are not yet there. Raises Unavailable."""
    folder = cache / f"plain-{size}"
    whole, part = folder / "whole", folder / "part"
    if not part.exists():
        folder.mkdir(parents=True, exist_ok=True)
        packed = SMALL if size == "small" else debian.source(cache, "git", "*.orig.tar.xz")
        with lzma.open(packed) as source, whole.open("wb") as file:
            shutil.copyfileobj(source, file)
        with whole.open("rb") as source:
            part.write_bytes(source.read(PART_SIZE[size]))
        for path in (whole, part):  # igzip and others put it into the header
            os.utime(path, (CLOCK, CLOCK))
    return {"whole": whole, "part": part}
