"""One example of every message, for the tests of messages and sessions."""

from __future__ import annotations

from cas.entry import Problem
from cas.ids import digest_of
from cas.messages import (
    PROTOCOL,
    Ack,
    Ahead,
    Backlog,
    Beat,
    Bye,
    Cancel,
    Credit,
    Doubt,
    Hello,
    Look,
    Message,
    Missed,
    Page,
    Piece,
    Progress,
    Recipes,
    Refused,
    Same,
    Scan,
    Scanned,
    Tune,
    Want,
)

ID = digest_of(b"x")
HELLO = Hello(PROTOCOL, "0.1.0", "chunker", (("host", "npu"), ("python", "3.11")))
PROBLEM = Problem(b"a/\xff", "cannot be read", "podman unshare", True)
EXAMPLES: tuple[Message, ...] = (
    HELLO,
    Scan(1, "00-context", (b"/opt/\xff", b"~/x"), ("*.o",), ("keep.o",), (ID, digest_of(b"y"))),
    Page(1, 0, b"page" * 200),
    Same(1, 1, ID),
    Look(1, (ID,)),
    Recipes(1, (b"recipe", b"other")),
    Scanned(1, 2, (PROBLEM,), 1, 2**40),
    Want(1, 0, b"\x05\x00\x80"),
    Piece(2**40, 3, 65536, 65540, b"data"),
    Missed(1, 0, ((7, "gone"),)),
    Ack(((2**40, 3), (2**40, 4))),
    Beat(9),
    Tune(19, 1 << 24),
    Progress(1, 10, 2**40, b"home/\xfe"),
    Cancel(1),
    Refused(0, "no such path", "/x", "look there"),
    Bye(),
    Credit(2**40, 2**41),
    Doubt(3, 2),
    Backlog(2**30),
    Ahead("01-next", (b"/opt",), ("*.o",), ()),
)
