"""Every vector says what a reader must make of it, and this reader does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cas import errors
from cas.archive import decode_archive_recipe, encode_archive_recipe
from cas.page import decode_page, encode_page
from cas.recipe import decode_recipe, encode_recipe
from cas.snapshot import decode_snapshot, encode_snapshot
from cas.wire import encode
from tests.formats.reading import READERS
from tests.vectors import make
from tests.vectors.vector import FOLDER, SUFFIX, Vector, load, load_all, plain

ALL = [vector for format_ in READERS for vector in load_all(format_)]


def _name(vector: Vector) -> str:
    return f"{vector.format}-{vector.name}"


@pytest.mark.parametrize("vector", ALL, ids=_name)
def test_the_reader_does_what_the_vector_says(vector: Vector) -> None:
    read = READERS[vector.format]
    if vector.expect == "accept":
        assert vector.value == plain(read(vector))
    else:
        expected = getattr(errors, vector.expect)
        with pytest.raises(expected) as caught:
            read(vector)
        assert expected is caught.type


def test_no_vector_is_left_out() -> None:
    assert sorted(FOLDER.rglob("*" + SUFFIX)) == sorted(vector.path for vector in ALL)


def test_a_vector_is_read_as_it_was_written() -> None:
    for vector in ALL:
        assert vector.text() == vector.path.read_text()
        assert vector == load(vector.path)


def test_vectors_are_still_made_as_they_are() -> None:
    """What zstd compressed, and how a span is best told, may be other bytes tomorrow; everything
    else must not."""
    for vector in make.vectors():
        if vector.format not in ("frame", "side") and (vector.format, vector.name) != (
            "pack",
            "zstd",
        ):
            assert vector.text() == vector.path.read_text(), vector.path


CODECS: dict[str, tuple[Callable[[bytes], Any], Callable[[Any], bytes]]] = {
    "recipe": (decode_recipe, encode_recipe),
    "archive": (decode_archive_recipe, encode_archive_recipe),
    "page": (decode_page, encode_page),
    "snapshot": (decode_snapshot, encode_snapshot),
    "value": (lambda body: READERS["value"](Vector("value", "", "", "", body)), encode),
}


@pytest.mark.parametrize("format_", CODECS)
def test_what_is_accepted_is_written_the_same(format_: str) -> None:
    decode, encode_again = CODECS[format_]
    for vector in load_all(format_):
        if vector.expect == "accept":
            assert vector.body == encode_again(decode(vector.body)), vector.path


@pytest.mark.parametrize("format_", CODECS)
def test_no_beginning_of_a_vector_is_accepted_nor_more(format_: str) -> None:
    """Byte by byte, and with bytes after it."""
    decode, _ = CODECS[format_]
    for vector in load_all(format_):
        if vector.expect == "accept":
            ends = range(len(vector.body)) if len(vector.body) < 1000 else [len(vector.body) - 1]
            for body in [*(vector.body[:end] for end in ends), vector.body + b"\0"]:
                with pytest.raises(errors.FormatError):
                    decode(body)
