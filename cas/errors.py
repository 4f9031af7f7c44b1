"""Every exception of cas, with the exit code it leads to.

Each one says what is wrong, where, and what to do; `str()` is the one line a user sees. Exceptions
of other libraries are mapped to these at the edge that meets them (`transport/`, `indexes/env.py`,
the format modules). Whose fault it is shows in the class: `UsageError` the caller's, `PeerError`
the far end's, `FormatError` the bytes', `StoreError` the store's.
"""

from __future__ import annotations

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_LEFT_OUT = 3
EXIT_NO_STORE = 10
EXIT_LOCKED = 11
EXIT_DAMAGE = 12
EXIT_INTERRUPTED = 130


class CasError(Exception):
    """Base of all: `what` went wrong, `where` (path, host, key), and `advice` on what to do."""

    exit_code = EXIT_FAILED

    def __init__(self, what: str, *, where: str = "", advice: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.advice = advice

    def __str__(self) -> str:
        line = f"{self.where}: {self.what}" if self.where else self.what
        return f"{line} ({self.advice})" if self.advice else line


class UsageError(CasError):
    """The command line asks for something that makes no sense."""

    exit_code = EXIT_USAGE


class PlanError(UsageError):
    """The plan file is wrong; `where` names file, line and key."""


class StoreError(CasError):
    """The store cannot do what is asked (full disk, newer version, unfit file system)."""


class StoreMissing(StoreError):
    """There is no store at this path."""

    exit_code = EXIT_NO_STORE


class StoreLocked(StoreError):
    """Another process is writing to the store."""

    exit_code = EXIT_LOCKED


class DamageError(StoreError):
    """Stored bytes are not what was stored."""

    exit_code = EXIT_DAMAGE


class FormatError(CasError):
    """Bytes that are not of the format they should be; nothing of them was used."""


class LimitError(FormatError):
    """A length or count that is over its limit; nothing was allocated for it."""


class PeerError(CasError):
    """The far end broke the protocol, or speaks another version of it."""


class TransportError(CasError):
    """The connection could not be made or was lost; the work can be taken up again."""


class HostKeyError(TransportError):
    """The host's key is unknown or has changed."""


class LoginError(TransportError):
    """The host was reached and refused the login."""


class SourceError(CasError):
    """The far end cannot do what is asked (no such path, outside its roots)."""


class RestoreError(CasError):
    """A file could not be written where it was wanted."""


class NotHeldError(CasError):
    """Content that is asked for is not in the store (not fetched yet, or no such name)."""
