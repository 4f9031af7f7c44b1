"""`cas audit` as a user meets it: every origin it names is where the bytes are."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.audit.packs import count, harm
from tests.cli.conftest import Place, command_line, make_place
from tests.inside.test_inside import some_files, tar_of

Event = dict[str, Any]


def audit(place: Place, *arguments: str | Path, code: int = 0) -> list[Event]:
    done = place.cas("audit", "--json", *arguments)
    assert code == done.returncode, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def only(events: list[Event], event: str) -> list[Event]:
    return [one for one in events if one["event"] == event]


def path_of(event: Event, name: str) -> bytes:
    """A path in JSON, as it is."""
    raw = event.get(f"{name}_b64")
    return base64.b64decode(raw) if raw else event[name].encode()


def bytes_at(extent: Event) -> bytes:
    """What is at the origin that an extent names, read from the source itself."""
    data = Path(os.fsdecode(path_of(extent, "from_path"))).read_bytes()
    offset = extent["from_offset"]
    if extent["from_inner"] is not None:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            file = archive.extractfile(extent["from_inner"])
            assert file is not None
            data = file.read()
        offset = extent["from_inner_offset"]
    return data[offset:][: extent["length"]]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """`first` brings an archive, `second` what was in it and more."""
    place = make_place(tmp_path_factory.mktemp("audited"))
    files = {**some_files(), "big": os.urandom(400_000)}
    packed = gzip.compress(tar_of(files), mtime=0)
    (place.source / "first" / "all.tar.gz").write_bytes(packed)
    (place.source / "second" / "big").write_bytes(files["big"])
    (place.source / "second" / "edited").write_bytes(files["big"][:300_000] + os.urandom(50_000))
    assert 0 == place.cas("sync").returncode
    return place


def test_sums_are_those_of_the_packs(store: Place) -> None:
    content, meta = count(store.store)
    events = audit(store)
    found = {
        (one["from_source"], one["from_tier"], one["run"]):
            [one["chunks"], one["bytes"], one["wire"]]
        for one in only(events, "sum")
    }  # fmt: skip
    assert content == found
    (total,) = only(events, "total")
    assert [sum(part[n] for part in content.values()) for n in range(3)] == [
        total["chunks"], total["bytes"], total["wire"],
    ]  # fmt: skip
    assert meta == [total["meta"]["chunks"], total["meta"]["bytes"], total["meta"]["wire"]]
    assert 0 == total["again"]["chunks"]
    listed = only(audit(store, "--extents"), "extent")
    assert total["bytes"] == sum(one["length"] for one in listed)
    assert total["wire"] == sum(one["wire"] for one in listed)


@pytest.mark.parametrize("tier", ["first", "second"])
def test_every_origin_has_the_bytes(store: Place, tier: str) -> None:
    events = audit(store, tier)
    extents = only(events, "extent")
    status = json.loads(store.cas("status", "--json", tier).stdout)
    (total,) = only(events, "total")
    fresh = [one for one in extents if not one["again"]]
    assert status["unique"] == total["bytes"] == sum(one["length"] for one in fresh)
    assert len({one["chunk"] for one in extents}) == len(fresh)
    placed = 0
    for one in extents:
        assert one["held"]
        assert "here" == one["from_source"]
        if one["from_offset"] is not None or one["from_inner_offset"] is not None:
            placed += 1
            assert one["chunk"] == hashlib.sha256(bytes_at(one)).hexdigest()
        if one["offset"] is not None:
            data = Path(os.fsdecode(path_of(one, "path"))).read_bytes()
            data = data[one["offset"] :][: one["length"]]
            assert one["chunk"] == hashlib.sha256(data).hexdigest()
    assert placed >= len(extents) - sum(bool(one["skeleton"]) for one in extents)


def test_a_file_was_first_had_from_an_archive(store: Place) -> None:
    source = f"{store.source}/first/all.tar.gz"
    extents = only(audit(store, f"second:{store.source}/second/big"), "extent")
    assert {(source, "big", "first")} == {
        (one["from_path"], one["from_inner"], one["from_tier"]) for one in extents
    }
    inside = only(audit(store, f"first:{source}!/big"), "extent")
    assert [one["chunk"] for one in extents] == [one["chunk"] for one in inside]
    assert {"big"} == {one["inner"] for one in inside}
    tiny = store.cas("audit", f"first:{source}!/tiny")
    assert (0, True) == (tiny.returncode, b"lies in the archive's skeleton" in tiny.stderr)
    digest = hashlib.sha256((store.source / "second" / "big").read_bytes()).hexdigest()
    by_digest = only(audit(store, digest), "extent")
    assert [one["chunk"] for one in extents] == [one["chunk"] for one in by_digest]
    text = store.cas("audit", f"second:{store.source}/second/big").stdout.decode()
    assert f"first:{source}!/big +0" in text
    assert "together" in text


def test_one_chunk_and_all_its_places(store: Place) -> None:
    extents = only(audit(store, f"second:{store.source}/second/big"), "extent")
    chunk = extents[0]["chunk"]
    (one,) = only(audit(store, "--places", chunk[:16]), "extent")
    assert (chunk, 3) == (one["chunk"], one["places"])
    found = {(at["tier"], Path(at["path"]).name, at["inner"]) for at in one["at"]}
    wanted = {("first", "all.tar.gz", "big"), ("second", "big", None), ("second", "edited", None)}
    assert wanted == found
    text = store.cas("audit", "--places", chunk[:16]).stdout.decode()
    assert chunk in text
    assert "fetched over lane 0" in text
    assert f"also second:{store.source}/second/edited +0" in text
    many = only(audit(store, "--places", "second"), "extent")
    assert all(one["places"] >= 1 for one in many)


def test_what_is_here_because_of_a_tier(store: Place) -> None:
    events = audit(store, "--from", "first")
    (total,) = only(events, "total")
    extents = only(events, "extent")
    elsewhere = {one["chunk"] for one in only(audit(store, "second"), "extent")}
    assert total["bytes"] == sum(one["length"] for one in extents)
    assert all(one["only"] == (one["chunk"] not in elsewhere) for one in extents)
    assert total["only"]["bytes"] == sum(one["length"] for one in extents if one["only"])
    assert 0 < total["only"]["bytes"] < total["bytes"]
    (whole,) = only(audit(store, "--from", "here"), "total")
    assert whole["only"]["bytes"] == whole["bytes"] == only(audit(store), "total")[0]["bytes"]
    files = store.cas("audit", "--from", "first").stdout.decode().splitlines()
    assert files[0].split() == ["in", "no", "other", "tier", "bytes", "file"]
    assert any(f"first:{store.source}/first/all.tar.gz" in line for line in files)
    wrong = store.cas("audit", "--from", "frist")
    assert (1, True) == (wrong.returncode, b"did you mean" in wrong.stderr)


def test_a_run_and_what_it_brought(store: Place) -> None:
    (record,) = (store.store / "runs").iterdir()
    events = audit(store, record.stem[:10])
    assert {record.stem} == {one["run"] for one in only(events, "extent")}
    fields = json.loads(record.read_text())
    (total,) = only(events, "total")
    assert sum(tier["fetched"] for tier in fields["tiers"]) == total["bytes"]
    assert total["wire"] < fields["wire_in"]
    unknown = store.cas("audit", "0" * 32)
    assert (0, True) == (unknown.returncode, b"nothing that is held was first" in unknown.stderr)


def test_csv_has_the_same_rows(store: Place) -> None:
    text = store.cas("audit", "--csv", "first").stdout.decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    extents = only(audit(store, "first"), "extent")
    assert len(extents) == len(rows)
    for row, one in zip(rows, extents, strict=True):
        assert (row["chunk"], int(row["length"])) == (one["chunk"], one["length"])
        assert row["again"] == str(one["again"]).lower()
        assert ("path_b64" in one) == (row["path"] == str(store.source / "first" / "latin-\\xe4"))


def test_parquet_or_one_line(store: Place, tmp_path: Path) -> None:
    out = tmp_path / "a.parquet"
    done = store.cas("audit", "--parquet", out, "first")
    if importlib.util.find_spec("pyarrow") is None:
        assert (2, 1) == (done.returncode, done.stderr.count(b"\n"))
        assert b"pyarrow is not installed" in done.stderr
        assert [] == list(tmp_path.iterdir())
        return
    import pyarrow.parquet as pq  # type: ignore[import-not-found,unused-ignore]  # an extra

    extents = only(audit(store, "first"), "extent")
    table = pq.read_table(out).to_pydict()
    assert [one["chunk"] for one in extents] == table["chunk"]
    assert [one["from_inner_offset"] for one in extents] == table["from_inner_offset"]
    assert [out] == list(tmp_path.iterdir())
    assert 2 == store.cas("audit", "--parquet", out, "first").returncode


def test_origins_survive_a_repair_and_a_new_index(store: Place, tmp_path: Path) -> None:
    place = Place(tmp_path, store.source)
    shutil.copytree(store.store, place.store)
    shutil.copy(store.path / "plan.toml", tmp_path)
    before = {one["chunk"]: one for one in only(audit(place, "--extents"), "extent")}
    again = place.cas("repair", "--rebuild-index")
    assert 0 == again.returncode, again.stderr.decode()
    rebuilt = {one["chunk"]: one for one in only(audit(place, "--extents"), "extent")}
    assert before == rebuilt
    harm(place.store, bytes.fromhex(next(iter(before))))
    assert 12 == place.cas("verify", "--repair").returncode
    assert 0 == place.cas("sync").returncode
    (total,) = only(audit(place), "total")
    assert sum(one["length"] for one in before.values()) == total["bytes"]
    repaired = {one["chunk"]: one for one in only(audit(place, "--extents"), "extent")}
    fetched = [chunk for chunk in before if before[chunk] != repaired[chunk]]
    assert next(iter(before)) in fetched
    assert len(fetched) < len(before)
    assert {one["run"] for one in before.values()}.isdisjoint(
        repaired[chunk]["run"] for chunk in fetched
    )
    assert total["again"]["chunks"] >= len(fetched)


def test_a_damaged_record_is_said_and_the_rest_audited(store: Place, tmp_path: Path) -> None:
    copy = shutil.copytree(store.store, tmp_path / "store")
    tier = only(audit(store, "second"), "extent")
    chunk = bytes.fromhex(tier[-1]["chunk"])
    pack = harm(copy, chunk, record=True)
    events = audit(store, "--store", copy, "second", code=12)
    assert len(tier) == len(only(events, "extent"))
    held = [one for one in only(events, "extent") if one["held"]]
    assert 0 < len(held) < len(tier)
    (said,) = only(events, "total")[0]["damaged"]
    assert f"pack {pack.name}" in said
    for words in ([], [chunk.hex()], ["--from", "second"]):
        done = store.cas("audit", "--store", copy, *words)
        assert (12, 1) == (done.returncode, done.stderr.count(b"\n")), words


def test_what_is_adopted_is_said_to_be(place: Place) -> None:
    done = place.cas("adopt", place.source / "first" / "blob")
    assert 0 == done.returncode, done.stderr.decode()
    assert 0 == place.cas("sync", "second").returncode
    extents = only(audit(place, f"second:{place.source}/second/again"), "extent")
    assert {(True, "adopted")} == {(one["adopted"], one["from_source"]) for one in extents}
    text = place.cas("audit", extents[0]["chunk"][:12]).stdout.decode()
    assert "adopted, " in text


def test_names_that_mean_nothing(store: Place) -> None:
    for name, said in (
        ("frist", b"no tier, and no hex digits"),
        ("00000000", b"no chunk and no run begins so"),
        ("0" * 64, b"no chunk and no file has this digest"),
        ("first:/nothing", b"no such name in the tier"),
        (f"first:{store.source}/first/all.tar.gz!/none", b"no such name in the archive"),
    ):
        done = store.cas("audit", name)
        assert (1, b"") == (done.returncode, done.stdout)
        assert said in done.stderr
    assert 2 == store.cas("audit", "--from", "first", "first").returncode
    assert 2 == store.cas("audit", "--csv", "--json", "first").returncode


def test_a_closed_pipe_is_no_matter(store: Place) -> None:
    words = ["sh", "-c", f"{' '.join(command_line())} audit --csv first | head -n 1"]
    done = subprocess.run(words, cwd=store.path, env=store.environment(), capture_output=True)
    assert (1, b"") == (done.stdout.count(b"\n"), done.stderr)
