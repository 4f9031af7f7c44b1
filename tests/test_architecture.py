"""The layers, kept by a machine: who may import whom, what may be where, how long a module may be.

`violations` reads source text only, with `ast`; it imports nothing and needs no module to exist.
Each rule is tried on a small bad example below, so that none can fall silent.
"""

import ast
import os
import re
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OUR_PACKAGES = ("cas", "indexes", "cli")
MAX_LINES = 400

# What indexes may know of cas: values, their seams and their bytes. No store, no agent, no pull.
VALUE_MODULES = {
    "cas.archive",
    "cas.entry",
    "cas.errors",
    "cas.frame",
    "cas.ids",
    "cas.interfaces",
    "cas.pack",
    "cas.page",
    "cas.recipe",
    "cas.snapshot",
    "cas.program",
    "cas.wire",
}

# Each third-party package, and the one file (or folder, ending in /) that may import it; two
# where two formats are made with it, or two protocols spoken.
HOMES = {
    "asyncssh": "cas/transport/ssh.py cas/transport/sftp.py",
    "click": "cli/",
    "fastcdc": "cas/chunker.py",
    "lmdb": "indexes/env.py",
    "matplotlib": "cas/report/picture.py",
    "msgpack": "cas/wire.py",
    "plotly": "cas/report/library.py",
    "pyarrow": "cli/parquet.py",
    "rich": "cli/",
    "tomli": "cas/toml_lines.py",
    "tomllib": "cas/toml_lines.py",
    "zstandard": "cas/frame.py cas/codec/zstd.py",
}

# Values and machines: what they do depends on their arguments alone.
PURE_MODULES = {
    f"cas/{name}.py"
    for name in (
        "archive",
        "chunker",
        "entry",
        "errors",
        "frame",
        "ids",
        "interfaces",
        "messages",
        "pack",
        "page",
        "program",
        "recipe",
        "session",
        "snapshot",
        "wire",
    )
}
IMPURE = {"asyncio", "os", "socket", "threading", "time"}

ASYNC_HOMES = (
    "cas/agent/serve.py",
    "cas/pull/",
    "cas/sftp/fetch.py",
    "cas/sftp/pool.py",
    "cas/sftp/source.py",
    "cas/transport/",
    "cli/",
)
VAGUE_NAMES = {"common", "constants", "helpers", "misc", "util", "utils"}
WORKPLACE = "../" + "shared"
NOT_SOURCE = {
    ".git",
    ".hypothesis",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".venv",
    "__pycache__",
    "build",
    "dist",
    "target",
}


def violations(root: Path) -> list[str]:
    """What breaks a rule below root, one line each, beginning with the file and the line."""
    found = []
    for package in OUR_PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            tree = ast.parse(path.read_bytes(), name)
            found += [f"{name}:{line}: {what}" for rule in RULES for line, what in rule(name, tree)]
            found += _shape(name, path.read_text())
    return [*found, *_workplace(root)]


def _shape(name: str, text: str) -> Iterator[str]:
    lines = text.count("\n")
    if lines > MAX_LINES:
        yield f"{name}:{lines}: more than {MAX_LINES} lines"
    if vague := VAGUE_NAMES & set(name.removesuffix(".py").split("/")):
        yield f"{name}:1: {vague.pop()} says nothing of what is inside"


def _workplace(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in NOT_SOURCE]
        for path in (Path(folder, name) for name in names):
            if path.is_file() and WORKPLACE.encode() in path.read_bytes():
                yield f"{path.relative_to(root).as_posix()}:1: mentions {WORKPLACE}"


