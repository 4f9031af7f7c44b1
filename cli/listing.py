"""How an entry is shown: a line like that of `ls -l`, or JSON without loss."""

from __future__ import annotations

import base64
import stat
from collections.abc import Sequence

from cas.entry import DEVICES, HOLE_DIGEST, INCONSISTENT, TYPES, UNREADABLE, Entry, Kind
from cli import output

_FLAGS = {INCONSISTENT: "inconsistent", UNREADABLE: "unreadable", HOLE_DIGEST: "many holes"}
DIGEST_SHOWN = 12  # hex digits
PACKED_SHOWN = 3


def kind_name(kind: Kind) -> str:
    """`file`, `character device`."""
    return kind.name.lower().replace("_", " ")


def notes_of(entry: Entry) -> list[str]:
    """What is special about an entry."""
    return [name for flag, name in _FLAGS.items() if entry.flags & flag]


def long_line(entry: Entry, packed: Sequence[str] = ()) -> str:
    """Kind and mode, owner and group, size or device, time, digest, path, target, notes; and what
    of an archive was left `packed`, some of it."""
    digest = entry.content.digest.hex()[:DIGEST_SHOWN] if entry.content else "-"
    target = f" -> {output.show(entry.target)}" if entry.target else ""
    said = [*notes_of(entry), *map(output.printable, packed[:PACKED_SHOWN])]
    if len(packed) > PACKED_SHOWN:
        said.append(f"and {len(packed) - PACKED_SHOWN} more")
    notes = f" [{', '.join(said)}]" if said else ""
    return (
        f"{stat.filemode(TYPES[entry.kind] | entry.owner.mode)} {_owner(entry):<17} "
        f"{_size(entry):>13} {output.moment(entry.mtime_ns // 10**6)} {digest:<{DIGEST_SHOWN}} "
        f"{output.show_path(entry.path)}{target}{notes}"
    )


def _owner(entry: Entry) -> str:
    owner = entry.owner
    user = output.show(owner.user) or str(owner.uid)
    return f"{user}/{output.show(owner.group) or owner.gid}"


def _size(entry: Entry) -> str:
    if entry.kind in DEVICES and entry.device is not None:
        return f"{entry.device[0]}, {entry.device[1]}"
    return str(entry.size) if entry.kind is Kind.FILE and entry.size >= 0 else "-"


def entry_fields(entry: Entry, packed: Sequence[str] = ()) -> dict[str, object]:
    """All of an entry, and what of an archive was left `packed`; what it does not have is left
    out."""
    owner, content = entry.owner, entry.content
    fields: dict[str, object] = {
        **output.name_fields("path", b"/" + entry.path),
        "kind": kind_name(entry.kind),
        "mode": f"{owner.mode:04o}",
        "uid": owner.uid,
        "gid": owner.gid,
        **(output.name_fields("user", owner.user) if owner.user else {}),
        **(output.name_fields("group", owner.group) if owner.group else {}),
        "mtime_ns": entry.mtime_ns,
    }
    if entry.kind is Kind.FILE:
        fields["size"] = entry.size
    if content is not None:
        fields |= {"sha256": content.digest.hex(), "chunks": content.chunk_count}
    if entry.kind is Kind.SYMLINK:
        fields |= output.name_fields("target", entry.target)
    if entry.device is not None:
        fields["device"] = list(entry.device)
    if entry.link:
        fields["link"] = entry.link.hex()
    if entry.xattrs:
        fields["xattrs"] = [
            {**output.name_fields("name", name), "value_b64": base64.b64encode(value).decode()}
            for name, value in entry.xattrs
        ]
    if entry.flags:
        fields["notes"] = notes_of(entry)
    if packed:
        fields["packed"] = list(packed)
    return fields
