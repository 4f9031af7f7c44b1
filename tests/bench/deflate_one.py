"""Takes one deflate stream apart and together again, in one thread; what that cost, as JSON.

    python -m tests.bench.deflate_one FILE

FILE is a gzip, zlib or raw deflate file. Seconds are the processor's. The first stream in it is
what is measured; what comes back is compared with it.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from cas._native import Splitter, choose
from tests.zoo.spans import Rebuilder, deflate_of, sides

FIRST = 4  # spans by which the encoder is judged, as in cas/codec/deflate.py


def stream_of(data: bytes) -> bytes:
    """The deflate stream in a file, and what follows."""
    if data[:3] == b"\x1f\x8b\x08":
        return deflate_of(data)
    return data[2:] if (data[0] & 15, (data[0] << 8 | data[1]) % 31) == (8, 0) else data


def main() -> None:
    """See above."""
    stream = stream_of(Path(sys.argv[1]).read_bytes())
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
    plain = sum(span.plain_size for span in spans)
    compressed = sum(span.compressed_bits for span in spans) / 8
    whole = int(compressed)
    said = {
        "plain": plain,
        "compressed": compressed,
        "side": sum(map(len, found)),
        "spans": len(spans),
        "exact": bool(splitter.finished) and again.bits[:whole] == stream[:whole],
        "inflate": inflated - started,
        "choose": chosen - inflated,
        "analyse": analysed - chosen,
        "rebuild": rebuilt - analysed,
        "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main()
