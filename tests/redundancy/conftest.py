"""A plan of tiers that were scanned and not fetched, and a way to run `cas` there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from indexes.index import LmdbIndex
from tests.cli.conftest import ROOT, command_line
from tests.redundancy.made import MadeStore

PLAN = """\
store = "store"
[source.here]
[[tier]]
name = "first"
source = "here"
paths = ["/a"]
[[tier]]
name = "second"
source = "here"
paths = ["/b"]
[sets]
both = ["first", "second"]
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A plan of two tiers that were scanned and not fetched, and a third that is only held."""
    (tmp_path / "plan.toml").write_text(PLAN)
    made = MadeStore(tmp_path / "store", LmdbIndex(tmp_path / "store" / "index", create=True))
    made.tier("third", {"c/x": [(9, 4000)]})
    made.tier(
        "second", {"b/x.tar": [(1, 3000), (2, 2_000_000)], "b/y": [(5, 700)], "b/z": [(5, 700)]}
    )
    made.tier("first", {"a/w": [(1, 3000)], "a/x": [(1, 3000)], "a/z": [(3, 50_000), (9, 4000)]})
    made.writer.close()
    made.index.close()
    return tmp_path


def cas(place: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run `cas` there."""
    return subprocess.run(
        command_line(*arguments), cwd=place, env={"PYTHONPATH": str(ROOT)}, capture_output=True
    )
