"""Rules of a tier: what git says, what `include` adds to it, and what is refused."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cas.errors import FormatError, LimitError
from cas.ignore import MAX_RULES_SIZE, Decision, Matcher, parse_rule

NAMES = [
    *(b"a", b"b", b"ab", b"abc", b"a.o", b"b.o", b".a", b"B", b"x y", b"end ", b"#c", b"!n"),
    *(b"a]", b"[a]", b"-", b"*", b"\\", b"n\nl", b"\n", b"\xff", b"a\xfeb", "é".encode()),
]


@dataclass(frozen=True)
class GitTree:
    """A work tree of odd names, and git's own opinion on what it ignores there."""

    top: Path
    directories: frozenset[bytes]
    files: frozenset[bytes]
    children: Mapping[bytes, Sequence[bytes]]

    def ignored(self, lines: Sequence[str]) -> set[bytes]:
        rules = "".join(f"{line}\n" for line in lines)
        (self.top / ".git/info/exclude").write_bytes(rules.encode("utf-8", "surrogateescape"))
        done = subprocess.run(
            ["git", "check-ignore", "-z", "--stdin", "--no-index"],
            cwd=self.top,
            input=b"".join(b"./" + path + b"\0" for path in self.directories | self.files),
            env={"PATH": os.environ["PATH"], "HOME": str(self.top), "GIT_CONFIG_NOSYSTEM": "1"},
            stdout=subprocess.PIPE,
            check=False,
        )
        assert done.returncode in (0, 1)
        return {path.removeprefix(b"./") for path in done.stdout.split(b"\0")[:-1]}


def _fill(top: Path, directory: bytes, depth: int, chance: random.Random) -> None:
    for name in chance.sample(NAMES, 10 if depth else len(NAMES)):
        path = os.path.join(os.fsencode(top), directory, name)
        if depth < 3 and chance.random() < 0.4:
            os.mkdir(path)
            _fill(top, os.path.join(directory, name), depth + 1, chance)
        else:
            Path(os.fsdecode(path)).touch()


def _tree_at(top: Path) -> GitTree:
    base = os.fsencode(top)
    directories, files = set(), set()
    for at, inner, names in os.walk(base):
        if at == base:
            inner.remove(b".git")
        directories |= {os.path.relpath(os.path.join(at, name), base) for name in inner}
        files |= {os.path.relpath(os.path.join(at, name), base) for name in names}
    children: dict[bytes, list[bytes]] = {directory: [] for directory in directories | {b""}}
    for path in sorted(directories | files):
        children[path.rpartition(b"/")[0]].append(path)
    return GitTree(top, frozenset(directories), frozenset(files), children)


