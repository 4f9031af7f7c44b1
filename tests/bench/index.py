"""Time and disk the index takes: `python -m tests.bench.index [DIRECTORY] [MILLIONS]`.

A commit of 100,000 chunks with their segments and one of 16, `held` of 100,000 ids of which half
are here, `locate`, a walk over all chunks, 100,000 files. Speeds depend on the disk's flush, which
is measured beside them.
"""

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cas.frame import Codec
from cas.ids import Digest
from cas.interfaces import Changes, FileRow, Location, SegmentPlace
from indexes.index import LmdbIndex

MANY = 100_000


def main(directory: Path, millions: float) -> None:
    """Print one line for each measure."""
    index = LmdbIndex(directory / "index", create=True)
    ids: list[Digest] = []
    for at in range(0, int(millions * 10) * MANY, MANY):
        fresh = [Digest(os.urandom(32)) for _ in range(MANY)]
        changes = segment_changes(fresh, at)
        measure(f"commit {MANY} chunks onto {at}", partial(index.commit, changes))
        ids += fresh
    size = (directory / "index" / "data.mdb").stat().st_size
    print(f"{'bytes on disk for a chunk':40} {size / len(ids):8.0f}")
    asked = [*random.sample(ids, MANY // 2), *(Digest(os.urandom(32)) for _ in range(MANY // 2))]
    random.shuffle(asked)
    measure(f"held {MANY} of {len(ids)}", lambda: index.held(asked))
    measure("locate 10000", lambda: [index.locate(id_) for id_ in asked[:10_000]])
    measure("walk all chunks", lambda: sum(1 for _ in index.chunks()))
    small = [
        segment_changes([Digest(os.urandom(32)) for _ in range(16)], 10**9 + n) for n in range(50)
    ]
    measure("50 commits of 16 chunks", lambda: commit_all(index, small))
    measure("50 flushes of 4 KiB", lambda: flush(directory / "flushed"))
    files = [
        FileRow("npu", b"opt/dir %d/file %d" % (n % 100, n), "00-first", Digest(bytes(32)), n)
        for n in range(MANY)
    ]
    measure(f"commit {MANY} files", lambda: index.commit(Changes(files=files)))
    measure(f"files_below {MANY}", lambda: sum(1 for _ in index.files_below("npu", b"opt")))
    index.close()


def segment_changes(ids: list[Digest], frame: int) -> Changes:
    """Rows of `ids`, 16 to a segment and 30 segments to a frame."""
    places = [(frame + n // 480, n // 16 % 30, n % 16 * 65536) for n in range(len(ids))]
    return Changes(
        chunks=[
            (id_, Location(f, s, at, 65536)) for id_, (f, s, at) in zip(ids, places, strict=True)
        ],
        segments=[
            (f, s, SegmentPlace(1, s, s + 48, 2**19, Codec.ZSTD, 2**20))
            for f, s, at in places[::16]
        ],
    )


def commit_all(index: LmdbIndex, several: list[Changes]) -> None:
    for changes in several:
        index.commit(changes)


def flush(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for _ in range(50):
            file.write(bytes(4096))
            os.fdatasync(file.fileno())


def measure(what: str, work: Callable[[], object]) -> None:
    begun = time.perf_counter()
    work()
    print(f"{what:40} {time.perf_counter() - begun:8.3f} s", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as place:
        main(Path(place), float(sys.argv[2]) if len(sys.argv) > 2 else 1.0)
