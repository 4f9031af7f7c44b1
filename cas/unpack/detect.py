"""What a source is, by its first bytes and never by a name.

The answer says which parser to try. It may be wrong, then the parser finds nothing, and the source
is what it was: plain content. What has only two bytes to know it by is tried out here.
"""

from __future__ import annotations

import zlib
from enum import Enum

from cas.unpack import ar, gitpack, gzip
from cas.unpack.tarheader import BLOCK, parse_header
from cas.unpack.zlibheader import is_zlib_header

HEAD = BLOCK  # bytes that are enough to tell
TRIAL = 64 * 1024  # bytes that must inflate without an error, where there are so many

_STUBS = (b"MZ", b"\x7fELF", b"#!")  # programs that may have a zip at their end
_BZIP2_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")  # a first block, or the end of an empty stream
_SKIPPABLE = tuple(bytes([0x50 + n]) + b"\x2a\x4d\x18" for n in range(16))


class Form(Enum):
    """The forms that are known."""

    GZIP = "gzip"
    ZIP = "zip"
    STUB = "program"  # with a zip behind it, perhaps
    TAR = "tar"
    AR = "ar"
    PACK = "git pack"
    ZLIB = "zlib"
    BZIP2 = "bzip2"
    XZ = "xz"
    ZSTD = "zstd"


def detect(head: bytes) -> Form | None:
    """The form of what begins with `head`: `HEAD` bytes of it, or all. A zlib stream is only
    likely."""
    for form, matches in _MAGIC:
        if matches(head):
            return form
    if len(head) >= BLOCK and parse_header(head[:BLOCK]) is not None:
        return Form.TAR
    return Form.ZLIB if is_zlib_header(head) else None


def _is_zip(head: bytes) -> bool:
    # An archive without members is its end record, and nothing to take apart.
    return head[:4] == b"PK\x03\x04" and len(head) >= 30


def _is_bzip2(head: bytes) -> bool:
    return head[:3] == b"BZh" and head[3:4] in b"123456789" and head[4:10] in _BZIP2_BLOCKS


_MAGIC = (
    (Form.GZIP, gzip.is_header),
    (Form.ZIP, _is_zip),
    (Form.AR, lambda head: head[:8] == ar.MAGIC),
    (Form.PACK, gitpack.is_header),
    (Form.BZIP2, _is_bzip2),
    (Form.XZ, lambda head: head[:6] == b"\xfd7zXZ\0"),
    (Form.ZSTD, lambda head: head[:4] == b"\x28\xb5\x2f\xfd" or head[:4] in _SKIPPABLE),
    (Form.STUB, lambda head: head.startswith(_STUBS)),
)


def inflates(data: bytes) -> bool:
    """Whether a zlib stream that begins with `data`, `TRIAL` bytes of it or all, is one so far."""
    inflater = zlib.decompressobj()
    try:
        while data and not inflater.eof:
            inflater.decompress(data, TRIAL)
            data = inflater.unconsumed_tail
    except zlib.error:
        return False
    return True
