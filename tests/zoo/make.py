"""Makes the zoo: `python -m tests.zoo.make OUT [--size small|large]`.

What is there already is left alone, so a run that was stopped goes on where it was. An encoder that
is not to be had costs its streams, each named on a line of its own.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.zoo import deflaters, edges, images, packages, replayed, repositories, stream, zips
from tests.zoo.decode import Undecodable, plain_digest
from tests.zoo.plain import plains
from tests.zoo.tools import Toolbox, Unavailable
from tests.zoo.workshop import Job, Made, Workshop


def jobs(size: str) -> Iterator[Job]:
    """Everything there is in that size of zoo."""
    for some in (deflaters.filters(), replayed.filters()):
        yield from (each.job() for each in some)
    yield from images.jobs()
    yield from edges.jobs()
    yield from zips.jobs()
    yield from repositories.jobs()
    yield from packages.jobs(size)


def make(out: Path, shop: Workshop, wanted: str) -> int:
    """Add to the zoo in `out` the streams whose names match `wanted`; how many are missing."""
    streams = {each.name: each for each in stream.read(out) if (out / each.name).exists()}
    missing = 0
    for each in jobs(shop.size):
        if all(name in streams for name in each.names) or not _matches(each, wanted):
            continue
        shop.clear()
        try:
            for made in each.make(shop):
                streams[made.name] = _keep(out, made, shop.plains)
                print("made", made.name, flush=True)
        except (Unavailable, Undecodable) as why:
            gone = [name for name in each.names if name not in streams]
            missing += len(gone)
            print(f"left out {', '.join(gone)}: {why}", flush=True)
        stream.write(out, streams.values())
    return missing


def _matches(each: Job, wanted: str) -> bool:
    return any(fnmatch.fnmatch(name, wanted) for name in each.names)


def _keep(out: Path, made: Made, known: dict[str, Path]) -> stream.Stream:
    """Move a stream into the zoo, decoded and compared first. Raises Undecodable."""
    decoded = _decoded(made)
    if made.plain and decoded and decoded[1] != _sha256(known[made.plain]):
        raise Undecodable(f"{made.name} is of other bytes than {made.plain}")
    target = out / made.name
    new = out / f".{made.name}.new"
    shutil.copyfile(made.path, new)
    os.replace(new, target)
    return stream.Stream(
        name=made.name,
        encoder=made.encoder.shown,
        version=made.encoder.version,
        command=made.command,
        container=made.container,
        size=target.stat().st_size,
        sha256=_sha256(target),
        plain=made.plain,
        plain_size=decoded[0] if decoded else None,
        plain_sha256=decoded[1] if decoded else None,
    )


def _decoded(made: Made) -> tuple[int, str] | None:
    """None also for what is not meant to decode: its makers name no plain file."""
    try:
        return plain_digest(made.path, made.container)
    except Undecodable:
        if made.plain:
            raise
        return None


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for run in iter(lambda: file.read(1 << 20), b""):
            digest.update(run)
    return digest.hexdigest()


def main() -> None:
    """Ends with 3 where streams are missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.zoo.make", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", choices=("small", "large"), default="small")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache/cas-zoo")
    parser.add_argument("--only", default="*", help="names of the streams wanted, as in a shell")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    cache = asked.cache.resolve()
    with tempfile.TemporaryDirectory(prefix="cas-zoo.") as bench:
        files = plains(asked.size, cache)
        shop = Workshop(asked.size, files, cache, Path(bench, "bench"), Toolbox(cache))
        missing = make(asked.out.resolve(), shop, asked.only)
    sys.exit(3 if missing else 0)


if __name__ == "__main__":
    main()
