"""Builds the recipe of an archive, operation by operation, while the archive is taken apart.

What is written down goes to the level that is open (`begin`, `end`): `skeleton` for headers and
padding, `content` for what contained files hold, each a stream of its own for the chunker. A part
ends wherever it has enough, between two operations; nothing but its recipe is kept of it.

Recipes and skeleton chunks go to `keep`. Skeletons are small, and cannot be had by reading the file
again, so the agent keeps them for the second pass; content can, so it is not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cas.archive import NOTE_LIMIT, NOTES_LIMIT, ArchiveRecipe, encode_archive_recipe
from cas.chunker import Chunker, cut_whole
from cas.entry import Content
from cas.hashing import digests_of
from cas.ids import DIGEST_SIZE, Digest
from cas.program import Begin, Codec, End, Op, Skeleton, Span, Verbatim
from cas.recipe import Copy, Recipe, encode_recipe, recipe_id

# A part is small, since an agent holds several at a time, decoded: of the archive in hand, and of
# those that are read again.
PART_CHUNKS = 2**14
PART_OPS = 2**15
PART_SKELETON = 8 * 2**20  # bytes

_NO_DIGEST = Digest(bytes(DIGEST_SIZE))


@dataclass(slots=True)
class _Part:
    """The part in hand."""

    ids: list[Digest] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    program: list[Op] = field(default_factory=list)
    skeleton: list[bytes] = field(default_factory=list)
    skeleton_size: int = 0
    notes: list[str] = field(default_factory=list)


class Builder:
    """One archive's recipe. `taken` tells how many bytes of the archive have been read by now;
    `keep` is given each recipe and each chunk of a skeleton, with its id, as soon as it is made.

    `finish` must be called at the end, with the archive's digest.
    """

    def __init__(self, keep: Callable[[Digest, bytes], None], taken: Callable[[], int]) -> None:
        self._keep = keep
        self._taken = taken
        self._chunker = Chunker()
        self._part = _Part()
        self._started = 0  # where in the archive the part began
        self._parts: list[Digest] = []
        self._chunks = 0
        self.level = 0

    def skeleton(self, data: bytes) -> None:
        """Write `data` as it is; it is small, and nothing that other files have too."""
        if not data:
            return
        program = self._part.program
        if program and isinstance(program[-1], Skeleton):
            program[-1] = Skeleton(program[-1].size + len(data))
        else:
            self._operate(Skeleton(len(data)))
        self._use(data)

    def content(self, data: bytes) -> None:
        """The next bytes of a contained file, or of whatever else has bytes like a file's."""
        self._copy(self._chunker.feed(data))

    def end_content(self) -> None:
        """The contained file ends; what follows is chunked anew. Must come before anything else is
        written when `content` was."""
        self._copy(self._chunker.finish())

    def small_content(self, data: bytes) -> None:
        """A whole contained file, of at most `MIN_SIZE` bytes."""
        if data:
            self._copy([memoryview(data)])

    def begin(self, codec: Codec, params: bytes) -> int:
        """Open a level over the one that is open; its number."""
        self._operate(Begin(codec, len(params)))
        self._use(params)
        self.level += 1
        return self.level

    def span(self, level: int, plain: int, side: bytes) -> None:
        """The codec of `level` takes the next `plain` bytes of it."""
        self._operate(Span(level, plain, len(side)))
        self._use(side)

    def verbatim(self, level: int, data: bytes) -> None:
        """After the spans so far, the codec of `level` writes `data` as it is."""
        self._operate(Verbatim(level, len(data)))
        self._use(data)

    def end(self, size: int) -> None:
        """Close the level that is open; its codec writes `size` whole bytes."""
        self._operate(End(size))
        self.level -= 1

    def note(self, reason: str) -> None:
        """Remember why something was left as it is, for people to read."""
        notes = self._part.notes
        if len(notes) < NOTES_LIMIT - 1:
            notes.append(reason[:NOTE_LIMIT])
        elif len(notes) < NOTES_LIMIT:
            notes.append("and more")

    def finish(self, digest: Digest) -> Content:
        """The content of the archive, which has this digest. If it was none after all, it is that
        of a plain file."""
        size = self._taken()
        part = self._part
        if not self._parts and len(part.program) == 1 and part.ids and not part.notes:
            return self._finish_plain(size, digest)
        self._end_part(_NO_DIGEST if self._parts else digest)
        return Content(size, digest, self._chunks, tuple(self._parts))

    def _finish_plain(self, size: int, digest: Digest) -> Content:
        """One run of content is a plain file, whose recipe needs no program."""
        ids, lengths = tuple(self._part.ids), tuple(self._part.lengths)
        if len(ids) == 1:
            return Content(size, digest, 1)
        encoded = encode_recipe(Recipe(size, digest, ids, lengths))
        id_ = recipe_id(encoded)
        self._keep(id_, encoded)
        return Content(size, digest, len(ids), (id_,))

    def _copy(self, chunks: list[memoryview]) -> None:
        if not chunks:
            return
        part = self._part
        lengths = [len(chunk) for chunk in chunks]
        part.ids += _digests(chunks, lengths)
        part.lengths += lengths
        if part.program and isinstance(part.program[-1], Copy):
            part.program[-1] = Copy(part.program[-1].count + len(chunks))
        else:
            self._operate(Copy(len(chunks)))
        self._end_when_enough()

    def _operate(self, op: Op) -> None:
        self._part.program.append(op)

    def _use(self, data: bytes) -> None:
        self._part.skeleton.append(data)
        self._part.skeleton_size += len(data)
        self._end_when_enough()

    def _end_when_enough(self) -> None:
        part = self._part
        if (
            len(part.ids) >= PART_CHUNKS
            or len(part.program) >= PART_OPS
            or part.skeleton_size >= PART_SKELETON
        ):
            self._end_part(_NO_DIGEST)

    def _end_part(self, digest: Digest) -> None:
        part, self._part = self._part, _Part()
        if not part.program:
            return
        ids, lengths = self._keep_skeleton(b"".join(part.skeleton))
        taken = self._taken()
        recipe = ArchiveRecipe(
            taken - self._started, digest, (*ids, *part.ids), (*lengths, *part.lengths), len(ids),
            tuple(part.program), tuple(part.notes),
        )  # fmt: skip
        self._started = taken
        encoded = encode_archive_recipe(recipe)
        self._parts.append(recipe_id(encoded))
        self._chunks += len(recipe.ids)
        self._keep(self._parts[-1], encoded)

    def _keep_skeleton(self, data: bytes) -> tuple[list[Digest], list[int]]:
        lengths = cut_whole(data)
        ids = digests_of(data, lengths)
        at = 0
        for id_, length in zip(ids, lengths, strict=True):
            self._keep(id_, data[at : at + length])
            at += length
        return ids, lengths


def _digests(chunks: list[memoryview], lengths: list[int]) -> list[Digest]:
    """The ids of chunks that lie in one buffer, from its start and end to end."""
    buffer = chunks[0].obj
    assert isinstance(buffer, bytes)
    return digests_of(buffer, lengths)
