"""Plans: what is read, what is refused and on which line, and which tiers names stand for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cas.errors import EXIT_USAGE, PlanError, UsageError
from cas.plan import Plan, Source, Tier
from cas.plan_load import (
    MAX_PLAN_SIZE,
    PLAN_KEYS,
    SOURCE_KEYS,
    example_plan,
    find_plan,
    load_plan,
)
from cas.plan_tiers import TIER_KEYS

MANUAL = Path(__file__).resolve().parent.parent / "docs" / "plan.md"

FULL = """
store = "kept"

[source.npu]
host = "someone@npu"
agent = "podman unshare cas serve"
lanes = 8
level = 19
ssh_config = "ssh/config"

[source.here]
lanes = "auto"
level = "auto"

[[tier]]
name = "00-first"
source = "npu"
paths = ["/opt/calrt/", "//srv/./x", "~/llm", "~user"]
exclude = ["*.o", "!keep.o", "caché/"]
include = ["/cache/keep.txt"]

[[tier]]
name = "01-second"
source = "here"
paths = ["/"]

[[tier]]
name = "02-third"
source = "npu"
paths = ["~"]

[sets]
minimal = ["01-second", "00-first"]
rest = ["02-third"]
""".replace(', "~user"', "")


def write(directory: Path, text: str | bytes) -> str:
    path = directory / "plan.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def faults(directory: Path, text: str | bytes) -> list[str]:
    """The lines of the error, each beginning with the line number."""
    path = write(directory, text)
    with pytest.raises(PlanError) as caught:
        load_plan(path)
    assert caught.value.exit_code == EXIT_USAGE
    return [line.removeprefix(f"{path}:") for line in str(caught.value).splitlines()]


def test_every_key_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, FULL)
    first = Tier(
        name="00-first",
        source="npu",
        paths=(b"/opt/calrt", b"/srv/x", b"~/llm"),
        exclude=("*.o", "!keep.o", "caché/"),
        include=("/cache/keep.txt",),
    )
    npu = Source(
        name="npu",
        host="someone@npu",
        agent="podman unshare cas serve",
        lanes=8,
        level=19,
        ssh_config=str(tmp_path / "ssh/config"),
    )
    expected = Plan(
        path=path,
        store=str(tmp_path / "kept"),
        sources={"npu": npu, "here": Source("here")},
        tiers=(first, Tier("01-second", "here", (b"/",)), Tier("02-third", "npu", (b"~",))),
        sets={"minimal": ("01-second", "00-first"), "rest": ("02-third",)},
    )
    assert expected == load_plan(path)


def test_the_home_directory_is_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    text = FULL.replace('"kept"', '"~/kept"').replace('"ssh/config"', '"~/.ssh/other"')
    plan = load_plan(write(tmp_path, text))
    assert plan.store == "/home/someone/kept"
    assert plan.sources["npu"].ssh_config == "/home/someone/.ssh/other"


def test_a_relative_store_starts_at_the_plan_not_at_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plans").mkdir()
    write(tmp_path / "plans", FULL.replace('"kept"', '"../kept"'))
    monkeypatch.chdir(tmp_path)
    plan = load_plan("plans/plan.toml")
    assert plan.store == str(tmp_path / "kept")
    assert plan.path == "plans/plan.toml"


def test_the_example_loads_and_shows_every_key(tmp_path: Path) -> None:
    plan = load_plan(write(tmp_path, example_plan()))
    assert {"minimal"} == set(plan.sets)
    for key in SOURCE_KEYS | TIER_KEYS:
        assert re.search(rf"^(# )?{key} = ", example_plan(), re.MULTILINE), key


def test_the_keys_that_the_example_comments_out_are_right_too(tmp_path: Path) -> None:
    told = re.sub(r"^# (?=\w+ = |\[)", "", example_plan(), flags=re.MULTILINE)
    sources = load_plan(write(tmp_path, told)).sources
    assert (19, "sftp") == (sources["npu"].level, sources["box"].via)


def test_the_manual_has_every_key_and_its_plans_load(tmp_path: Path) -> None:
    manual = MANUAL.read_text()
    for key in PLAN_KEYS | SOURCE_KEYS | TIER_KEYS:
        assert re.search(rf"^(\| `{key}` \||#+ .*`.*{key}.*`)", manual, re.MULTILINE), key
    plans = re.findall(r"^```toml\n(store = .*?)^```", manual, re.MULTILINE | re.DOTALL)
    assert plans
    for text in plans:
        load_plan(write(tmp_path, text))


LIST_WANTED = (
    '19: tier[1].exclude: must be a list of strings, not a string (write exclude = ["*.o"])'
)
PATH_REPEATED = (
    "19: tier[1].exclude[2]: '/opt/calrt/x': repeats the path /opt/calrt"
    " (rules start at each path of the tier: /x)"
)
NOTHING_EXCLUDED = (
    "20: tier[1].include: only takes back what exclude leaves out"
    ' (for nothing but these, write exclude = ["*"] too)'
)

# One fault in a plan that is right otherwise: what is replaced, by what, and the error.
WRONG = [
    ('store = "kept"', "", "1: store is missing (write store ="),
    ('store = "kept"', "store = 3", "2: store: must be a string, not a number"),
    ('store = "kept"', 'store = ""', "2: store: must be one line of text, and not empty"),
    ('store = "kept"', 'store = "a\\nb"', "2: store: must be one line of text"),
    ('store = "kept"', 'store = "~nobody-of-this-name/x"', "2: store: there is no home directory"),
    ("[sets]", "[set]", "32: set: unknown key (did you mean 'sets'?)"),
    ("[source.npu]", "[[source]]", "4: source: must be a table, not a list (write [source.NAME])"),
    ("[source.here]", "[source]\nhere = 1", "12: source.here: must be a table, not a number"),
    ("[source.here]", '[source."h re"]', "11: source.h re: 'h re' is no name"),
    ('"someone@npu"', '"-oProxyCommand=x"', "5: source.npu.host: '-oProxyCommand=x' is no host"),
    ('"someone@npu"', '"a b"', "5: source.npu.host: 'a b' is no host"),
    ('"someone@npu"', '["npu"]', "5: source.npu.host: must be a string, not a list"),
    ("host =", "hots =", "5: source.npu.hots: unknown key (did you mean 'host'?)"),
    ('host = "someone@npu"', "", "9: source.npu.ssh_config: a source without host"),
    ("lanes = 8", 'via = "ftp"', "7: source.npu.via: no way is called 'ftp' (write via = "),
    ("lanes = 8", 'via = "sftp"', "6: source.npu.agent: there is no agent over there via sftp"),
    ("lanes = 8", "lanes = 0", "7: source.npu.lanes: must be a number from 1 to 64"),
    ("lanes = 8", "lanes = true", '7: source.npu.lanes: must be a number from 1 to 64, or "auto"'),
    ("level = 19", "level = 23", "8: source.npu.level: must be a number from 1 to 22"),
    ("level = 19", "level = 1.5", "8: source.npu.level: must be a number from 1 to 22"),
    ("level = 19", "speed = 1", "8: source.npu.speed: unknown key (there is host, agent,"),
    ('name = "00-first"\n', "", "15: tier[1]: name is missing (write name ="),
    ('"00-first"\nsource', '"0 first"\nsource', "16: tier[1].name: '0 first' is no name"),
    ('"00-first"\nsource', '"-first"\nsource', "16: tier[1].name: '-first' is no name"),
    ('"00-first"\nsource', f'"{"x" * 101}"\nsource', "16: tier[1].name: a name has at most 100"),
    ('"02-third"\nsource', '"01-second"\nsource', "28: tier[3].name: another tier has this name"),
    ('source = "here"', "", "22: tier[2]: source is missing (write source ="),
    ('source = "here"', 'source = "hree"', "24: tier[2].source: no source is called 'hree' (did"),
    ('paths = ["/"]', "", "22: tier[2]: paths is missing (write paths ="),
    ('paths = ["/"]', "paths = []", "25: tier[2].paths: names no path (write paths ="),
    ('paths = ["/"]', 'paths = "/a"', "25: tier[2].paths: must be a list of strings, not a string"),
    ('paths = ["/"]', "paths = {}", "25: tier[2].paths: must be a list of strings, not a table"),
    ('paths = ["/"]', 'paths = ["a"]', "25: tier[2].paths[1]: 'a' must be absolute or begin with"),
    ('paths = ["/"]', 'paths = ["~u/a"]', "25: tier[2].paths[1]: '~u/a' must be absolute or begin"),
    ('paths = ["/"]', 'paths = ["/a/../b"]', "25: tier[2].paths[1]: '/a/../b' must do without .."),
    ('paths = ["/"]', 'paths = ["/a\\u0000"]', "25: tier[2].paths[1]: a path has no NUL"),
    ('paths = ["/"]', f'paths = ["/{"a/" * 2048}"]', "25: tier[2].paths[1]: a path has at most"),
    ('paths = ["/"]', 'paths = [\n"/a",\n"/a/"]', "27: tier[2].paths[2]: /a stands here twice"),
    ('paths = ["/"]', 'paths = ["/a", 1]', "25: tier[2].paths[2]: must be a string, not a number"),
    ('["*.o", "!keep.o", "caché/"]', '"*.o"', LIST_WANTED),
    ('"!keep.o"', '"[a"', r"19: tier[1].exclude[2]: '[a': a [ without its ] (\[ is the bracket"),
    ('"!keep.o"', '""', "19: tier[1].exclude[2]: '': matches nothing"),
    ('"!keep.o"', '"#x"', r"19: tier[1].exclude[2]: '#x': a comment, not a rule (\# is"),
    ('"!keep.o"', '"/opt/calrt/x"', PATH_REPEATED),
    ('"!keep.o"', '"~/x"', "19: tier[1].exclude[2]: '~/x': no file is called ~ (rules start at"),
    ('exclude = ["*.o", "!keep.o", "caché/"]', "", NOTHING_EXCLUDED),
    ("exclude =", "exlude =", "19: tier[1].exlude: unknown key (did you mean 'exclude'?)"),
    ("[sets]", "[[sets]]", "32: sets: must be a table, not a list (write [sets])"),
    ("rest =", "02-third =", "34: sets.02-third: a tier has this name too"),
    ("rest =", '"a b" =', "34: sets.a b: 'a b' is no name"),
    ('rest = ["02-third"]', "rest = []", "34: sets.rest: names no tier"),
    ('rest = ["02-third"]', 'rest = "02-third"', "34: sets.rest: must be a list of strings, not"),
    (
        'rest = ["02-third"]',
        'rest = ["02-thrid"]',
        "34: sets.rest[1]: no tier is called '02-thrid' (did",
    ),
    ('rest = ["02-third"]', 'rest = ["minimal"]', "34: sets.rest[1]: a set holds tiers, not other"),
]


@pytest.mark.parametrize(("right", "wrong", "error"), WRONG)
def test_a_fault_is_named_with_its_line(tmp_path: Path, right: str, wrong: str, error: str) -> None:
    assert right in FULL
    found = faults(tmp_path, FULL.replace(right, wrong, 1))
    assert error in [line[: len(error)] for line in found]


def test_rules_that_are_too_long_together(tmp_path: Path) -> None:
    many = ", ".join(f'"{"x" * 1000}{number}"' for number in range(70))
    [error] = faults(tmp_path, FULL.replace('"*.o"', many))
    assert error.startswith("19: tier[1].exclude: more than 65536 characters")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("tier = 3", "1: tier: must be a list of tables (write [[tier]])"),
        ("[tier]\nname = 'x'", "1: tier: must be a list of tables (write [[tier]])"),
        ("", "1: tier is missing (write [[tier]])"),
        ("sets = 1979-05-27", "1: sets: must be a table, not a date (write [sets])"),
    ],
)
def test_a_fault_of_the_whole(tmp_path: Path, text: str, error: str) -> None:
    assert error in faults(tmp_path, text)


def test_all_faults_come_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = FULL.replace("lanes = 8", "lanes = 0").replace('["~"]', '"~"').replace("kept", "")
    assert ["2: store", "7: source", "30: tier["] == [
        re.sub(r"(: \w+\[?).*", r"\1", line) for line in faults(tmp_path, text)
    ]


def test_more_faults_than_anyone_reads(tmp_path: Path) -> None:
    found = faults(tmp_path, FULL + "".join(f"s{number} = 1\n" for number in range(30)))
    assert 21 == len(found)
    assert "and 10 more" == found[-1]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a = 1\nb = \n", "2: not valid TOML: Invalid value (column 5)"),
        ("[x]\n\n[x]\n", "3: not valid TOML: Cannot declare ('x',) twice (column 3)"),
        ("a = 1\nb = '''\nc\n", "3: not valid TOML:"),
        (b"a = 1\nb = '\xff'\n", "2: not UTF-8"),
        ("a = " + "9" * 5000, " not valid TOML: "),
        ("a = " + "[" * 100_000, " lists or tables are nested too deep"),
    ],
)
def test_what_is_no_toml(tmp_path: Path, text: str | bytes, error: str) -> None:
    [found] = faults(tmp_path, text)
    assert error == found[: len(error)]


def test_a_file_that_cannot_be_a_plan(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"no such plan .cas init writes one."):
        load_plan(str(tmp_path / "plan.toml"))
    with pytest.raises(PlanError, match="cannot be read: Is a directory"):
        load_plan(str(tmp_path))
    [error] = faults(tmp_path, b" " * (MAX_PLAN_SIZE + 1))
    assert error == f" over {MAX_PLAN_SIZE} bytes, too large for a plan"


def test_the_nearest_plan_is_found(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (below / "plan.toml").mkdir()
    outer = write(tmp_path, FULL)
    assert outer == find_plan(str(tmp_path))
    assert outer == find_plan(str(below))
    inner = write(tmp_path / "a", FULL)
    assert inner == find_plan(str(below))


def test_no_plan_is_found(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"no plan.toml here or above .cas init writes one."):
        find_plan(str(tmp_path))


@pytest.mark.parametrize(
    ("names", "tiers"),
    [
        ([], ["00-first", "01-second", "02-third"]),
        (["02-third", "00-first"], ["00-first", "02-third"]),
        (["minimal"], ["00-first", "01-second"]),
        (["rest", "02-third", "minimal", "minimal"], ["00-first", "01-second", "02-third"]),
    ],
)
def test_names_stand_for_tiers_in_the_order_of_the_plan(
    tmp_path: Path, names: list[str], tiers: list[str]
) -> None:
    plan = load_plan(write(tmp_path, FULL))
    assert tiers == [tier.name for tier in plan.select(names)]


@pytest.mark.parametrize(
    ("names", "error"),
    [
        (["minmal"], "no tier or set is called 'minmal' (did you mean 'minimal'?)"),
        (["FIRST"], "no tier or set is called 'FIRST' (did you mean '00-first'?)"),
        (["rest", "x", "y"], "no tier or set is called 'x' and no tier or set is called 'y'"),
        ([""], "no tier or set is called '' (there is minimal, rest, 00-first, 01-"),
    ],
)
def test_names_that_stand_for_nothing(tmp_path: Path, names: list[str], error: str) -> None:
    plan = load_plan(write(tmp_path, FULL))
    with pytest.raises(UsageError) as caught:
        plan.select(names)
    assert caught.value.exit_code == EXIT_USAGE
    assert str(caught.value).startswith(f"{plan.path}: {error}")


@settings(max_examples=300)
@given(data=st.data())
def test_a_damaged_plan_is_read_or_refused_on_one_of_its_lines(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(FULL)))
    end = data.draw(st.integers(start, min(len(FULL), start + 30)))
    text = (
        FULL[:start] + data.draw(st.sampled_from(["", '"', "]", "\n", "[", "x", "="])) + FULL[end:]
    )
    directory = tmp_path_factory.getbasetemp() / "plans"  # not where other tests look upwards
    directory.mkdir(exist_ok=True)
    path = write(directory, text)
    try:
        load_plan(path)
    except PlanError as error:
        for line in str(error).splitlines():
            assert 1 <= int(line.removeprefix(f"{path}:").split(":")[0]) <= FULL.count("\n") + 2
