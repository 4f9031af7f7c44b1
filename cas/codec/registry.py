"""Which module each codec is in. One is imported when it is met: starting stays quick."""

from __future__ import annotations

from concurrent.futures import Executor
from importlib import import_module
from typing import cast

from cas.codec.base import Joiner
from cas.errors import FormatError
from cas.program import Codec

# The module of each, and in it what is called with the parameters and a pool.
JOINERS = {
    Codec.DEFLATE: ("cas.codec.deflate", "DeflateJoiner"),
    Codec.BZIP2: ("cas.codec.bzip2", "joiner"),
    Codec.XZ: ("cas.codec.xz", "joiner"),
    Codec.ZSTD: ("cas.codec.zstd", "joiner"),
}


def begin_joiner(codec: Codec, params: bytes, pool: Executor) -> Joiner:
    """A joiner for one stream; the `JoinerFactory` of all that is not a test. Raises FormatError
    for parameters that mean nothing, and where the codec's module or library is not there."""
    module, name = JOINERS[codec]
    try:
        begin = getattr(import_module(module), name)
    except ImportError as error:
        raise FormatError(
            f"a stream of codec {codec.name.lower()} cannot be rebuilt here",
            advice="use a newer cas, or a Python that has the codec's library",
        ) from error
    return cast(Joiner, begin(params, pool))
