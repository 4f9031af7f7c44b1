"""`cas diff` as a user meets it."""

import json
import os

from tests.cli.conftest import Place


def test_two_scans_are_compared(place: Place) -> None:
    second = place.source / "second"
    assert 0 == place.cas("sync", "second").returncode
    lonely = place.cas("diff", "second")
    assert (1, True) == (lonely.returncode, b"only one snapshot" in lonely.stderr)
    (second / "more").rename(second / "moved")
    (second / "again").unlink()
    (second / "new").write_bytes(b"new")
    assert 0 == place.cas("sync", "second").returncode
    (second / "new").chmod(0o600)
    os.utime(second, ns=(1, 1))
    assert 0 == place.cas("sync", "second").returncode

    done = place.cas("diff", "second@1", "second@2")
    assert 0 == done.returncode
    lines = done.stdout.decode().splitlines()
    wanted = [f"- {second}/again  (1.00 MB)", f"+ {second}/new  (3 B)",
              f"> {second}/more -> {second}/moved"]  # fmt: skip
    assert wanted == [line for line in lines if line[0] != "~"]
    assert b"1 added (3 B), 1 removed (1.00 MB), " in done.stderr
    assert b", 1 moved (300 kB)" in done.stderr
    newest = place.cas("diff", "second").stdout.decode().splitlines()
    assert f"~ {second}/new  (mode)" in newest
    assert b"" == place.cas("diff", "--content", "second").stdout
    older = place.cas("diff", "second@1").stdout.decode().splitlines()
    assert set(wanted) <= set(older)
    below = place.cas("diff", f"second@-3:{second}/new").stdout.decode()
    assert f"+ {second}/new  (3 B)\n" == below
    same = place.cas("diff", "second@1", "second@1")
    assert (0, b"") == (same.returncode, same.stdout)
    assert b"nothing has changed" in same.stderr

    events = [
        json.loads(line) for line in place.cas("diff", "--json", "second@1").stdout.splitlines()
    ]
    head, *changes, summary = events
    assert ("diff", "second") == (head["event"], head["before"]["tier"])
    moved = next(one for one in changes if one["what"] == "moved")
    assert (f"{second}/more", f"{second}/moved") == (
        moved["before"]["path"], moved["after"]["path"],
    )  # fmt: skip
    assert {"names": 1, "bytes": 1_000_000} == summary["removed"]


def test_two_paths_are_refused(synced: Place) -> None:
    done = synced.cas("diff", "first:/a", "first:/b")
    assert (2, b"") == (done.returncode, done.stdout)
