import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cas.entry import check_path
from cas.errors import CasError, UsageError
from cli.options import Target, parse_target


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tier", Target("tier")),
        ("tier:", Target("tier")),
        ("tier:/", Target("tier")),
        ("tier:/a/b", Target("tier", b"a/b")),
        ("tier:a/b/", Target("tier", b"a/b")),
        ("tier://a/./b", Target("tier", b"a/b")),
        ("tier:/a:b", Target("tier", b"a:b")),
        ("tier:/\udcff", Target("tier", b"\xff")),
    ],
)
def test_targets(text: str, expected: Target) -> None:
    assert parse_target(text) == expected


@pytest.mark.parametrize("text", ["", ":/a", "tier:..", "tier:/a/../b"])
def test_what_is_no_target(text: str) -> None:
    with pytest.raises(UsageError):
        parse_target(text)


@given(st.binary(min_size=1, max_size=60).filter(lambda raw: b"\0" not in raw))
def test_a_target_has_a_legal_path_or_none(raw: bytes) -> None:
    try:
        path = parse_target("tier:" + os.fsdecode(raw)).path
    except CasError:
        return
    assert not path or check_path(path) == path
