"""Files whose bytes lie in many frames are made together, each frame being decoded once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cas.frame import FrameDecoder
from cas.restore import gather, tree
from cas.restore.report import RestoreOptions
from tests.pull.world import World

OLD, NEW = 24, 40  # files


def _fill(world: World) -> None:
    """Old files that fill several frames, then new ones that take most of theirs from old ones."""
    rng = random.Random(5)
    words = [rng.randbytes(9).hex() for _ in range(4000)]
    old = world.source / "old"
    old.mkdir()
    for number in range(OLD):
        text = " ".join(rng.choices(words, k=200_000)).encode()  # 3.8 MB
        (old / f"{number:02}").write_bytes(text)
    new = world.source / "new"
    new.mkdir()
    for number in range(NEW):
        parts = []
        for _ in range(3):
            data = (old / f"{rng.randrange(OLD):02}").read_bytes()
            at = rng.randrange(len(data) - 700_000)
            parts += [data[at : at + 700_000], b"edit %d" % number]
        (new / f"{number:02}").write_bytes(b"".join(parts))


@pytest.mark.parametrize("open_at_once", [4096, 5])
def test_no_frame_is_decoded_again_for_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_at_once: int
) -> None:
    world = World(tmp_path)
    _fill(world)
    world.sync(world.tier("one"))
    store = world.open()
    _, snapshot = store.latest("one")
    decoded = [0]
    segment = FrameDecoder.segment

    def counting(self: FrameDecoder, payload: bytes, plain_size: int) -> bytes:
        decoded[0] += plain_size
        return segment(self, payload, plain_size)

    monkeypatch.setattr(FrameDecoder, "segment", counting)
    monkeypatch.setattr(tree, "open_most", lambda: open_at_once)
    target = tmp_path / "back"
    report = tree.restore_entries(store.entries(snapshot), store.reader, target, RestoreOptions())
    store.close()
    assert () == tuple(report.problems)
    for path, data in world.on_disk().items():
        assert data == (target / path.decode()[1:]).read_bytes()
    unique = sum(location.length for _, location in world.index.chunks())
    if open_at_once > NEW:
        assert decoded[0] < 2 * unique
    assert gather.open_most() >= gather.OPEN_LEAST


@pytest.mark.parametrize("vast", [tree.VAST, 2 * 2**20])
def test_large_files_come_back_whole_by_frames_and_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vast: int
) -> None:
    world = World(tmp_path)
    _fill(world)
    rng = random.Random(6)
    for number, hole in enumerate((0, 5 * 2**20)):
        with (world.source / f"large{number}").open("wb") as file:
            for name in rng.choices(sorted((world.source / "old").iterdir()), k=4):
                file.write(rng.randbytes(1_500_000))
                file.seek(hole, 1)
                file.write(name.read_bytes()[rng.randrange(1000) :])
            file.truncate(file.tell() + hole)
    world.sync(world.tier("one"))
    store = world.open()
    _, snapshot = store.latest("one")
    monkeypatch.setattr(tree, "VAST", vast)
    target = tmp_path / "back"
    told: list[int] = []
    options = RestoreOptions(progress=lambda size, _: told.append(size))
    report = tree.restore_entries(store.entries(snapshot), store.reader, target, options)
    store.close()
    assert () == tuple(report.problems)
    assert report.bytes == sum(told)
    for path, data in world.on_disk().items():
        assert data == (target / path.decode()[1:]).read_bytes()


def test_a_large_file_with_one_wrong_byte_gets_no_name(tmp_path: Path) -> None:
    world = World(tmp_path)
    (world.source / "large").write_bytes(random.Random(7).randbytes(20 * 2**20))  # stored plain
    world.sync(world.tier("one"))
    store = world.open()
    _, snapshot = store.latest("one")
    (pack,) = world.layout.packs.iterdir()
    pack.chmod(0o600)
    with pack.open("r+b") as file:
        file.seek(pack.stat().st_size // 2)
        old = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([old[0] ^ 1]))
    report = tree.restore_entries(store.entries(snapshot), store.reader, tmp_path / "back")
    store.close()
    assert 1 == report.damaged
    assert 0 == report.files
    assert not list((tmp_path / "back").rglob("large"))
