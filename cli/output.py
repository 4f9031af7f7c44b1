"""How cas speaks. Every command follows these rules, and only through this file.

- What was asked for goes to standard output; everything else that is said (what is going on, what
  went wrong) goes to standard error. So `cas ls | grep` and `cas cat > file` see results alone.
- With `--json` standard output has one JSON object a line and nothing else. It is plain ASCII:
  right under any locale, and nothing in it can drive a terminal.
- An error is one line: `cas: where: what is wrong (what to do)`. No traceback, except for a mistake
  in cas itself.
- Colours and bold only on a terminal, and not with NO_COLOR (https://no-color.org) or TERM=dumb.
  What they say is said in words too.
- Names at a source are bytes and may be anything. People see them by `show`: one line, no control
  characters, different names different. In JSON a name that is no UTF-8 has its bytes beside it
  (`name_fields`), so that nothing is lost.
- Sizes are decimal (1 kB = 1000 bytes), as on the labels of disks and links; JSON has bytes.
- Only a log line has a time, only a question has a question mark, and nothing is asked (`ask`)
  unless somebody is there to answer: in a script the answer is no.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TextIO

from cas import jsonnames
from cas.errors import CasError

BOLD, RED, YELLOW = "1", "31", "33"
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_CSI = "\x1b["


def result(text: str) -> None:
    """One line of what was asked for."""
    sys.stdout.write(text + "\n")


def json_line(fields: Mapping[str, object]) -> None:
    """One JSON object on a line of its own."""
    sys.stdout.write(json.dumps(fields, separators=(",", ":")) + "\n")


def json_event(event: str, fields: Mapping[str, object]) -> None:
    """One of a series of JSON objects, there at once for whoever reads along."""
    json_line({"event": event, **fields})
    sys.stdout.flush()


def say(text: str) -> None:
    """One line of talk."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def can_ask() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str) -> bool:
    """Whether the user says yes; no where nobody is there."""
    if not can_ask():
        return False
    sys.stderr.write(f"{printable(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def say_error(error: CasError | str) -> None:
    """The one line that says why a command failed; several faults of a plan take one each."""
    first, *rest = str(error).splitlines() or [""]
    say("\n".join([f"{paint('cas:', RED, sys.stderr)} {printable(first)}", *map(printable, rest)]))


def paint(text: str, style: str, stream: TextIO) -> str:
    """`text` in a style, if `stream` shows any."""
    return f"{_CSI}{style}m{text}{_CSI}0m" if has_colours(stream) else text


def has_colours(stream: TextIO) -> bool:
    """Whether `stream` is a terminal whose user wants colours."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not plain


def survive_any_locale() -> None:
    """Let no character that the terminal's encoding lacks end a command."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def show(name: bytes) -> str:
    r"""A name for people, on one line: `\xff` for what is no UTF-8 or drives a terminal, `\\` for
    a backslash; so different names look different."""
    text = name.decode("utf-8", "surrogateescape").replace("\\", "\\\\")
    return printable(text)


def show_path(path: bytes) -> str:
    """An entry's path as its source knows it, absolute."""
    return show(b"/" + path)


def printable(text: str) -> str:
    """`text` with everything spelt out that is not for the eye."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _spelt(c) for c in text)


def _spelt(char: str) -> str:
    if "\udc80" <= char <= "\udcff":  # a byte, by surrogateescape
        return f"\\x{ord(char) - 0xDC00:02x}"
    if "\x80" <= char <= "\xff":  # not \\x: that is for bytes
        return f"\\u{ord(char):04x}"
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


name_fields = jsonnames.name_fields  # as all that a command prints, through here
Sizes = Callable[[int], str]  # see `sizes`


def size(count: float) -> str:
    """Bytes for people: `0 B`, `999 B`, `1.23 MB`, `436 MB`; three digits that count."""
    value, unit = float(count), 0
    while round(value) >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    if unit == 0:
        return f"{value:.0f} B"
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f} {_UNITS[unit]}"


def sizes(exact: bool) -> Sizes:
    """How a command writes sizes: rounded, or with `--bytes` all of their digits."""
    return number if exact else size


def number(count: int) -> str:
    """A count with its thousands apart: `12,345`."""
    return f"{count:,}"


def plural(count: int, one: str, many: str = "") -> str:
    """`1 name`, `2 names`."""
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


def duration(seconds: float) -> str:
    """A time for people, in its two largest units: `7 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`."""
    whole = max(0, round(seconds))
    for unit, below, name, smaller in (
        (86400, 3600, "d", "h"),
        (3600, 60, "h", "min"),
        (60, 1, "min", "s"),
    ):
        if whole >= unit:
            rest = whole % unit // below
            return f"{whole // unit} {name}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


def moment(ms: int) -> str:
    """A time of the clock, in the user's time zone."""
    return datetime.fromtimestamp(ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def clock(ms: int) -> str:
    """The same without its day: `14:02:59`."""
    return datetime.fromtimestamp(ms / 1000).astimezone().strftime("%H:%M:%S")
