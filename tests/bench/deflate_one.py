"""Takes deflate streams apart and together again, in one thread; what that cost, as JSON.

    python -m tests.bench.deflate_one FILE

FILE is a gzip, zlib or raw deflate file, of which the first stream is measured, or a zip, of which
the members are, all together. Seconds are the processor's. What comes back is compared.
"""

from __future__ import annotations

import io
import json
import resource
import struct
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from cas._native import Splitter, choose
from tests.zoo.spans import Rebuilder, deflate_of, sides

FIRST = 4  # spans by which the encoder is judged, as in cas/codec/deflate.py


def streams_of(data: bytes) -> Iterator[bytes]:
    """The deflate streams in a file; of one that is no zip the first, and what follows."""
    if data[:2] == b"PK":
        yield from _members(data)
    elif data[:3] == b"\x1f\x8b\x08":
        yield deflate_of(data)
    else:
        is_zlib = (data[0] & 15, (data[0] << 8 | data[1]) % 31) == (8, 0)
        yield data[2:] if is_zlib else data


def _members(data: bytes) -> Iterator[bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            if member.compress_type == zipfile.ZIP_DEFLATED:
                sizes = struct.unpack_from("<HH", data, member.header_offset + 26)
                begin = member.header_offset + 30 + sum(sizes)
                yield data[begin : begin + member.compress_size]


def measure(stream: bytes) -> Counter[str]:
    """Sizes, in bytes, and seconds of what is done with a stream; how many were not `exact`."""
    clock = time.process_time
    started = clock()
    splitter = Splitter()
    spans = [
        span
        for at in range(0, len(stream), 2**16)
        if not (splitter.finished or splitter.failed)
        for span in splitter.feed(stream[at : at + 2**16])
    ]
    inflated = clock()
    config = choose(spans[:FIRST])
    chosen = clock()
    found = list(sides(spans, config))
    analysed = clock()
    again = Rebuilder(bytearray())
    for span, side in zip(spans, found, strict=True):
        again.add(span.plain, side)
    rebuilt = clock()
    compressed = sum(span.compressed_bits for span in spans) / 8
    whole = int(compressed)
    said = {
        "plain": sum(span.plain_size for span in spans),
        "compressed": compressed,
        "side": sum(map(len, found)),
        "spans": len(spans),
        "inexact": not splitter.finished or again.bits[:whole] != stream[:whole],
        "inflate": inflated - started,
        "choose": chosen - inflated,
        "analyse": analysed - chosen,
        "rebuild": rebuilt - analysed,
    }
    return Counter(said)


def main() -> None:
    """See above."""
    total: Counter[str] = Counter()
    for stream in streams_of(Path(sys.argv[1]).read_bytes()):
        total.update(measure(stream))
    said = dict(total)
    said["exact"] = not said.pop("inexact")
    said["rss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(said))


if __name__ == "__main__":
    main()
