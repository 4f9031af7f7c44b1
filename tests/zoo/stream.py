"""What the zoo's list says of each stream, and the list itself: `zoo.json`, one object a stream."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

LIST = "zoo.json"
STREAMS = Path(__file__).with_name("streams")


@dataclass(frozen=True, slots=True)
class Stream:
    """One file of the zoo, named `name` beside the list.

    `command` is what a person would type to get it from `plain`, the name of what was encoded
    ("" where it came ready made). `container` is what frames it: gzip, zlib, deflate (no frame),
    bzip2, xz, lzma, zstd, zip, deb, pack. `plain_size` and `plain_sha256` are of what it decodes
    to, and None where that is not one stream (zip, deb, pack) or nothing whole comes out."""

    name: str
    encoder: str
    version: str
    command: str
    container: str
    size: int
    sha256: str
    plain: str
    plain_size: int | None
    plain_sha256: str | None


def read(folder: Path = STREAMS) -> list[Stream]:
    """The streams listed in `folder`; none where there is no list."""
    path = folder / LIST
    if not path.exists():
        return []
    return [Stream(**fields) for fields in json.loads(path.read_bytes())]


def write(folder: Path, streams: Iterable[Stream]) -> None:
    """List `streams`, by name. A reader sees the old list or the new one, whole."""
    ordered = sorted(streams, key=lambda stream: stream.name)
    lines = ",\n".join(json.dumps(asdict(stream)) for stream in ordered)
    new = folder / f".{LIST}.new"
    new.write_text(f"[\n{lines}\n]\n")
    os.replace(new, folder / LIST)
