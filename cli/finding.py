"""Goes over all names that are held, those in archives too, for `cas find`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from cas.audit.filemap import FileMap
from cas.audit.lines import Origins
from cas.audit.members import Mark
from cas.audit.trace import Tracer
from cas.entry import Content, Entry, Kind, Problem
from cas.errors import CasError, NotHeldError
from cas.find import Wanted
from cas.ids import DIGEST_SIZE, Digest
from cas.rebuild.run import has_program
from cas.store.store import Store
from cli.inside import Inside
from cli.listing import entry_fields
from cli.selection import Selected

ChunksTest = Callable[[Sequence[Digest]], bool]


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry of a tier, or one that lies `inside` an archive."""

    tier: str
    entry: Entry
    inside: Inside | None = None

    def fields(self) -> dict[str, object]:
        """All of it for JSON, as of `cas ls`."""
        shown = entry_fields(self.entry) if self.inside is None else self.inside.fields(self.entry)
        return {"tier": self.tier, **shown}


@dataclass(slots=True)
class Search:
    """What is searched for, and what could not be looked into. `digest` is the beginning of one in
    hex; `origins` are those of a tier or source."""

    store: Store
    tracer: Tracer
    wanted: Wanted
    digest: str = ""
    origins: Origins | None = None
    archives: bool = True
    problems: list[tuple[str, Problem]] = field(default_factory=list)

    def hits(self, selected: Selected) -> Iterator[Hit]:
        """What is found, in path order, members of an archive right after it and in its order.
        Raises DamageError where a page cannot be read; what is wrong with an archive is noted."""
        tier = selected.snapshot.tier
        for entry in selected.entries():
            if self.wanted.has(entry) and self._has_content(entry):
                yield Hit(tier, entry)
            content = entry.content
            if self.archives and content is not None and content.parts:
                try:
                    yield from self._members(tier, entry, content)
                except CasError as error:
                    problem = Problem(entry.path, f"cannot be looked into: {error.what}")
                    self.problems.append((tier, problem))

    def _members(self, tier: str, archive: Entry, content: Content) -> Iterator[Hit]:
        if not has_program(content, self.store.reader):
            return
        inside = Inside(archive, content, b"")
        if not self.digest and self.origins is None:
            for entry in inside.entries(self.store):
                if self.wanted.has(entry):
                    yield Hit(tier, entry, inside)
            return
        where = self.tracer.pages.map(content, archive.path)
        for mark, chunks in _chunks_by_member(where):
            entry = inside.shown(mark.entry, mark.path)
            if self.wanted.has(entry) and entry.kind is Kind.FILE and self._has_chunks(chunks):
                yield Hit(tier, entry, inside)

    def _has_content(self, entry: Entry) -> bool:
        if not self.digest and self.origins is None:
            return True
        content = entry.content
        if content is None or not content.digest.hex().startswith(self.digest):
            return False
        return self.origins is None or self._is_from(lambda: self._chunks(content))

    def _chunks(self, content: Content) -> Sequence[Digest]:
        if not content.size:
            return ()
        return self.tracer.pages.map(content).ids if content.parts else (content.digest,)

    def _has_chunks(self, chunks: Sequence[Digest]) -> bool:
        """Whether a member that is these chunks is wanted."""
        if self.digest and not self._is_digest_of(chunks):
            return False
        return self.origins is None or self._is_from(lambda: chunks)

    def _is_digest_of(self, chunks: Sequence[Digest]) -> bool:
        """Of one chunk its id is the digest. That of several is known where a file that lies by
        itself has just these."""
        if len(chunks) == 1:
            return chunks[0].hex().startswith(self.digest)
        if len(chunks) < 2 or len(self.digest) < 2 * DIGEST_SIZE:
            return False
        return tuple(chunks) == self._known()

    def _known(self) -> tuple[Digest, ...]:
        """The chunks of the file that has the digest."""
        parts = self.store.index.recipes_of(Digest(bytes.fromhex(self.digest)))
        return tuple(id_ for part in parts or () for id_ in self.store.recipe(part).ids)

    def _is_from(self, chunks: Callable[[], Sequence[Digest]]) -> bool:
        """Whether any of the chunks was first had from the origins."""
        assert self.origins is not None
        try:
            traces = self.tracer.traces(chunks())
            return any(t is not None and self.origins.has(t.origin) for t in traces)
        except NotHeldError:  # its recipe has not come
            return False


def _chunks_by_member(where: FileMap) -> Iterator[tuple[Mark, list[Digest]]]:
    """Each member of an archive, and the chunks that are its own."""
    members = where.members
    for mark, numbers in zip(members.marks, members.own(), strict=True):
        yield mark, [where.ids[where.number_of(number)] for number in numbers]
