"""Encodes standard input to standard output with one Python library.

    encode.py LIBRARY LEVEL [wbits=31] [memory=8] [strategy=0] [flush=MODE every=BYTES]
    encode.py LIBRARY version

Plain bytes are handed over in runs of 64 KiB, as file and network code does, or of `every` bytes,
each followed by a flush of MODE (the library's number).
"""

import importlib
import importlib.metadata
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any

RUN = 1 << 16


def main() -> None:
    library, level, *rest = sys.argv[1:]
    if level == "version":
        print(VERSIONS[library]())
        return
    options = {name: int(value) for name, value in (word.split("=") for word in rest)}
    for part in ENCODERS[library](int(level), options):
        sys.stdout.buffer.write(part)


def _streamed(module: str) -> Callable[[int, dict[str, int]], Iterator[bytes]]:
    """For a module that is called as zlib is."""

    def encode(level: int, options: dict[str, int]) -> Iterator[bytes]:
        encoder = _encoder(importlib.import_module(module), level, options)
        size = options.get("every", RUN)
        while run := sys.stdin.buffer.read(size):
            yield encoder.compress(run)
            if "flush" in options:
                yield encoder.flush(options["flush"])
        yield encoder.flush()

    return encode


def _encoder(library: Any, level: int, options: dict[str, int]) -> Any:
    memory = options.get("memory", library.DEF_MEM_LEVEL)
    strategy = options.get("strategy", 0)
    return library.compressobj(level, library.DEFLATED, options.get("wbits", 31), memory, strategy)


def _libdeflate(level: int, options: dict[str, int]) -> Iterator[bytes]:
    yield bytes(importlib.import_module("deflate").gzip_compress(sys.stdin.buffer.read(), level))


def _zopfli(level: int, options: dict[str, int]) -> Iterator[bytes]:
    """`level` is the number of iterations."""
    library = importlib.import_module("zopfli.gzip")
    yield library.compress(sys.stdin.buffer.read(), numiterations=level)


def _zstandard(level: int, options: dict[str, int]) -> Iterator[bytes]:
    """As a stream of unknown size, which is how most programs write one."""
    encoder = importlib.import_module("zstandard").ZstdCompressor(level=level).compressobj()
    while run := sys.stdin.buffer.read(RUN):
        yield encoder.compress(run)
    yield encoder.flush()


def _published(package: str, *where: str) -> Callable[[], str]:
    """The version of a package, and that of the C library inside where it tells."""

    def version() -> str:
        said = f"{package} {importlib.metadata.version(package)}"
        if where:
            said += f" ({getattr(importlib.import_module(where[0]), where[1])})"
        return said

    return version


ENCODERS: dict[str, Callable[[int, dict[str, int]], Iterator[bytes]]] = {
    "zlib": _streamed("zlib"),
    "zlib_ng": _streamed("zlib_ng.zlib_ng"),
    "isal": _streamed("isal.isal_zlib"),
    "deflate": _libdeflate,
    "zopfli": _zopfli,
    "zstandard": _zstandard,
}
VERSIONS: dict[str, Callable[[], str]] = {
    "zlib": lambda: f"zlib {zlib.ZLIB_RUNTIME_VERSION}, Python {sys.version.split()[0]}",
    "zlib_ng": _published("zlib-ng", "zlib_ng.zlib_ng", "ZLIBNG_VERSION"),
    "isal": _published("isal", "isal", "ISAL_VERSION"),
    "deflate": _published("deflate"),
    "zopfli": _published("zopfli"),
    "zstandard": _published("zstandard", "zstandard", "ZSTD_VERSION"),
}

if __name__ == "__main__":
    main()
