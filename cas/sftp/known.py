"""What is known of files' contents before anything is fetched."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from cas.agent.spool import Spool
from cas.entry import Content
from cas.ids import EMPTY_DIGEST, Digest
from cas.sftp.fetch import Fetched
from cas.sftp.here import Here
from cas.sftp.remote import Remote
from cas.transport.sftp import Attributes


@dataclass(slots=True, eq=False)
class Wanted:
    """A regular file: its entry path, where the server has it, and what it is. `content` if that is
    known. By the far end's commands: `sum`, its SHA-256, and `link`, what its names have in common.
    `coming`, once it is being fetched, in `reserved` bytes of room."""

    path: bytes
    server_path: bytes
    seen: Attributes
    content: Content | None = None
    sum: Digest | None = None
    link: bytes = b""
    coming: Future[Fetched] | None = None
    reserved: int = 0


@dataclass(frozen=True, slots=True)
class Got:
    """A file's content, and what the file was when it was had; flags for its entry."""

    content: Content
    seen: Attributes
    flags: int = 0


class Known:
    """What the store says, of the same path or, with the far end's help, of the same content. What
    it needs of recipes goes to `spool`."""

    def __init__(self, remote: Remote, here: Here, spool: Spool) -> None:
        self._remote = remote
        self._here = here
        self._spool = spool

    def decide(self, files: Sequence[Wanted]) -> None:
        """Set what is known of the contents of these files."""
        for file in files:
            if not file.seen.size:
                file.content = Content(0, EMPTY_DIGEST, 0)
            else:
                self._know(file, self._here.content_at(file.path, file.seen))
        self._ask(files)
        for file in files:
            if file.content is None and file.sum is not None:
                self._know(file, self._here.content_of(file.sum, file.seen.size))

    def _ask(self, files: Sequence[Wanted]) -> None:
        """Set what commands at the far end tell, of the same file only: size and time must be those
        that were seen, also after it was hashed."""
        unknown = [file for file in files if file.content is None]
        sums = self._remote.sums([(file.server_path, file.seen.size) for file in unknown])
        stats = self._remote.stats(
            [f.server_path for f in files if f.server_path in sums or f.seen.links > 1]
        )
        for file in files:
            told = stats.get(file.server_path)
            if told is not None and (told.size, told.mtime) == (file.seen.size, file.seen.mtime):
                file.sum = sums.get(file.server_path)
                file.link = told.link

    def _know(self, file: Wanted, content: Content | None) -> None:
        """Take a content that the store has; its recipes, too, may be asked for."""
        if content is not None:
            for part in content.parts:
                self._spool.put(part, self._here.recipe(part))
            file.content = content
