"""A restore's memory has a bound, whatever the size of the tier."""

import random
from pathlib import Path

from cas.restore.tree import restore_entries
from cas.store import reader
from tests.restore.child import in_child
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

    def restore() -> str:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew (proc(5))
        before = status("VmRSS")
        assert [] == restore_entries(entries, store.reader, tmp_path / "out").problems
        return str(status("VmHWM") - before)

    grown = int(in_child(restore))
    assert total == sum(path.stat().st_size for path in (tmp_path / "out/large").iterdir())
    assert grown < BOUND


def status(name: str) -> int:
    """Bytes of memory, as the kernel counts them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))
