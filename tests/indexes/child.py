"""Another process that uses an index: `python -m tests.indexes.child COMMAND PATH [NUMBER]`.

It says a line when it is ready and after each step; what it says goes through a pipe, so that a
line that was read happened before whatever the reader does then.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cas.errors import CasError
from indexes.index import LmdbIndex
from indexes.scancache import LmdbScanCache
from tests.indexes.sample import batch, digest, holds

ROOT = Path(__file__).resolve().parents[2]
SMALL = 2**17  # a map that must grow at once


@contextmanager
def running(command: str, path: Path, number: int = 0) -> Iterator[subprocess.Popen[str]]:
    """A child, killed at the end if it still lives."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.indexes.child", command, path, str(number)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with child:
        try:
            yield child
        finally:
            child.kill()


def heard(child: subprocess.Popen[str]) -> str:
    """The next line the child says; empty when it has ended."""
    assert child.stdout is not None
    return child.stdout.readline().strip()


def tell(child: subprocess.Popen[str], line: str) -> None:
    """Say a line to the child."""
    assert child.stdin is not None
    child.stdin.write(line + "\n")
    child.stdin.flush()


def say(what: object) -> None:
    print(what, flush=True)


def write(path: Path, number: int) -> None:
    """Commit batch after batch from `number` on, and say the number of each when it is done."""
    index = LmdbIndex(path, map_size=SMALL)
    while True:
        index.commit(batch(number))
        say(number)
        number += 1


def read(path: Path, number: int) -> None:
    """Say for each number heard whether that batch is there."""
    index = LmdbIndex(path, readonly=True, map_size=SMALL)
    say("ready")
    for line in sys.stdin:
        say(holds(index, int(line)))


def stay(path: Path, number: int) -> None:
    """Stay in a reading transaction."""
    index = LmdbIndex(path, readonly=True)
    with index._env.read():
        say("ready")
        sys.stdin.read()


def readers(path: Path, number: int) -> None:
    """Say the processes that LMDB believes to read."""
    import lmdb

    with lmdb.open(str(path), readonly=True) as env:
        lines = env.readers().splitlines()
    say(" ".join(line.split()[0] for line in lines[1:] if line))


def fork(path: Path, number: int) -> None:
    """Say what a forked child meets when it uses its parent's index, and then the parent."""
    index = LmdbIndex(path)
    index.locate(digest(1))
    if os.fork() == 0:
        say(error_of(lambda: index.locate(digest(1))))
        say(error_of(lambda: index.commit(batch(1))))
        index.close()
        os._exit(0)
    os.wait()
    say(error_of(lambda: index.locate(digest(1))))


def error_of(use: Callable[[], object]) -> str:
    """What goes wrong with `use`; empty when nothing does."""
    try:
        use()
    except CasError as error:
        return str(error)
    return ""


def walk(path: Path, number: int) -> None:
    """Open an index, perhaps a damaged one, and do everything with it; say the exit code."""
    try:
        index = LmdbIndex(path)
        for n in range(3):
            index.held([chunk for chunk, _ in batch(n).chunks])
            index.segments_of(n)
            index.recipes_of(digest(n, -1))
        list(index.chunks())
        list(index.files_below("npu", b""))
        index.packs()
        index.snapshots()
        for n in range(100, 103):
            index.commit(batch(n))
    except CasError as error:
        say(f"{error.exit_code} {error}")
    else:
        say(0)


def make(path: Path, number: int) -> None:
    """Make an index; say what is wrong, or nothing."""
    say(error_of(lambda: LmdbIndex(path, create=True)))


def remember(path: Path, number: int) -> None:
    """Put page after page into a scan cache, and say the number of each when it is done."""
    cache = LmdbScanCache(path)
    while True:
        cache.put(pages=[(b"scope", b"%d" % number, page(number))])
        say(number)
        number += 1


def page(number: int) -> bytes:
    """What `remember` puts."""
    return digest(number) * 300


COMMANDS = {f.__name__: f for f in (write, read, stay, readers, fork, walk, make, remember)}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
