"""A restore's memory has a bound, whatever the size of the tier."""

import os
import random
from pathlib import Path

from cas.restore.tree import restore_entries
from cas.store import reader
from tests.restore.trees import file
from tests.store.build import BuiltStore

MIB = 2**20
# The reader's cache, a window and a segment for each scan, what is read and waits to be written.
# Beside that the interpreter's own needs, and what malloc keeps.
BOUND = reader.MEMORY + reader.SCANS * 35 * MIB + 32 * MIB + 64 * MIB


def test_the_bound_holds(tmp_path: Path) -> None:
    store = BuiltStore(tmp_path / "store", frame_segments=30)
    rng = random.Random(1)
    contents = []
    for _ in range(BOUND // (64 * MIB) + 1):  # more than the bound; no two parts are the same
        data = b"".join(rng.randbytes(4096) * 16 for _ in range(1024))
        contents.append(store.content(data))
    small = [store.content(rng.randbytes(2000) * 8) for _ in range(2000)]
    store.flush()
    total = sum(content.size for content in contents)
    assert BOUND < total
    entries = [file(b"large/%d" % n, content) for n, content in enumerate(contents)]
    entries += [file(b"small/%04d" % n, content) for n, content in enumerate(small)]
    before, most = peak(lambda: restore_entries(entries, store.reader, tmp_path / "out"))
    assert total == sum(path.stat().st_size for path in (tmp_path / "out/large").iterdir())
    assert most - before < BOUND


def peak(work: object) -> tuple[int, int]:
    """The memory of a child process before it does `work`, and the most it had."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew (proc(5))
        before = status("VmRSS")
        work()  # type: ignore[operator]  # something to call
        os.write(write, f"{before} {status('VmHWM')}".encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        before, most = map(int, told.read().split())
    os.waitpid(child, 0)
    return before, most


def status(name: str) -> int:
    """Bytes of memory, as the kernel counts them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))
