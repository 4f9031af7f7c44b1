"""Which entries are meant, and under which paths."""

from cas.entry import Entry, Kind
from cas.restore.select import matching, merged, without_prefix
from tests.restore.trees import MINE


def entries(*paths: bytes) -> list[Entry]:
    return [Entry(path, Kind.FIFO, MINE, 5) for path in paths]


TIER = entries(b"a", b"a/b", b"a/b/c", b"a/b.d", b"a/bc", b"b")


def paths(found: object) -> list[bytes]:
    return [entry.path for entry in found]  # type: ignore[attr-defined]  # any iterable of entries


def test_a_path_means_what_is_at_and_below_it() -> None:
    assert [b"a/b", b"a/b/c"] == paths(matching(TIER, b"a/b"))
    assert [b"a/b", b"a/b/c"] == paths(matching(TIER, b"/a/b/"))
    assert [b"b"] == paths(matching(TIER, b"b"))
    assert [] == paths(matching(TIER, b"c"))
    assert paths(TIER) == paths(matching(TIER, b""))


def test_a_prefix_is_taken_off() -> None:
    assert [b"b", b"b/c", b"b.d", b"bc"] == paths(without_prefix(TIER, b"a"))
    assert [b"c"] == paths(without_prefix(TIER, b"/a/b/"))
    assert paths(TIER) == paths(without_prefix(TIER, b""))


def test_tiers_are_merged_in_path_order_the_first_one_first() -> None:
    one, two = entries(b"a", b"a/c", b"b"), entries(b"a/b", b"a/c", b"a.b", b"c")
    found = list(merged([one, two]))
    assert [b"a", b"a/b", b"a/c", b"a.b", b"b", b"c"] == paths(found)
    assert found[2] is one[1]
