"""Makes entries of an archive's members, to be restored like those of a tier.

A member that is whole chunks of the store gets a recipe of those, and costs no reading here. What
must be made first, by inflating a small member or rebuilding an archive in the archive, goes to a
scratch file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cas.entry import DEVICES, HOLE_DIGEST, Content, Entry, Kind, Owner, Problem, path_order
from cas.ids import DIGEST_SIZE, EMPTY_DIGEST, Digest, digest_of
from cas.inside.look import SEPARATOR, Found, InnerEntry
from cas.inside.members import find_members, normal_path, split_path
from cas.inside.scratch import Scratch
from cas.rebuild.chunks import Chunk
from cas.recipe import PART_CHUNKS, Recipe, encode_recipe

SCRATCH_CHUNK = 2**20  # bytes
_NO_DIGEST = Digest(bytes(DIGEST_SIZE))
FILE_MODE, DIRECTORY_MODE = 0o644, 0o755  # where an archive does not say


def member_entries(
    content: Content, path: bytes, scratch: Scratch, *, name: bytes = b""
) -> tuple[list[Entry], list[Problem]]:
    """The members at and below `path` of an archive in path order, under their paths in it, and
    what is left out. Archives among them are files. What they hold is to be read from `scratch`.
    Raises NotHeldError, DamageError, FormatError; OSError where there is no room."""
    before, inner = split_path(path)
    taken: dict[bytes, Entry] = {}
    links: dict[bytes, bytes] = {}
    problems: list[Problem] = []
    for found in find_members(content, scratch, name=name):
        at = normal_path(found.entry.path)
        rest = at[len(before) :]
        if not at.startswith(before) or SEPARATOR in rest or not rest:
            continue
        if inner and rest != inner and not rest.startswith(inner + b"/"):
            continue
        links.pop(rest, None)
        if found.entry.kind in DEVICES:
            problems.append(Problem(at, "a device, which is not made out of an archive"))
        elif found.entry.link:
            links[rest] = normal_path(found.entry.link)
        else:
            taken[rest] = _entry(rest, found, scratch)
    return _linked(taken, links, problems), problems


def _entry(path: bytes, found: Found, scratch: Scratch) -> Entry:
    inner = found.entry
    if inner.kind is Kind.FILE:
        content = _content(found, scratch)
        flags = HOLE_DIGEST if content.parts else 0  # it is checked chunk by chunk
        return Entry(path, inner.kind, _owner(inner), inner.mtime_ns, content.size, content,
                     flags=flags)  # fmt: skip
    return Entry(path, inner.kind, _owner(inner), inner.mtime_ns, target=inner.target)


def _owner(inner: InnerEntry) -> Owner:
    usual = DIRECTORY_MODE if inner.kind is Kind.DIRECTORY else FILE_MODE
    return Owner(inner.mode or usual, inner.uid, inner.gid)


def _content(found: Found, scratch: Scratch) -> Content:
    chunks = found.chunks()
    if chunks is None:
        chunks = [(scratch.put(piece), len(piece)) for piece in _pieces(found.data())]
    size = sum(length for _, length in chunks)
    if len(chunks) < 2:
        return Content(size, chunks[0][0] if chunks else EMPTY_DIGEST, len(chunks))
    parts = [
        _recipe(chunks[at : at + PART_CHUNKS], scratch) for at in range(0, len(chunks), PART_CHUNKS)
    ]
    return Content(size, _NO_DIGEST, len(chunks), tuple(parts))


def _recipe(chunks: list[Chunk], scratch: Scratch) -> Digest:
    ids, lengths = zip(*chunks, strict=True)
    return scratch.put(encode_recipe(Recipe(sum(lengths), _NO_DIGEST, ids, lengths)))


def _pieces(data: Iterator[bytes]) -> Iterator[bytes]:
    """`data` in pieces of a good size."""
    held = bytearray()
    for piece in data:
        held += piece
        while len(held) >= SCRATCH_CHUNK:
            yield bytes(held[:SCRATCH_CHUNK])
            del held[:SCRATCH_CHUNK]
    if held:
        yield bytes(held)


def _linked(
    taken: dict[bytes, Entry], links: dict[bytes, bytes], problems: list[Problem]
) -> list[Entry]:
    """All that is restored, further names of a file made entries of the same file."""
    for path, target in links.items():
        first = taken.get(target)
        if first is None:
            problems.append(Problem(path, f"another name of {target!r}, which is not restored"))
            continue
        taken[target] = first = replace(first, link=digest_of(target))
        taken[path] = replace(first, path=path)
    return [taken[path] for path in sorted(taken, key=path_order)]
