"""Many digests at once: hashlib says what is right, whichever way they are made here."""

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cas import hashing
from cas._native import Sha256, sha256s
from cas.hashing import PairHasher, ThreadHasher, digests_of
from cas.ids import digest_of
from tests.vectors.cuts import noise

DATA = noise(3_000_000)
LENGTHS = st.lists(st.integers(1, 300) | st.sampled_from([63, 64, 65, 8192, 65536]), max_size=12)
Hasher = PairHasher | ThreadHasher


@pytest.fixture(params=[PairHasher, ThreadHasher])
def make(request: pytest.FixtureRequest) -> Iterator[Callable[[], Hasher]]:
    with ThreadPoolExecutor(1) as pool:
        yield PairHasher if request.param is PairHasher else lambda: ThreadHasher(pool)


@pytest.mark.parametrize("in_pairs", [True, False])
@given(lengths=LENGTHS, start=st.integers(0, 1000))
def test_parts_have_the_digests_that_they_have_alone(
    in_pairs: bool, lengths: list[int], start: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashing, "IN_PAIRS", in_pairs)
        found = digests_of(DATA, lengths, start)
    expected = []
    for length in lengths:
        expected.append(digest_of(DATA[start : start + length]))
        start += length
    assert expected == found


@settings(max_examples=30)
@given(steps=st.lists(LENGTHS.filter(bool), max_size=6))
def test_running_ones_go_on_with_all_parts(steps: list[list[int]]) -> None:
    one, other, at = Sha256(), Sha256(), 0
    for lengths in steps:
        sha256s(DATA, at, lengths, [one, other])
        at += sum(lengths)
        assert hashlib.sha256(DATA[:at]).digest() == one.digest() == other.digest()


@pytest.mark.parametrize("steps", [[100], [600_000], [600_000, 100, 600_000, 1_000_000]])
def test_a_file_and_its_parts(make: Callable[[], Hasher], steps: list[int]) -> None:
    hasher, at = make(), 0
    whole = b""
    for step in steps:
        data = DATA[at : at + step]
        lengths = [step // 3, step - step // 3]
        expected = [digest_of(data[: step // 3]), digest_of(data[step // 3 :])]
        assert expected == hasher.chunks(b"before" + data, lengths, 6)
        hasher.zeros(1_500_000)
        part = data + bytes(1_500_000)
        assert digest_of(part) == hasher.end_part()
        whole += part
        at += step
    assert digest_of(whole) == hasher.digest()


def test_the_first_part_is_the_whole_so_far(make: Callable[[], Hasher]) -> None:
    hasher = make()
    hasher.chunks(DATA, [1000, 2000], 0)
    assert digest_of(DATA[:3000]) == hasher.end_part() == hasher.digest()
    hasher.chunks(DATA, [500], 3000)
    assert digest_of(DATA[3000:3500]) == hasher.end_part()
    assert digest_of(DATA[:3500]) == hasher.digest()


@pytest.mark.parametrize(
    ("start", "lengths"),
    [
        (0, [len(DATA) + 1]),
        (len(DATA), [1]),
        (0, [2**63, 2**63]),
        (2**63, [2**63]),
        (5, [2**64 - 1]),
    ],
)
def test_no_more_is_hashed_than_there_is(start: int, lengths: list[int]) -> None:
    with pytest.raises(ValueError, match="more than there is"):
        sha256s(DATA, start, lengths, [])


def test_nothing_has_a_digest_too() -> None:
    assert [digest_of(b""), digest_of(b"a"), digest_of(b"")] == sha256s(b"a", 0, [0, 1, 0], [])
