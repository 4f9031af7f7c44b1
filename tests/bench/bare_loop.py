"""The least that a scan of plain files has to do, in one loop: read each file below a directory,
cut it with FastCDC, take the SHA-256 of each chunk and of the file.

    python bare_loop.py DIRECTORY

One thread, no names kept, nothing sent. A file of one chunk is hashed once.
"""

import hashlib
import os
import sys

import fastcdc

from cas.chunker import AVERAGE_SIZE, MAX_SIZE, MIN_SIZE


def scan(path: str) -> int:
    """Read, cut and hash one file; how many chunks it has."""
    with open(path, "rb", buffering=0) as file:
        data = file.read()
    if len(data) <= MIN_SIZE:
        hashlib.sha256(data).digest()
        return 1
    view = memoryview(data)
    cuts = fastcdc.fastcdc(data, min_size=MIN_SIZE, avg_size=AVERAGE_SIZE, max_size=MAX_SIZE)
    digests = [hashlib.sha256(view[c.offset : c.offset + c.length]).digest() for c in cuts]
    if len(digests) > 1:
        hashlib.sha256(data).digest()
    return len(digests)


def main() -> None:
    """See above."""
    chunks = 0
    for folder, folders, names in os.walk(sys.argv[1]):
        folders.sort()
        for name in sorted(names):
            chunks += scan(os.path.join(folder, name))
    print(chunks)


if __name__ == "__main__":
    main()
