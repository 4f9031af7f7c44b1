"""Archives, as a user meets them: fetched once, listed, read inside, restored byte for byte."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Place

SIZE = 400_000


def _words(seed: str, size: int = SIZE) -> bytes:
    """Text that compresses about threefold, and not at all with other text of the kind."""
    lines = (hashlib.sha256(f"{seed} {n // 3}".encode()).hexdigest() for n in range(size // 65 + 1))
    return "\n".join(lines).encode()[:size]


def _run(*command: str | Path, cwd: Path) -> bytes:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, check=True)
    return done.stdout


@pytest.fixture
def packed(place: Place) -> Place:
    """A tree in the first tier, and the same files packed in various ways in the second."""
    first, second = place.source / "first", place.source / "second"
    tree = first / "tree"
    (tree / "sub").mkdir(parents=True)
    for name in ("one", "two", "sub/three"):
        (tree / name).write_bytes(_words(name))
    _run("tar", "-cf", second / "tree.tar", "tree", cwd=first)
    _run("tar", "-czf", second / "tree.tar.gz", "tree", cwd=first)
    _run("tar", "-cJf", second / "tree.tar.xz", "tree", cwd=first)
    _run("zip", "-qr", second / "tree.zip", "tree", cwd=first)
    _run("tar", "-czf", second / "nested.tgz", "tree.zip", "tree.tar.xz", cwd=second)
    return place


def _summary(place: Place, *arguments: str | Path) -> dict[str, object]:
    done = place.cas(*arguments, "--json")
    assert 0 == done.returncode, done.stderr.decode()
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _tier(summary: dict[str, object], name: str) -> dict[str, int]:
    tiers = summary["tiers"]
    assert isinstance(tiers, list)
    return next(tier for tier in tiers if tier["name"] == name)


def test_what_is_packed_too_comes_once(packed: Place) -> None:
    summary = _summary(packed, "sync")
    more = 300_000  # the file of random bytes that is in the second tier only
    second = _tier(summary, "second")
    assert second["logical"] > 3 * SIZE
    assert second["fetched"] < more + 60_000
    assert 0 == second["left_packed"]


def test_they_come_back_as_they_were(packed: Place) -> None:
    _summary(packed, "sync")
    done = packed.cas("restore", "second", "--to", "out")
    assert 0 == done.returncode, done.stderr.decode()
    at = packed.source / "second"
    out = packed.path / "out" / str(at).lstrip("/")
    for name in ("tree.tar", "tree.tar.gz", "tree.tar.xz", "tree.zip", "nested.tgz"):
        assert (at / name).read_bytes() == (out / name).read_bytes(), name
    assert 0 == packed.cas("verify").returncode


def test_what_is_in_them_is_listed_and_read(packed: Place) -> None:
    _summary(packed, "sync")
    at = packed.source / "second"
    for name in ("tree.tar", "tree.tar.gz", "tree.tar.xz", "tree.zip", "nested.tgz!/tree.zip"):
        listed = packed.cas("ls", f"second:{at}/{name}!/tree/sub").stdout
        assert listed.endswith(b"!/tree/sub/three\n"), name
        done = packed.cas("cat", f"second:{at}/{name}!/tree/sub/three")
        assert _words("sub/three") == done.stdout, done.stderr.decode()


def test_an_archive_that_is_cut_off_says_so(packed: Place) -> None:
    at = packed.source / "second"
    whole = (at / "tree.tar.gz").read_bytes()
    (at / "tree.tar.gz").write_bytes(whole[: len(whole) // 2])
    assert 1 == _tier(_summary(packed, "sync"), "second")["left_packed"]
    listed = packed.cas("ls", "--long", f"second:{at}/tree.tar.gz").stdout.decode()
    assert listed.endswith("tree.tar.gz [cut off]\n")
    [fields] = packed.cas("ls", "--json", f"second:{at}/tree.tar.gz").stdout.splitlines()
    assert ["cut off"] == json.loads(fields)["packed"]
    status = packed.cas("status", "--problems", "second").stdout.decode()
    assert f"1 thing in archives left packed:\n  second: {at}/tree.tar.gz: cut off" in status


def test_a_second_scan_takes_nothing_apart_again(packed: Place) -> None:
    _summary(packed, "sync")
    again = _tier(_summary(packed, "sync"), "second")
    assert (0, 0) == (again["to_fetch"], again["fetched"])


def test_a_partial_download_is_worth_its_size(packed: Place) -> None:
    """57.15 % of a tar.gz, adopted, leaves at most 43 % of what it would have cost to fetch."""
    at, partial = packed.source / "second", packed.path / "big.tar.gz.incoming"
    big = packed.path / "big"
    big.mkdir()
    for number in range(20):
        (big / f"{number:02}").write_bytes(_words(f"big {number}"))
    _run("tar", "-czf", at / "big.tar.gz", "-C", packed.path, "big", cwd=packed.path)
    whole = (at / "big.tar.gz").read_bytes()
    partial.write_bytes(whole[: len(whole) * 5715 // 10_000])
    plain = _tier(_summary(packed, "sync", "second", "--store", "other"), "second")["fetched"]
    adopted = _summary(packed, "adopt", partial)
    assert '"name": "adopted-big.tar.gz.incoming-' in json.dumps(adopted)
    left = _tier(_summary(packed, "sync", "second"), "second")["fetched"]
    of_archive = 20 * SIZE
    assert plain - left >= 0.57 * of_archive - 2**20  # the span that was cut off


def test_what_is_adopted_may_be_gone_afterwards(packed: Place) -> None:
    seed = packed.path / "seed"
    seed.write_bytes(_words("seed"))
    assert 0 == packed.cas("adopt", "seed").returncode
    seed.unlink()
    (packed.source / "second" / "grown").write_bytes(_words("seed") + b"more")
    before = _tier(_summary(packed, "sync"), "second")
    assert before["here"] > SIZE // 2


def test_adopting_what_is_not_there() -> None:
    done = Place(Path("/"), Path("/")).cas("adopt", "--store", "/nowhere", "no such file")
    assert 2 == done.returncode
    assert b"no such file" in done.stderr
