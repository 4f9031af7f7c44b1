"""What a file's name says about it."""

import pytest

from cas.redundancy.kinds import kind_of


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (b"a/b.tar.gz", b"tar.gz"),
        (b"a/B.TAR.XZ", b"tar.xz"),
        (b"x.7z", b"7z"),
        (b"usr/lib/libm.so.6", b"so"),
        (b"lib/libprotobuf.so.32.0.12", b"so"),
        (b"weights.bin", b"bin"),
        (b"a.b/Makefile", b""),
        (b"home/u/.bashrc", b""),
        (b"home/u/.config.json", b"json"),
        (b"man/ls.1", b""),
        (b"ncurses_6.4.orig.tar.gz", b"tar.gz"),
        (b"notes.gz", b"gz"),
        (b"v1.2.gz", b"gz"),
        (b"latin.\xe4\xf6", b""),
        (b"x.averyveryverylongextension", b""),
        (b"ends.", b""),
        (b"..so", b""),
        (b".a.tar.gz", b"tar.gz"),
        (b"a..so", b"so"),
        (b"a.so.1.2", b"so"),
    ],
)
def test_kind(path: bytes, kind: bytes) -> None:
    assert kind == kind_of(path)
