"""A command line that every login shell of the far end reads alike.

sshd gives the text of an exec request to the user's login shell, as `SHELL -c TEXT`, whatever
shell that is: sh, bash, dash, zsh and ksh agree on quoting, fish and tcsh have rules of their own.
`exec sh -c '...'` gets to a POSIX shell with words that mean the same in all of them: between
single quotes everything stands for itself in all of these shells, except a quote (ends the string
everywhere), a backslash (an escape in fish) and `!` (history in tcsh). Those three go outside the
quotes, where a backslash before them makes them plain in every one. A line break cannot be
written for tcsh and sh alike, so it is refused.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import groupby

from cas.errors import UsageError

_ESCAPED = frozenset("'\\!")
_REFUSED = frozenset("\n\r\0")


def remote_command(argv: Sequence[str]) -> str:
    """The text that makes any login shell replace itself by the program argv[0], looked up on its
    PATH, with exactly these arguments. Raises UsageError for what cannot be written."""
    if not argv or not argv[0]:
        raise UsageError("the command to start the agent is empty")
    line = "exec " + shlex.join(argv)
    if _REFUSED & set(line) or not _is_unicode(line):
        raise UsageError(
            "the command to start the agent cannot be given to a login shell",
            where=repr(line),
            advice="leave out line breaks and bytes that are no text, or put it in a script there",
        )
    return "exec sh -c " + _quoted(line)


def _quoted(line: str) -> str:
    runs = groupby(line, _ESCAPED.__contains__)
    return "".join(
        "".join("\\" + char for char in run) if escaped else "'" + "".join(run) + "'"
        for escaped, run in runs
    )


def _is_unicode(line: str) -> bool:
    try:
        line.encode()
    except UnicodeEncodeError:
        return False
    return True