def _layers(name: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    for line, module in imports(tree):
        package = module.split(".")[0]
        if name.startswith("cas/") and package in ("indexes", "cli"):
            yield line, f"cas imports {module}"
        if name.startswith("indexes/") and package == "cli":
            yield line, f"indexes imports {module}"
        if name.startswith("indexes/") and package == "cas" and not _is_value(module):
            yield line, f"indexes imports {module}, which is no value"


def _is_value(module: str) -> bool:
    """Whether module is a value module or something in one (`from cas.ids import Digest`)."""
    return ".".join(module.split(".")[:2]) in VALUE_MODULES


def _third_party(name: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    for line, module in imports(tree):
        package = module.split(".")[0]
        if package in OUR_PACKAGES:
            continue
        home = HOMES.get(package)
        if home is None and package not in sys.stdlib_module_names:
            yield line, f"{package} has no home in HOMES"
        if home is not None and not any(_within(name, one) for one in home.split()):
            yield line, f"{package} is imported outside {home}"


def _within(name: str, home: str) -> bool:
    return name == home or (home.endswith("/") and name.startswith(home))


def _pure(name: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    if name in PURE_MODULES:
        for line, module in imports(tree):
            if module.split(".")[0] in IMPURE:
                yield line, f"a pure module imports {module}"


def _async(name: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    if not any(_within(name, home) for home in ASYNC_HOMES):
        for node in ast.walk(tree):
            if isinstance(node, ast.AsyncFunctionDef):
                yield node.lineno, f"async def {node.name} outside {', '.join(ASYNC_HOMES)}"


def _relative(name: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield node.lineno, "a relative import"


RULES: list[Callable[[str, ast.Module], Iterator[tuple[int, str]]]] = [
    _layers,
    _third_party,
    _pure,
    _async,
    _relative,
]


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every import anywhere in the tree: its line, and the full dotted name of what it brings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def test_the_project_keeps_its_rules() -> None:
    assert [] == violations(ROOT)


def test_every_dependency_has_a_home() -> None:
    required = metadata.requires("cas-sync") or []
    names = {re.split(r"[^a-z]", line)[0] for line in required if "extra ==" not in line}
    extras = {"matplotlib", "plotly", "pyarrow"}
    assert names == set(HOMES) - {"tomllib"} - extras


BAD = [
    ("cas/store/store.py", "import indexes.env", "cas imports indexes.env"),
    ("cas/gc.py", "from cli import output", "cas imports cli.output"),
    ("cas/gc.py", "def f():\n    import cli", "cas imports cli"),
    ("indexes/env.py", "from cli import output", "indexes imports cli.output"),
    ("indexes/env.py", "import cas.store", "indexes imports cas.store, which is no value"),
    ("indexes/env.py", "from cas import gc", "indexes imports cas.gc, which is no value"),
    ("indexes/env.py", "import cas", "indexes imports cas, which is no value"),
    ("cas/pack.py", "import zstandard", "zstandard is imported outside cas/frame.py"),
    ("cas/pull/lanes.py", "from asyncssh import connect", "asyncssh is imported outside"),
    ("indexes/chunks.py", "import lmdb", "lmdb is imported outside indexes/env.py"),
    ("cas/doctor.py", "import rich.table", "rich is imported outside cli/"),
    ("cli/wiring.py", "import numpy", "numpy has no home in HOMES"),
    ("cas/ids.py", "from os import path", "a pure module imports os.path"),
    ("cas/session.py", "import asyncio.queues", "a pure module imports asyncio.queues"),
    ("cas/restore.py", "async def pour(): ...", "async def pour outside"),
    ("cas/agent/walk.py", "class W:\n    async def go(self): ...", "async def go outside"),
    ("cas/gc.py", "from . import ids", "a relative import"),
    ("cas/gc.py", "x = 1\n" * 401, "more than 400 lines"),
    ("cas/utils.py", "x = 1", "utils says nothing of what is inside"),
    ("cli/common/text.py", "x = 1", "common says nothing of what is inside"),
    ("docs/design.md", f"see {WORKPLACE}/design.md", f"mentions {WORKPLACE}"),
]


@pytest.mark.parametrize(("name", "text", "expected"), BAD, ids=[what for _, _, what in BAD])
def test_a_broken_rule_is_found(tmp_path: Path, name: str, text: str, expected: str) -> None:
    _write(tmp_path, name, text)
    found = violations(tmp_path)
    assert len(found) == 1, found
    assert found[0].startswith(f"{name}:")
    assert expected in found[0]


GOOD = [
    ("cas/frame.py", "import zstandard\nfrom cas.ids import Digest"),
    ("cas/toml_lines.py", "import sys\nimport tomllib\nimport tomli"),
    ("cas/pull/sync.py", "import asyncio\nasync def pull(): ..."),
    ("cas/agent/serve.py", "import os\nasync def serve(): ..."),
    ("cas/session.py", "x = 1\n" * 400),
    ("indexes/env.py", "import lmdb\nfrom cas import errors, ids\nfrom cas.entry import Entry"),
    ("cli/wiring.py", "import click, rich\nfrom cas import gc\nfrom indexes import env"),
]


@pytest.mark.parametrize(("name", "text"), GOOD, ids=[name for name, _ in GOOD])
def test_what_is_allowed_is_not_found(tmp_path: Path, name: str, text: str) -> None:
    _write(tmp_path, name, text)
    assert [] == violations(tmp_path)


def _write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
