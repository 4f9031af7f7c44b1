"""The benchmarks' own parts: what is measured is what was run, and the data is what it says."""

import gzip
import io
import os
import random
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.bench import run as front
from tests.bench.corpus import unpacked
from tests.bench.data import edited, large_file, source_tree, tree_size
from tests.bench.first_sync import check_same
from tests.bench.history import compressed_size
from tests.bench.process import CommandFailed, Usage, in_turns, measured
from tests.bench.verdict import MIB, Verdict

BENCH = Path(__file__).parent


def test_a_process_is_measured_and_its_child_is_not_its_peak() -> None:
    work = "import time; x = bytearray({}); y = sum(range(3_000_000)); print('out'); time.sleep(.2)"
    child = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {work.format(1 << 28)!r}])"
    )
    alone = measured([sys.executable, "-c", work.format(1 << 28)])
    above = measured([sys.executable, "-c", child])
    assert b"out\n" == alone.output
    assert alone.wall >= 0.2
    assert alone.cpu > 0.02
    assert alone.peak > 256 * MIB
    assert above.peak < 100 * MIB
    assert above.cpu > 0.02


def test_a_contestant_that_fails_is_no_result() -> None:
    with pytest.raises(CommandFailed, match=r"exit code 3 .*\nsaid why"):
        measured([sys.executable, "-c", "import sys; sys.stderr.write('said why'); sys.exit(3)"])
    with pytest.raises(CommandFailed, match="exit code 137"):
        measured([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])


def test_each_has_its_turn_first_and_the_best_counts() -> None:
    order: list[str] = []

    def runner(name: str, walls: list[float]) -> Usage:
        order.append(name)
        return Usage(walls.pop(), 1.0, len(walls))

    walls = {"a": [3.0, 1.0, 2.0], "b": [5.0, 6.0, 7.0]}
    best = in_turns(3, {name: lambda name=name: runner(name, walls[name]) for name in walls})  # type: ignore[misc]
    assert ["a", "b", "b", "a", "a", "b"] == order
    assert (1.0, 5.0) == (best["a"].wall, best["b"].wall)
    assert 2 == best["a"].peak


@pytest.mark.parametrize(
    ("value", "limit", "at_least", "ok"),
    [
        (1.3, 1.3, False, True),
        (1.31, 1.3, False, False),
        (1.5, 1.5, True, True),
        (1.49, 1.5, True, False),
        (9.0, None, False, True),
    ],
)
def test_a_claim_holds_or_does_not(
    value: float, limit: float | None, at_least: bool, ok: bool
) -> None:
    verdict = Verdict("claim", value, limit, at_least=at_least)
    assert ok == verdict.ok
    assert ok != ("NOT MET" in verdict.line())


def test_trees_are_of_different_files_and_the_same_again(tmp_path: Path) -> None:
    contents = []
    for name in ("a", "b"):
        source_tree(tmp_path / name, 300, seed=1, most=4096)
        paths = sorted(path for path in (tmp_path / name).rglob("*") if path.is_file())
        contents.append([path.read_bytes() for path in paths])
    assert contents[0] == contents[1]
    assert 300 == len(set(contents[0])) == tree_size(tmp_path / "a")[0]
    assert max(map(len, contents[0])) < 8192


def test_a_large_file_has_its_size(tmp_path: Path) -> None:
    large_file(tmp_path / "file", 5 * MIB + 1, seed=1)
    assert 5 * MIB + 1 == os.path.getsize(tmp_path / "file")


def test_an_edit_leaves_most_as_it_was() -> None:
    data = random.Random(0).randbytes(MIB)
    changed = edited(data, random.Random(1))
    assert data != changed
    assert data[-100:] in changed
    assert len(changed) < len(data) + 1000


def test_restored_data_is_looked_at(tmp_path: Path) -> None:
    data, restored = tmp_path / "data", tmp_path / "restored"
    for place in (data, restored / data.relative_to("/")):
        (place / "sub").mkdir(parents=True)
        (place / "sub" / "file").write_bytes(b"right")
    check_same(data, restored)
    (restored / data.relative_to("/") / "sub" / "file").write_bytes(b"wrong")
    with pytest.raises(CommandFailed, match="sub/file"):
        check_same(data, restored)


def test_archives_are_unpacked_to_their_files() -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("in zip", b"zipped")
    outer = io.BytesIO()
    with tarfile.open(fileobj=outer, mode="w") as tar:
        for name, data in (("plain", b"plain"), ("x.zip", inner.getvalue())):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    whole = gzip.compress(outer.getvalue())
    assert [b"plain", b"zipped"] == list(unpacked(whole))
    assert [b"plain"] == list(unpacked(gzip.compress(outer.getvalue()[:1024])))
    assert [b"\x1f\x8b", b""] == [*unpacked(b"\x1f\x8b", 0), *unpacked(b"\x1f\x8b")]


def test_history_reaches_as_far_as_it_says() -> None:
    block = random.Random(0).randbytes(200_000)
    other = [random.Random(i).randbytes(200_000) for i in range(1, 10)]
    chunks = [block, *other, block]
    assert compressed_size(chunks, 3, MIB) > 10.9 * 200_000
    assert compressed_size(chunks, 3, 32 * MIB) < 10.1 * 200_000


def test_the_front_knows_each_benchmark_there_is() -> None:
    modules = {path for path in BENCH.glob("*.py") if "\ndef run(setting: " in path.read_text()}
    assert {path.stem for path in modules} == set(front.BENCHMARKS)
