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
