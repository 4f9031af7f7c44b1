"""The line that an SFTP server gives beside a name, meant to be shown: what `ls -l` would print.

SFTP version 3 tells owners by number only, and not at all how many names an inode has; this line,
of which the protocol promises nothing, has both with OpenSSH and most others. It is believed only
where it fits what is known besides.
"""

from __future__ import annotations

from dataclasses import dataclass

LINE_LIMIT = 4096
_FIELDS = 5  # mode, links, user, group, size; then the time and the name


@dataclass(frozen=True, slots=True)
class Told:
    """What the line says: names of user and group, empty when unknown; how many names the inode
    has, 1 when unknown."""

    user: bytes = b""
    group: bytes = b""
    links: int = 1


NOTHING = Told()


def read_longname(line: bytes, uid: int, gid: int, size: int) -> Told:
    """What `line` says of a name of this owner and size; nothing where it does not fit."""
    fields = line.split(None, _FIELDS) if len(line) <= LINE_LIMIT else []
    if len(fields) <= _FIELDS or len(fields[0]) < 10:
        return NOTHING
    _, links, user, group, told_size, _ = fields
    if not links.isdigit() or len(links) > 9 or told_size != b"%d" % size:
        return NOTHING  # a name with a space in it, say
    return Told(_name(user, uid), _name(group, gid), max(1, int(links)))


def _name(text: bytes, number: int) -> bytes:
    """A name, unless it is only the number again."""
    return b"" if text == b"%d" % number or text.isdigit() else text