def _init(top: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    subprocess.run(["git", "init", "-q", str(top)], check=True)


@pytest.fixture(scope="module")
def odd_tree(tmp_path_factory: pytest.TempPathFactory) -> GitTree:
    top = tmp_path_factory.mktemp("odd")
    _init(top)
    _fill(top, b"", 0, random.Random(7))
    return _tree_at(top)


@pytest.fixture(scope="module")
def byte_tree(tmp_path_factory: pytest.TempPathFactory) -> GitTree:
    """One file for every byte that can be a name."""
    top = tmp_path_factory.mktemp("bytes")
    _init(top)
    for byte in set(range(1, 256)) - {ord("/"), ord(".")}:
        Path(os.fsdecode(os.path.join(os.fsencode(top), bytes([byte])))).touch()
    return _tree_at(top)


def walk(tree: GitTree, matcher: Matcher) -> set[bytes]:
    """What a walker lets in that believes every decision and never asks more than it must."""
    return _walk(tree, matcher, b"", matcher.directory(b""))


def _walk(tree: GitTree, matcher: Matcher, directory: bytes, above: Decision) -> set[bytes]:
    let_in: set[bytes] = set()
    for path in tree.children[directory]:
        if path in tree.files:
            if above is Decision.ENTER_ALL or not matcher.excludes_file(path):
                let_in.add(path)
            continue
        decision = above if above is Decision.ENTER_ALL else matcher.directory(path)
        if decision is Decision.SKIP:
            continue
        below = _walk(tree, matcher, path, decision)
        let_in |= below
        if below or decision is not Decision.PASS:
            let_in.add(path)
    return let_in


def _valid(line: str) -> bool:
    try:
        parse_rule(line)
    except FormatError:
        return False
    # Beside other characters ** is a plain *, says gitignore(5); git does so only at times.
    return not re.search(r"[^/!]\*\*|\*\*[^/]", line)


ATOMS = [
    *("a", "b", "c", ".o", "a", "b", "*", "*", "?", "[ab]", "[!a]", "[^b-]", "[]a]", "[a-c]"),
    *("[[:alpha:]]", "[![:space:]a]", r"[\]x]", "[-b]", "[a-c-]", "[c-a]", r"[\*-\\]", "[[:]", "["),
    *(r"\*", r"\a", r"\#", r"\!", "!", "#", " ", r"\ ", "é", "\udcff", "\\", "]", "[é]"),
]
ODD_NAMES = [name.decode("utf-8", "surrogateescape") for name in NAMES if b"\n" not in name]
segments = st.one_of(
    st.sampled_from(["*", "**", "?", "a", "b", "ab", "a.o"]),
    st.sampled_from(ODD_NAMES).map(lambda name: re.sub(r"([*?\[\\])", r"\\\1", name)),
    st.lists(st.sampled_from(ATOMS), min_size=1, max_size=4).map("".join),
)
rules = st.builds(
    lambda bang, slash, parts, end: bang + slash + "/".join(parts) + end,
    st.sampled_from(["", "", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(segments, min_size=1, max_size=4),
    st.sampled_from(["", "", "/", " "]),
).filter(_valid)


@settings(max_examples=200, deadline=None)
@given(exclude=st.lists(rules, min_size=1, max_size=6))
def test_exclude_leaves_out_what_git_ignores(odd_tree: GitTree, exclude: list[str]) -> None:
    everything = odd_tree.directories | odd_tree.files
    assert everything - odd_tree.ignored(exclude) == walk(odd_tree, Matcher(exclude))


@settings(max_examples=120, deadline=None)
@given(
    exclude=st.lists(rules, min_size=1, max_size=4),
    include=st.lists(rules, min_size=1, max_size=3),
)
def test_include_takes_back_what_git_would_match(
    odd_tree: GitTree, exclude: list[str], include: list[str]
) -> None:
    left_out = odd_tree.ignored(exclude) - odd_tree.ignored(include)
    let_in = (odd_tree.directories | odd_tree.files) - left_out
    ways_there = {parent for path in let_in for parent in _parents(path)}
    assert let_in | ways_there == walk(odd_tree, Matcher(exclude, include))


def _parents(path: bytes) -> list[bytes]:
    parts = path.split(b"/")
    return [b"/".join(parts[:count]) for count in range(1, len(parts))]


@settings(max_examples=50, deadline=None)
@given(exclude=st.lists(rules, max_size=4), include=st.lists(rules, max_size=2))
def test_the_order_of_questions_does_not_matter(
    odd_tree: GitTree, exclude: list[str], include: list[str]
) -> None:
    walked = walk(odd_tree, Matcher(exclude, include))
    matcher = Matcher(exclude, include)
    asked = {path for path in odd_tree.files if not matcher.excludes_file(path)}
    assert walked & odd_tree.files == asked


@pytest.mark.parametrize(
    "rule",
    [f"[[:{name}:]]" for name in ["alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower"]]
    + [f"[[:{name}:]]" for name in ["print", "punct", "space", "upper", "xdigit"]]
    + ["?", "*", "[!a]", "[^a-z]", "[+--]", "[]-a]", "[!]-]", r"[\\-\]]", "[[:digit:]-z]"]
    + ["[a-[:digit:]]", "[--0]", "[0-9a-fA-F]", "[\udc80-\udcff]", "[!\udc80-\udcff]", "[z-a]"],
)
def test_every_byte_is_judged_as_git_judges_it(byte_tree: GitTree, rule: str) -> None:
    matcher = Matcher([rule])
    left_out = {name for name in byte_tree.files if matcher.excludes_file(name)}
    assert byte_tree.ignored([rule]) == left_out


EXAMPLES = [
    # rule, file, left out?
    ("*.o", b"a.o", True),
    ("*.o", b"deep/down/a.o", True),
    ("*.o", b"a.o.txt", False),
    ("/a.o", b"a.o", True),
    ("/a.o", b"b/a.o", False),
    ("docs/*.txt", b"docs/a.txt", True),
    ("docs/*.txt", b"x/docs/a.txt", False),
    ("docs/*.txt", b"docs/x/a.txt", False),
    ("**/docs/*.txt", b"x/y/docs/a.txt", True),
    ("docs/**/a.txt", b"docs/a.txt", True),
    ("docs/**/a.txt", b"docs/x/y/a.txt", True),
    ("docs/**", b"docs/x/y", True),
    ("docs/**", b"docs", False),
    ("cache/", b"cache", False),
    ("cache/", b"cache/x", True),
    ("cache/", b"x/cache/y", True),
    ("x**y", b"x12y", True),
    ("x**/b", b"xy/b", True),
    ("x**/b", b"xy/z/b", False),
    ("/d/x**y", b"d/x12y", True),
    ("/d/x**y", b"d/x1/2y", False),
    ("a*b*c*d", b"a-b-bb-c-d-d", True),
    ("/p/**/q/**/r/s", b"p/1/q/2/q/r/3/r/s", True),
    ("/p/**/q/**/r/s", b"p/1/q/2/q/r/3/r/s/t", True),
    ("/p/**/q/**/r/s", b"p/1/2/r/3/r/s", False),
]


@pytest.mark.parametrize(("rule", "path", "left_out"), EXAMPLES)
def test_one_rule_on_one_file(rule: str, path: bytes, left_out: bool) -> None:
    assert left_out == Matcher([rule]).excludes_file(path)


def test_a_file_out_of_an_excluded_directory_is_found_on_a_short_way() -> None:
    matcher = Matcher([".cache/", "*.o"], ["/home/.cache/models/index.json"])
    assert matcher.directory(b"home") is Decision.ENTER
    assert matcher.directory(b"home/.cache") is Decision.PASS
    assert matcher.directory(b"home/.cache/models") is Decision.PASS
    assert matcher.directory(b"home/.cache/pip") is Decision.SKIP
    assert matcher.directory(b"home/.cache/models/index.json") is Decision.ENTER_ALL
    assert not matcher.excludes_file(b"home/.cache/models/index.json")
    assert matcher.excludes_file(b"home/.cache/models/other.json")
    assert matcher.directory(b"work/.cache") is Decision.SKIP


def test_an_included_directory_comes_whole() -> None:
    matcher = Matcher(["cache/", "*.o"], ["/cache/keep/"])
    assert matcher.directory(b"cache/keep") is Decision.ENTER_ALL
    assert not matcher.excludes_file(b"cache/keep/deep/a.o")


def test_nothing_but_what_is_named() -> None:
    matcher = Matcher(["*"], ["*.yaml"])
    assert matcher.directory(b"some") is Decision.PASS
    assert not matcher.excludes_file(b"some/where/model.yaml")
    assert matcher.excludes_file(b"some/where/model.bin")


def test_without_rules_there_is_nothing_to_ask() -> None:
    assert Matcher().directory(b"") is Decision.ENTER_ALL
    assert Matcher([], ["*.o"]).directory(b"") is Decision.ENTER_ALL
    assert Matcher(["!*.o"]).directory(b"") is Decision.ENTER_ALL


def test_where_no_rule_reaches_there_is_nothing_to_ask() -> None:
    matcher = Matcher(["/build/*/out", "/var/**/tmp"])
    assert matcher.directory(b"src") is Decision.ENTER_ALL
    assert matcher.directory(b"build") is Decision.ENTER
    assert matcher.directory(b"build/x86") is Decision.ENTER
    assert matcher.directory(b"build/x86/out") is Decision.SKIP
    assert matcher.directory(b"build/x86/in") is Decision.ENTER_ALL
    assert matcher.directory(b"var/a/b/c") is Decision.ENTER


def test_more_directories_than_are_remembered() -> None:
    matcher = Matcher(["/skip/", "*.o"])
    tops = [b"skip" if number % 2 else b"keep" for number in range(10_000)]
    assert [top == b"skip" for top in tops] == [
        matcher.directory(b"%s/%d/x" % (top, number)) is Decision.SKIP
        for number, top in enumerate(tops)
    ]


def test_a_path_deeper_than_any_stack() -> None:
    path = b"/".join([b"d"] * 5_000)
    assert Matcher(["*.o"]).excludes_file(path + b"/a.o")
    assert not Matcher(["*.o"]).excludes_file(path + b"/a.c")


@pytest.mark.parametrize(
    "rule", ["*a" * 60 + "b", "*a?" * 40 + "/", "x/" + "*a*" * 30 + "b", "**/a/" * 30 + "b"]
)
def test_a_hostile_rule_comes_to_an_end(rule: str) -> None:
    matcher = Matcher([rule])
    assert not matcher.excludes_file(b"x/" + b"a" * 250)
    assert not matcher.excludes_file(b"a/" * 1000 + b"a")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("", "matches nothing"),
        ("   ", "matches nothing"),
        ("/", "matches nothing"),
        ("!", "matches nothing"),
        ("//", "matches nothing"),
        ("# objects", "a comment"),
        ("a\nb", "one line"),
        ("a\0", "NUL"),
        ("a//b", "between slashes"),
        ("./a", "'.'"),
        ("../a", "'..'"),
        ("a/..", "'..'"),
        ("a[b", "a [ without its ]"),
        ("[", "a [ without its ]"),
        ("[!", "a [ without its ]"),
        ("[]", "a [ without its ]"),
        ("[a-", "a [ without its ]"),
        (r"[a\]", "a [ without its ]"),
        ("[a/b]", "a [ without its ]"),
        ("a\\", "nothing after it"),
        ("[[:letter:]]", "[:letter:]"),
        ("a/" * 64 + "b", "more than 64"),
    ],
)
def test_a_line_that_can_match_nothing_is_refused(line: str, what: str) -> None:
    with pytest.raises(FormatError, match=re.escape(what)) as caught:
        Matcher([line])
    assert repr(line) == caught.value.where


def test_lists_have_a_limit() -> None:
    rule = "x" * 64
    Matcher([rule] * (MAX_RULES_SIZE // 64))
    with pytest.raises(LimitError):
        Matcher([rule] * (MAX_RULES_SIZE // 64 + 1))


@settings(max_examples=500)
@given(st.text())
def test_any_text_is_a_rule_or_our_error(line: str) -> None:
    try:
        matcher = Matcher([line], [line])
    except FormatError:
        return
    assert not matcher.excludes_file(b"some/file")
