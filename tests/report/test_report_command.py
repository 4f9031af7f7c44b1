"""`cas report` as a user has it: the page and `--json` say the same, and what audits and counting
by other means say too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.wiring import writing
from tests.audit.packs import count, harm, records
from tests.cli.conftest import Place, make_place, one_for_all, synced
from tests.redundancy.conftest import cas, place
from tests.report.browser import Browser
from tests.report.test_page import CELLS, png_size

__all__ = ["one_for_all", "place", "synced"]  # fixtures
PARTS = ("own", "others", "adopted", "unknown", "missing")
MEASURES = ("logical", "unpacked", "unique", "fetched", "wire")


def events_of(done: subprocess.CompletedProcess[bytes]) -> dict[str, list[dict[str, Any]]]:
    """The lines by their event."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in done.stdout.splitlines():
        fields = json.loads(line)
        found.setdefault(fields.pop("event"), []).append(fields)
    return found


def test_the_page_shows_what_json_says(quiet: Browser, synced: Place, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    done = synced.cas("report", "-o", page, "--json")
    assert (0, b"") == (done.returncode, done.stderr)
    said = events_of(done)
    quiet.open(page)
    keys = (*MEASURES, None, "adopted", "missing", "exclusive", "adds", "files")
    assert [
        [tier[key] if key else tier["others"] + tier["unknown"] for key in keys]
        for tier in said["tier"]
    ] == quiet.run(CELLS % "tiers")
    assert [[flow["bytes"]] for flow in said["flow"]] == quiet.run(CELLS % "flows")
    assert [[pair["both"], pair["percent"]] for pair in said["pair"]] == quiet.run(CELLS % "pairs")
    assert [
        [file[key] for key in ("size", "unpacked", "repeated", "shared")] for file in said["file"]
    ] == quiet.run(CELLS % "files")
    [run] = said["run"]
    shown = quiet.run(CELLS % "runs")[0]
    assert [run["fetched"], run["wire_in"], run["wire_out"], run["goodput"]] == shown[:4]
    tiles = quiet.run(
        "[...document.querySelectorAll('.tiles b')].map(b => Number(b.dataset.value))"
    )
    assert [said["summary"][0][key] for key in (*MEASURES, "missing")] == tiles
    bars = quiet.run("document.getElementById('chart-measures').data.map(trace => trace.x)")
    assert [[tier[key] for tier in said["tier"]] for key in MEASURES] == bars
    steps = quiet.run("document.getElementById('chart-waterfall').data[0].x")
    assert {said["summary"][0][key] for key in MEASURES} <= set(steps)
    first = "document.querySelectorAll('[data-table=files] tbody td')[0].textContent"
    assert said["file"][0]["path"] in quiet.run(first)


def test_it_says_what_packs_and_audits_say(synced: Place) -> None:
    said = events_of(synced.cas("report", "--json"))
    content, meta = count(synced.store)
    assert {tier: numbers for (_, tier, _), numbers in content.items()} == {
        it["tier"]: [it["chunks"], it["fetched"], it["wire"]] for it in said["origin"]
    }
    assert meta == [said["summary"][0]["meta"][key] for key in ("chunks", "bytes", "wire")]
    for tier in said["tier"]:
        assert tier["unique"] == sum(tier[part] for part in PARTS)
        flows = [flow["bytes"] for flow in said["flow"] if flow["tier"] == tier["tier"]]
        assert tier["unique"] - tier["missing"] == sum(flows)
        assert tier["own"] == tier["fetched"]
    counted = events_of(synced.cas("redundancy", "--json"))
    for key in ("tier", "logical", "unpacked", "unique", "exclusive", "adds"):
        assert [tier[key] for tier in counted["tier"]] == [tier[key] for tier in said["tier"]]
    assert [counted["pair"]] == [said["pair"]]
    second = said["tier"][1]
    assert (1_000_000, 300_000) == (second["others"], second["own"])
    largest = [file["size"] for file in said["file"]]
    assert [1_000_000] * 3 + [300_000] == largest[:4]


def test_what_was_not_fetched_is_missing(place: Path) -> None:
    done = cas(place, "report", "--json", "-o", "r.html", "first", "second")
    assert (0, b"") == (done.returncode, done.stderr)
    said = events_of(done)
    assert [(57_000, 57_000, 0), (2_003_700, 2_003_700, 0)] == [
        (tier["unique"], tier["missing"], tier["fetched"]) for tier in said["tier"]
    ]
    assert "flow" not in said
    assert (place / "r.html").read_bytes().startswith(b"<!DOCTYPE html>")


def test_tiers_left_out_are_others_and_adopted_files_are_told(tmp_path: Path) -> None:
    made = make_place(tmp_path)
    old = tmp_path / "old"
    old.write_bytes((made.source / "second" / "more").read_bytes())
    assert made.cas("adopt", old).returncode == 0
    assert made.cas("sync").returncode == 0
    [tier] = events_of(made.cas("report", "--json", "second"))["tier"]
    assert (300_000, 1_000_000, 0) == (tier["adopted"], tier["others"], tier["own"])
    assert tier["unique"] == sum(tier[part] for part in PARTS)


def test_records_that_cannot_be_read_are_damage(tmp_path: Path) -> None:
    made = make_place(tmp_path)
    assert made.cas("sync").returncode == 0
    chunks = [
        ids[0]
        for pack in (made.store / "packs").iterdir()
        for meta, _, ids, _, _ in records(pack.read_bytes())
        if not meta
    ]
    harm(made.store, chunks[-1], record=True)
    done = made.cas("report", "--json", "-o", "r.html")
    assert 12 == done.returncode
    said = events_of(done)
    assert said["summary"][0]["damaged"]
    assert sum(tier["unknown"] for tier in said["tier"]) > 0
    assert all(tier["unique"] == sum(tier[part] for part in PARTS) for tier in said["tier"])
    assert (made.path / "r.html").stat().st_size > 1_000_000


def test_a_store_that_has_nothing_yet(quiet: Browser, tmp_path: Path) -> None:
    made = make_place(tmp_path)
    assert 10 == made.cas("report", "-o", "r.html").returncode
    assert not (tmp_path / "r.html").exists()
    with writing(made.store):
        pass
    done = made.cas("report", "-o", "r.html", "--png", "png")
    assert 3 == done.returncode
    assert b"never scanned" in done.stderr
    quiet.open(tmp_path / "r.html")
    assert quiet.run("document.querySelectorAll('.empty').length") >= 4
    assert {"waterfall.png", "matrix.png"} == {path.name for path in (tmp_path / "png").iterdir()}


def test_a_page_is_replaced_and_pictures_are_written(synced: Place, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    page.write_text("old")
    assert 0 == synced.cas("report", "-o", page, "--png", tmp_path / "a" / "b").returncode
    assert page.stat().st_size > 1_000_000
    for name in ("waterfall", "matrix"):
        assert png_size((tmp_path / "a" / "b" / f"{name}.png").read_bytes())
    assert ["a", "r.html"] == sorted(path.name for path in tmp_path.iterdir())


def test_faults_are_one_line(synced: Place, tmp_path: Path) -> None:
    nothing = synced.cas("report")
    assert (2, b"add -o report.html") == (
        nothing.returncode,
        nothing.stderr.partition(b"(")[2][:-2],
    )
    gone = synced.cas("report", "-o", tmp_path / "no" / "r.html")
    assert 1 == gone.returncode
    assert b"cannot be written: No such file" in gone.stderr
    assert 1 == len(gone.stderr.splitlines())


@pytest.mark.parametrize(("package", "option"), [("plotly", "-o"), ("matplotlib", "--png")])
def test_a_missing_library_is_named(
    synced: Place, tmp_path: Path, package: str, option: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules[{package!r}] = None\n")
    paths = f"{tmp_path}:{synced.environment()['PYTHONPATH']}"
    done = synced.cas("report", option, tmp_path / "x", "--json", environment={"PYTHONPATH": paths})
    assert 2 == done.returncode
    assert f"{package} is not installed (pip install 'cas-sync[report]')".encode() in done.stderr
    assert b'"event":"summary"' in done.stdout


def test_no_other_command_loads_the_libraries() -> None:
    script = (
        "import sys; from cli.commands import report, status; import cas.report.page,"
        " cas.report.picture; print({'plotly', 'matplotlib', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert b"set()\n" == done.stdout


def test_what_only_older_snapshots_have_was_fetched_too(tmp_path: Path) -> None:
    made = make_place(tmp_path)
    assert made.cas("sync").returncode == 0
    (made.source / "second" / "more").write_bytes(bytes(range(256)) * 1000)
    assert made.cas("sync").returncode == 0
    said = events_of(made.cas("report", "--json", "second"))
    [tier] = said["tier"]
    assert tier["fetched"] == tier["own"] + 300_000
    assert 2 == len(said["run"])
    fetched = {it["tier"]: it["fetched"] for it in said["origin"]}
    assert tier["fetched"] == fetched["second"]
    assert sum(run["fetched"] for run in said["run"]) == sum(fetched.values())
