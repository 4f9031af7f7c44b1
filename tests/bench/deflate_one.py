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

from cas._native import Config, Span, Splitter, choose, config_of, rebuild
from cas.unpack.gzip import header_size

WINDOW = 32 * 1024
FIRST = 4  # spans by which the encoder is judged, as in cas/codec/deflate.py


def stream_of(data: bytes) -> bytes:
    """The deflate stream in a file, and what follows."""
    size = header_size(data[: 1 << 16])
    if size > 0:
        return data[size:]
    return data[2:] if (data[0] & 15, (data[0] << 8 | data[1]) % 31) == (8, 0) else data


def analyse(spans: list[Span], config: Config) -> list[bytes]:
    """Side information of all spans, the configuration following what was found on the way."""
    sides = []
    for span in spans:
        sides.append(span.analyse(config))
        config = config_of(sides[-1]) or config
    return sides


def together(spans: list[Span], sides: list[bytes]) -> bytes:
    """The stream again."""
    bits, used, history = bytearray(), 0, b""
    for span, side in zip(spans, sides, strict=True):
        plain = span.plain
        part, left = rebuild(history, plain, side)
        if used and part:
            bits[-1] |= part[0]
            part = part[1:]
        bits += part
        used, history = left, (history + plain)[-WINDOW:]
    return bytes(bits)


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
    sides = analyse(spans, config)
    analysed = clock()
    again = together(spans, sides)
    rebuilt = clock()
    plain = sum(span.plain_size for span in spans)
    compressed = sum(span.compressed_bits for span in spans) / 8
    whole = int(compressed)
    said = {
        "plain": plain,
        "compressed": compressed,
        "side": sum(map(len, sides)),
        "spans": len(spans),
        "exact": bool(splitter.finished) and again[:whole] == stream[:whole],
        "inflate": inflated - started,
        "choose": chosen - inflated,
        "analyse": analysed - chosen,
        "rebuild": rebuilt - analysed,
        "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main()
