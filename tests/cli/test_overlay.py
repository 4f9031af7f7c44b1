"""An index over another answers as every index does, and leaves the other as it was."""

from pathlib import Path

import pytest

from cas.interfaces import Index
from cas.store.memory_index import MemoryIndex
from cli.overlay import OverlayIndex
from tests.indexes.sample import batch, digest, holds
from tests.indexes.test_index import *  # noqa: F403 - the suite of all indexes, with this fixture


@pytest.fixture  # type: ignore[no-redef]  # it stands in for the suite's
def index() -> Index:
    """One over an empty one."""
    return OverlayIndex(MemoryIndex(), Path(), MemoryIndex())


def test_what_either_has_is_there_and_only_one_is_written_to() -> None:
    under = MemoryIndex()
    for number in (0, 2):
        under.commit(batch(number))
    both = OverlayIndex(under, Path(), MemoryIndex())
    for number in (1, 3):
        assert not holds(both, number)
        both.commit(batch(number))
    assert all(holds(both, number) for number in range(4))
    assert [True, False, True, False] == [holds(under, number) for number in range(4)]
    asked = [digest(number, 5) for number in (3, 9, 0)]
    found = both.locate_all(asked)
    assert [both.locate(chunk) for chunk in asked] == found
    assert [True, False, True] == [place is not None for place in found] == both.held(asked)
    assert sorted(chunk for chunk, _ in both.chunks()) == [chunk for chunk, _ in both.chunks()]
    assert 4 == both.next_frame()


def test_packs_below_are_where_they_were(tmp_path: Path) -> None:
    under = MemoryIndex()
    under.commit(batch(0))
    both = OverlayIndex(under, tmp_path, MemoryIndex())
    both.commit(batch(1))
    [name] = [row.name for row in under.packs().values()]
    names = [row.name for _, row in sorted(both.packs().items())]
    assert [str(tmp_path / name), batch(1).packs[0][1].name] == names
