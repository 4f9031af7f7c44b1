"""The script at the far end without the way there: what it takes, refuses and removes."""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cas.bootstrap import receive

NAME = "1.0-0123abcd"
FILES = {"cli/__main__.py": b"print('started')\n", "data": bytes(range(256)) * 1000}


def _manifest(files: Mapping[str, bytes]) -> bytes:
    return "".join(f"{hashlib.sha256(d).hexdigest()}  {p}\n" for p, d in files.items()).encode()


def _archive(files: Mapping[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            info.type, info.size = kind, len(data) if kind == tarfile.REGTYPE else 0
            tar.addfile(info, io.BytesIO(data))
    return lzma.compress(packed.getvalue())


MANIFEST = _manifest(FILES)
ARCHIVE = _archive({receive.MANIFEST: MANIFEST, **FILES})


class Far:
    """A directory that kits are put in."""

    def __init__(self, root: Path) -> None:
        self.agent = root / "cas" / "agent"

    def order(self, **changed: object) -> dict[str, object]:
        """The client's first line."""
        return {
            "directory": str(self.agent),
            "name": NAME,
            "manifest": hashlib.sha256(MANIFEST).hexdigest(),
            "launcher": "cas-1.0",
            "python": sys.executable,
            "clean": False,
            **changed,
        }

    def talk(
        self, archive: bytes = b"", offset: int = 0, sent: int | None = None, **changed: object
    ) -> list[dict[str, Any]]:
        """A whole conversation, in which only the first `sent` bytes of the archive come; what the
        far end says but how far it is."""
        digest = hashlib.sha256(archive).hexdigest()
        offer = {"offset": offset, "size": len(archive), "sha256": digest}
        lines = [json.dumps(line).encode() + b"\n" for line in (self.order(**changed), offer)]
        incoming = io.BytesIO(b"".join(lines) + archive[offset:sent])
        outgoing = io.BytesIO()
        receive.main(incoming, outgoing)
        said = [
            line.removeprefix(receive.MARK) for line in outgoing.getvalue().decode().split("\n")
        ]
        answers = [json.loads(line) for line in said if line]
        return [answer for answer in answers if answer.get("state") != "receiving"]


@pytest.fixture
def far(tmp_path: Path) -> Far:
    return Far(tmp_path)


def test_a_kit_is_put_in_its_place_and_can_be_started(far: Far) -> None:
    absent, done = far.talk(ARCHIVE)
    assert ("absent", 0, "done") == (absent["state"], absent["have"], done["state"])
    assert FILES["data"] == (far.agent / NAME / "data").read_bytes()
    started = subprocess.run(["sh", done["launcher"]], capture_output=True, check=True)
    assert b"started\n" == started.stdout
    assert {NAME, "cas-1.0"} == set(os.listdir(far.agent))
    assert 0o700 == far.agent.stat().st_mode & 0o777


def test_the_second_time_it_is_there(far: Far) -> None:
    far.talk(ARCHIVE)
    assert ["there", "done"] == [line["state"] for line in far.talk()]


def test_one_that_is_damaged_is_put_there_anew(far: Far) -> None:
    far.talk(ARCHIVE)
    (far.agent / NAME / "data").write_bytes(b"changed")
    assert ["absent", "done"] == [line["state"] for line in far.talk(ARCHIVE)]
    assert FILES["data"] == (far.agent / NAME / "data").read_bytes()
    assert {NAME, "cas-1.0"} == set(os.listdir(far.agent))


def test_what_has_come_stays_and_is_gone_on_from(far: Far) -> None:
    _, failed = far.talk(ARCHIVE, sent=300)
    assert "the connection ended" == failed["error"]
    absent, done = far.talk(ARCHIVE, offset=300)
    assert (300, hashlib.sha256(ARCHIVE[:300]).hexdigest()) == (absent["have"], absent["sha256"])
    assert "done" == done["state"]


def test_an_archive_cut_at_every_eighth_byte_goes_on_from_there(far: Far) -> None:
    have = 0
    for cut in range(0, len(ARCHIVE), 8):
        absent, failed = far.talk(ARCHIVE, offset=have, sent=cut)
        assert have == absent["have"]
        assert "error" in failed
        have = cut
    assert "done" == far.talk(ARCHIVE, offset=have)[-1]["state"]


def test_a_rest_that_is_not_ours_is_overwritten(far: Far) -> None:
    far.talk(b"x" * len(ARCHIVE), sent=len(ARCHIVE) - 1)
    assert "done" == far.talk(ARCHIVE, offset=0)[-1]["state"]


def test_bytes_that_changed_on_the_way_are_refused_and_not_kept(far: Far) -> None:
    bad = bytearray(ARCHIVE)
    bad[len(bad) // 2] ^= 1
    digest = hashlib.sha256(ARCHIVE).hexdigest()
    offer = {"offset": 0, "size": len(ARCHIVE), "sha256": digest}
    lines = b"".join(json.dumps(line).encode() + b"\n" for line in (far.order(), offer))
    outgoing = io.BytesIO()
    receive.main(io.BytesIO(lines + bad), outgoing)
    assert b"not what was sent" in outgoing.getvalue()
    assert [] == os.listdir(far.agent)


LYING = {"cli/__main__.py": b"other\n", "data": FILES["data"]}


@pytest.mark.parametrize(
    ("archive", "why"),
    [
        (_archive({receive.MANIFEST: MANIFEST, **FILES, "more": b""}), "its manifest says"),
        (_archive({receive.MANIFEST: MANIFEST, "data": FILES["data"]}), "its manifest says"),
        (_archive({receive.MANIFEST: MANIFEST, **LYING}), "its manifest says"),
        (_archive({receive.MANIFEST: _manifest(LYING), **LYING}), "its manifest says"),
        (_archive(FILES), "its manifest says"),
        (_archive({"../up": b""}), "must not"),
        (_archive({"a//b": b""}), "must not"),
        (_archive({"/etc/up": b""}), "must not"),
        (_archive({"link": b""}, tarfile.SYMTYPE), "must not"),
    ],
)
def test_a_kit_that_is_not_what_it_says_is_refused(far: Far, archive: bytes, why: str) -> None:
    failed = far.talk(archive)[-1]
    assert why in failed["error"]
    assert not (far.agent / NAME).exists()
    assert not list(far.agent.glob("*.new*"))


@pytest.mark.parametrize(
    "changed",
    [{"name": "../up"}, {"name": "1.0"}, {"launcher": "sh"}, {"launcher": "cas-1/0"}],
)
def test_names_that_are_none_of_ours_are_refused(far: Far, changed: dict[str, Any]) -> None:
    [failed] = far.talk(ARCHIVE, **changed)
    assert "none of ours" in failed["error"]
    assert not far.agent.exists()


def test_an_offer_that_is_too_large_is_refused(far: Far) -> None:
    offer = {"offset": 0, "size": receive.PACKED_LIMIT + 1, "sha256": ""}
    lines = b"".join(json.dumps(line).encode() + b"\n" for line in (far.order(), offer))
    outgoing = io.BytesIO()
    receive.main(io.BytesIO(lines), outgoing)
    assert b"too large" in outgoing.getvalue()


def test_a_directory_that_others_can_write_is_refused(far: Far) -> None:
    far.agent.mkdir(parents=True)
    far.agent.chmod(0o777)
    [failed] = far.talk(ARCHIVE)
    assert "can be written by others" in failed["error"]


def test_a_link_in_place_of_the_directory_is_refused(far: Far, tmp_path: Path) -> None:
    far.agent.parent.mkdir()
    far.agent.symlink_to(tmp_path)
    [failed] = far.talk(ARCHIVE)
    assert "not a directory of ours" in failed["error"]


@pytest.mark.root
def test_a_directory_of_another_user_is_refused(far: Far) -> None:
    far.agent.mkdir(parents=True)
    os.chown(far.agent.parent, 12345, -1)
    [failed] = far.talk(ARCHIVE)
    assert "not a directory of ours" in failed["error"]


def test_only_what_is_ours_is_cleaned_away_and_only_when_asked(far: Far, tmp_path: Path) -> None:
    far.talk(ARCHIVE, name="0.9-00000000", launcher="cas-0.9")
    kept = tmp_path / "precious"
    kept.mkdir()
    (far.agent / "0.7-11111111").symlink_to(kept)
    (far.agent / "notes").write_text("mine")
    (far.agent / "0.8-22222222").mkdir()  # like a kit by its name, but without a manifest
    (far.agent / "0.6-33333333.partial").touch()
    (far.agent / "0.6-33333333.new.7").mkdir()
    assert [] == far.talk(ARCHIVE)[-1]["removed"]
    removed = far.talk(clean=True)[-1]["removed"]
    gone = {"0.9-00000000", "0.6-33333333.partial", "0.6-33333333.new.7", "cas-0.9"}
    assert gone == set(removed)
    left = {NAME, "cas-1.0", "0.7-11111111", "0.8-22222222", "notes"}
    assert left == set(os.listdir(far.agent))
    assert kept.is_dir()
