import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.table import Column, cell_width, cut, cut_front, hanging, render

COLUMNS = (
    Column("tier", right=False),
    Column("logical", expendable=2),
    Column("here", expendable=1),
    Column("missing"),
)
ROWS = [["00-critical-context", "21.3 MB", "1 B", "2 B"], ["weights", "18.2 GB", "", "9.01 GB"]]


def test_a_table_for_a_pipe_has_everything() -> None:
    assert render(COLUMNS, ROWS) == [
        "tier                 logical  here  missing",
        "00-critical-context  21.3 MB   1 B      2 B",
        "weights              18.2 GB        9.01 GB",
    ]


def test_the_least_important_columns_go_first() -> None:
    assert render(COLUMNS, ROWS, 40)[0] == "tier                 here  missing"
    assert render(COLUMNS, ROWS, 30)[0] == "tier                 missing"


def test_the_first_column_is_cut_last() -> None:
    assert render(COLUMNS, ROWS, 20) == [
        "tier         missing",
        "00-critica…      2 B",
        "weights      9.01 GB",
    ]


@given(
    st.lists(st.tuples(*[st.text("ab 模é", max_size=30)] * 4), max_size=5),
    st.integers(min_value=60, max_value=200),
)
def test_lines_fit(rows: list[tuple[str, ...]], width: int) -> None:
    assert all(cell_width(line) <= width for line in render(COLUMNS, rows, width))


@pytest.mark.parametrize(("width", "expected"), [(4, "abcd"), (3, "ab…"), (1, "…"), (0, "")])
def test_cutting(width: int, expected: str) -> None:
    assert cut("abcd", width) == expected
    assert cut_front("dcba", width) == expected[::-1]


@given(st.text("a模é\u0301", max_size=20), st.integers(min_value=0, max_value=20))
def test_a_cut_text_fits(text: str, width: int) -> None:
    assert cell_width(cut(text, width)) <= width
    assert cell_width(cut_front(text, width)) <= width


@pytest.mark.parametrize(
    ("head", "width", "expected"),
    [
        ("exit  ", None, ["exit  a few words more"]),
        ("exit  ", 22, ["exit  a few words more"]),
        ("exit  ", 16, ["exit  a few", "      words more"]),
        ("exit  ", 14, ["exit  a few", "      words", "      more"]),
        ("a long name  ", 19, ["a long name  a few", "      words more"]),
        ("exit  ", 1, ["exit  a", "      few", "      words", "      more"]),
    ],
)
def test_a_text_hangs_below_its_beginning(
    head: str, width: int | None, expected: list[str]
) -> None:
    assert hanging(head, "a few words more", width) == expected
