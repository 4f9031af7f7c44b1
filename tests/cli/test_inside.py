"""`TIER:ARCHIVE!/PATH` means what lies in an archive; a name of the tier goes before."""

from __future__ import annotations

import gzip
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cas.codec import registry
from cas.entry import Content, Entry
from cas.errors import NotHeldError, UsageError
from cas.snapshot import Snapshot
from cas.store.store import Store
from cli.inside import find_inside
from cli.listing import long_line
from cli.options import parse_target
from tests.cli.conftest import Place
from tests.inside.test_inside import CountingSource, some_files, taken, tar_of, zip_of
from tests.restore.trees import directory, file
from tests.unpack.carry import JOINERS

NO_SNAPSHOT = cast(Snapshot, None)


@pytest.fixture(autouse=True)
def _toys(monkeypatch: pytest.MonkeyPatch) -> None:
    for codec, place in JOINERS.items():
        monkeypatch.setitem(registry.JOINERS, codec, place)


@pytest.fixture
def store() -> Store:
    """A tier with an archive in a directory, and names that only look like one's inside."""
    files = {f"./{path}": data for path, data in some_files(1).items()}
    inner = gzip.compress(tar_of(some_files(2)), mtime=0)
    archive = taken(tar_of({**files, "in.tar.gz": inner}))
    odd = taken(tar_of(some_files(3)))
    source = CountingSource(archive)
    source.held |= odd.chunks | odd.objects
    entries = [
        directory(b"srv"), file(b"srv/a.tar", archive.content), directory(b"srv/odd!"),
        file(b"srv/odd!/b.tar", odd.content), file(b"srv/unread", None),
        file(b"srv/plain", Content(1, odd.content.digest, 1)),
    ]  # fmt: skip
    names = {entry.path: entry for entry in entries}

    def find(_: Any, path: bytes) -> Entry | None:
        return names.get(path)

    return cast(Store, SimpleNamespace(find=find, reader=source))


def listed(store: Store, text: str) -> list[str]:
    inside = find_inside(store, NO_SNAPSHOT, parse_target(text))
    assert inside is not None
    return [entry.path.decode() for entry in inside.entries(store)]


def test_all_or_a_part_is_listed(store: Store) -> None:
    everything = listed(store, "t:/srv/a.tar!/")
    assert everything == listed(store, "t:srv/a.tar!")
    assert {f"srv/a.tar!/{path}" for path in some_files(1)} < set(everything)
    assert ["srv/a.tar!/d1/1"] == listed(store, "t:/srv/a.tar!/d1/1")
    deep = [path for path in everything if "gz!" in path]
    assert ["srv/a.tar!/in.tar.gz", *deep] == listed(store, "t:/srv/a.tar!/in.tar.gz")
    assert deep == listed(store, "t:/srv/a.tar!/in.tar.gz!/")
    assert len(some_files(2)) == len(deep)
    assert ["srv/odd!/b.tar!/tiny"] == listed(store, "t:/srv/odd!/b.tar!/tiny")


def test_a_file_is_read(store: Store) -> None:
    wanted = {"d1/1": some_files(1)["d1/1"], "in.tar.gz!/d0/2": some_files(2)["d0/2"]}
    for path, expected in wanted.items():
        inside = find_inside(store, NO_SNAPSHOT, parse_target(f"t:/srv/a.tar!/{path}"))
        assert inside is not None
        assert expected == b"".join(inside.data(store))
    inside = find_inside(store, NO_SNAPSHOT, parse_target("t:/srv/a.tar!/none"))
    assert inside is not None
    with pytest.raises(NotHeldError, match="no such name in the archive"):
        inside.data(store)


def test_what_is_no_archive_is_said(store: Store) -> None:
    for text in ("t:/srv/odd!/b.tar", "t:/srv/odd!", "t:/none!/x", "t:/srv/a.tar"):
        assert find_inside(store, NO_SNAPSHOT, parse_target(text)) is None
    with pytest.raises(UsageError, match="no archive that was looked into"):
        find_inside(store, NO_SNAPSHOT, parse_target("t:/srv/plain!/x"))
    with pytest.raises(NotHeldError, match="could not be read at the source"):
        find_inside(store, NO_SNAPSHOT, parse_target("t:/srv/unread!/x"))


def test_a_member_is_shown_like_any_name(store: Store) -> None:
    inside = find_inside(store, NO_SNAPSHOT, parse_target("t:/srv/a.tar!/tiny"))
    assert inside is not None
    (entry,) = inside.entries(store)
    line = long_line(entry)
    assert line.startswith("-rw-r-----")
    assert line.endswith("/srv/a.tar!/tiny")
    fields = inside.fields(entry)
    assert ("/srv/a.tar!/tiny", 3, 7) == (fields["path"], fields["size"], fields["uid"])


def test_the_commands_look_into_what_was_synced(place: Place) -> None:
    files = some_files(1)
    files["in.zip"] = zip_of(some_files(2))
    data = gzip.compress(tar_of(files))
    (place.source / "first" / "all.tar.gz").write_bytes(data)
    assert 0 == place.cas("sync", "first").returncode
    archive = f"{place.source}/first/all.tar.gz"
    listed = place.cas("ls", f"first:{archive}!/")
    found = [line.removeprefix(f"{archive}!/") for line in listed.stdout.decode().splitlines()]
    assert {*files, *(f"in.zip!/{name}" for name in some_files(2))} == set(found)
    fields = json.loads(place.cas("ls", "--json", f"first:{archive}!/tiny").stdout)
    assert (f"{archive}!/tiny", 3, "0640") == (fields["path"], fields["size"], fields["mode"])
    for name, expected in (("d1/1", files["d1/1"]), ("in.zip", files["in.zip"]),
                           ("in.zip!/d1/1", some_files(2)["d1/1"])):  # fmt: skip
        assert expected == place.cas("cat", f"first:{archive}!/{name}").stdout
    assert data == place.cas("cat", f"first:{archive}").stdout
    for target in (f"first:{archive}!/d1", f"first:{archive}!/in.zip!/tiny"):
        assert 0 == place.cas("restore", target, "--to", "out").returncode
    assert files["d1/1"] == (place.path / "out/d1/1").read_bytes()
    assert some_files(2)["tiny"] == (place.path / "out/tiny").read_bytes()
    wrong = place.cas("restore", f"first:{archive}!/none", "--to", "out")
    assert (1, True) == (wrong.returncode, b"no such name in the archive" in wrong.stderr)
    wrong = place.cas("cat", f"first:{archive}!/none")
    assert (1, b"") == (wrong.returncode, wrong.stdout)
    assert b"no such name in the archive" in wrong.stderr
