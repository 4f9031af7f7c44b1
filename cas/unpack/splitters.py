"""Which module takes each form of compressed stream apart. One is imported when it is met."""

from __future__ import annotations

from concurrent.futures import Executor
from importlib import import_module
from typing import cast

from cas.codec.base import Splitter
from cas.codec.deflate import DeflateSplitter, Encoder
from cas.unpack.detect import Form
from cas.unpack.limits import Budget

# In each there is `splitter(head, budget)`, which gives nothing for what the codec cannot do.
OTHERS = {
    Form.BZIP2: "cas.codec.bzip2",
    Form.XZ: "cas.codec.xz",
    Form.ZSTD: "cas.codec.zstd",
}


class CodecSplitters:
    """The splitters of `cas.codec`; `pool` is for what they do side by side. What is learnt of one
    deflate stream is tried on the next, also on that of another archive: to find an encoder out
    costs much more than a small stream."""

    def __init__(self, pool: Executor) -> None:
        self._pool = pool
        self._encoder = Encoder()

    def begin_archive(self) -> None:
        """Another archive follows, in which nothing has been in vain yet."""
        self._encoder.given_up = 0

    def deflate(self) -> Splitter | None:
        """For a raw deflate stream; nothing if those before it were no use."""
        return None if self._encoder.is_hopeless else DeflateSplitter(self._pool, self._encoder)

    def other(self, form: Form, head: bytes, budget: Budget) -> Splitter | None:
        """For a stream of another form; nothing where its library is not there."""
        try:
            module = import_module(OTHERS[form])
        except ImportError:
            return None
        return cast(Splitter | None, module.splitter(head, budget))
