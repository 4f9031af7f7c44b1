"""A vector: bytes in hex below a few lines that say what a reader must make of them.

```
format: recipe
about: two chunks, the short form of the program
expect: accept
value: {"size": 3, ...}

4341537201...
```

`expect` is `accept`, with the `value`, or the name of the error that refuses it. In values, bytes
are `b:` and themselves where they are printable ASCII, `x:` and hex elsewhere. Where a reader must
be told something beside the bytes, a line `given` has it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, is_dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
SUFFIX = ".vector"
HEX_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Vector:
    """One case. `value` and `given` are as JSON has them; `body` the encoded bytes."""

    format: str
    name: str
    about: str
    expect: str
    body: bytes
    value: Any = None
    given: Any = None

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return FOLDER / self.format / (self.name + SUFFIX)

    def text(self) -> str:
        """The file's content."""
        lines = [f"format: {self.format}", f"about: {self.about}", f"expect: {self.expect}"]
        if self.given is not None:
            lines.append(f"given: {json.dumps(self.given)}")
        if self.expect == "accept":
            lines.append(f"value: {json.dumps(self.value)}")
        digits = self.body.hex()
        rows = [digits[at : at + HEX_WIDTH] for at in range(0, len(digits), HEX_WIDTH)]
        return "\n".join([*lines, "", *rows, ""])


def load(path: Path) -> Vector:
    """The vector in a file."""
    head, _, body = path.read_text().partition("\n\n")
    said = dict(line.split(": ", 1) for line in head.splitlines())
    value, given = (json.loads(said.get(key, "null")) for key in ("value", "given"))
    return Vector(
        said["format"], path.name.removesuffix(SUFFIX), said["about"], said["expect"],
        bytes.fromhex(body), value, given,
    )  # fmt: skip


def load_all(format_: str) -> list[Vector]:
    """All vectors of one format; there must be some."""
    vectors = [load(path) for path in sorted((FOLDER / format_).glob("*" + SUFFIX))]
    assert vectors, format_
    return vectors


def plain(value: object) -> Any:
    """`value` as JSON can hold it."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if is_dataclass(value):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        readable = value.isascii() and value.decode("ascii").isprintable()
        return "b:" + value.decode("ascii") if readable else "x:" + value.hex()
    return int(value) if isinstance(value, IntEnum) else value


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes vectors of one format."""

    format: str

    def accept(
        self, name: str, about: str, body: bytes, value: object, given: object = None
    ) -> Vector:
        """`body` must be read as `value`."""
        return Vector(self.format, name, about, "accept", body, plain(value), plain(given))

    def refuse(
        self, name: str, about: str, body: bytes, error: str = "FormatError", given: object = None
    ) -> Vector:
        """`body` must be refused with this error."""
        return Vector(self.format, name, about, error, body, given=plain(given))
