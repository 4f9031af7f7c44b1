"""Makes the vectors: `python -m tests.vectors.make`, on purpose only.

A vector that is there is left alone: old bytes stay for ever, since a store may hold them. To make
one again after a mistake in it, delete the file first. Payloads of zstd differ from version to
version, so what is here pins how they are read, not how they are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from tests.vectors import archives, cuts, frames, packs, pages, recipes, sides, snapshots, values
from tests.vectors.vector import Vector

MODULES = (values, recipes, archives, pages, snapshots, packs, frames, cuts, sides)


def vectors() -> Iterator[Vector]:
    """All of them, as this code would make them now."""
    return chain.from_iterable(module.vectors() for module in MODULES)


def main() -> None:
    """Write those that are missing."""
    for vector in vectors():
        if not vector.path.exists():
            vector.path.parent.mkdir(exist_ok=True)
            vector.path.write_text(vector.text())
            print("made", vector.path.relative_to(vector.path.parent.parent))


if __name__ == "__main__":
    main()
