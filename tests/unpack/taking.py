"""Takes bytes apart as an agent would, keeps what a store would, and puts them together again."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from unittest.mock import patch

from cas.archive import ArchiveRecipe, decode_any_recipe
from cas.chunker import cut_whole
from cas.codec import registry
from cas.entry import Content
from cas.hashing import digests_of
from cas.ids import Digest, digest_of
from cas.program import Codec
from cas.rebuild.run import block_data, content_blocks
from cas.unpack import builder
from cas.unpack.driver import Splitters
from cas.unpack.file import Surroundings, unpack_file
from tests.rebuild.archives import DictSource
from tests.unpack.carry import JOINERS, CarrySplitters

Joiners = Mapping[Codec, tuple[str, str]]


@dataclass
class Taken:
    """What became of some bytes; `objects` are recipes and skeletons, `chunks` what is in them."""

    data: bytes
    content: Content
    objects: dict[Digest, bytes]
    chunks: dict[Digest, bytes]

    @property
    def recipes(self) -> list[ArchiveRecipe]:
        recipes = [decode_any_recipe(self.objects[part]) for part in self.content.parts]
        return [recipe for recipe in recipes if isinstance(recipe, ArchiveRecipe)]

    @property
    def notes(self) -> list[str]:
        return [note for recipe in self.recipes for note in recipe.notes]

    @property
    def skeleton(self) -> bytes:
        return b"".join(
            self.objects[id_] for recipe in self.recipes for id_ in recipe.ids[: recipe.skeleton]
        )

    @property
    def contents(self) -> list[Digest]:
        return [id_ for recipe in self.recipes for id_ in recipe.ids[recipe.skeleton :]]

    def has(self, data: bytes) -> bool:
        """Whether all chunks of `data`, lying by itself, are among the archive's, in a row."""
        wanted = b"".join(plain_chunks(data))
        return bool(wanted) and wanted in b"".join(self.contents)


def plain_chunks(data: bytes) -> list[Digest]:
    """The ids of the chunks of a plain file."""
    ids = []
    at = 0
    for length in cut_whole(data):
        ids.append(digest_of(data[at : at + length]))
        at += length
    return ids


def take_apart(data: bytes, splitters: Splitters | None = None) -> Taken | None:
    """`data`, or nothing if it is not for taking apart."""
    objects: dict[Digest, bytes] = {}
    chunks: dict[Digest, bytes] = {}

    def recorded(data: bytes, lengths: Sequence[int]) -> list[Digest]:
        ids = digests_of(data, lengths)
        at = 0
        for id_, length in zip(ids, lengths, strict=True):
            chunks[id_] = data[at : at + length]
            at += length
        return ids

    counted: list[int] = []
    with (
        tempfile.TemporaryFile() as file,
        ThreadPoolExecutor(1) as hashing,
        patch.object(builder, "digests_of", recorded),
    ):
        file.write(data)
        file.flush()
        around = Surroundings(
            objects.__setitem__, counted.append, hashing, splitters or CarrySplitters()
        )
        content = unpack_file(file.fileno(), len(data), around)
    if content is None:
        return None
    assert len(data) == sum(counted)
    return Taken(data, content, objects, chunks)


def again(taken: Taken, joiners: Joiners = JOINERS) -> bytes:
    """What the recipes of `taken` rebuild, with toys as a rule."""
    source = DictSource()
    source.held = taken.chunks | taken.objects
    with patch.dict(registry.JOINERS, joiners):
        blocks = content_blocks(taken.content, source)
        return b"".join(piece for block in blocks for piece in block_data(block))


def check(
    data: bytes,
    contained: Sequence[bytes] = (),
    splitters: Splitters | None = None,
    joiners: Joiners = JOINERS,
) -> Taken:
    """`data` taken apart and rebuilt, the files `contained` found in it as they are outside."""
    taken = take_apart(data, splitters)
    assert taken is not None
    assert data == again(taken, joiners)
    for one in contained:
        assert taken.has(one), f"a file of {len(one)} bytes is not there"
    return taken
