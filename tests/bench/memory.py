"""The most memory that the agent and the client take, for one large file and for many small ones.

Each is the peak of the process itself (VmHWM), of a first sync into an empty store, of the second
sync, and of the restore. Once more with zstd's level 19, whose tables are the largest that a plan
is likely to ask for; and of an image with one large layer at level 9, taken apart and sent.
"""

from __future__ import annotations

import gzip
import io
import shutil
import tarfile
from pathlib import Path

from tests.bench.data import large_file, source_tree
from tests.bench.process import Usage
from tests.bench.product import Cas
from tests.bench.verdict import MIB, Setting, Verdict

AGENT_LIMIT = 200.0  # MiB
CLIENT_LIMIT = 300.0


def run(setting: Setting) -> list[Verdict]:
    """See `Benchmark`."""
    size = (128 if setting.quick else 4096) * MIB
    hard = (48 if setting.quick else 128) * MIB
    count = 5_000 if setting.quick else 200_000
    large, many = setting.work / "large", setting.work / "many"
    large.mkdir()
    large_file(large / "file", hard, seed=4)
    verdicts = _peak_at(19, setting, f"a file of {hard // MIB} MiB", large)
    large_file(large / "file", size, seed=4)
    verdicts += _peaks(setting, f"a file of {size // MIB} MiB", large)
    shutil.rmtree(large)
    shutil.rmtree(setting.work / "large-restored")
    layer = (64 if setting.quick else 1536) * MIB
    _image(setting.work / "image", layer, small=count // 50)
    what = f"an image with a layer of {layer // MIB} MiB"
    verdicts += _peak_at(9, setting, what, setting.work / "image" / "image.tar")
    shutil.rmtree(setting.work / "image")
    source_tree(many, count, seed=5, most=16 * 1024)
    return verdicts + _peaks(setting, f"{count} files", many)


def _peaks(setting: Setting, what: str, data: Path) -> list[Verdict]:
    cas = Cas(setting.work / "cas", {"data": data})
    cas.forget()
    verdicts = []
    for name in ("first sync", "second sync"):
        client = cas.sync()
        verdicts.append(_verdict(f"agent, {name} of {what}", cas.agent(), AGENT_LIMIT))
        verdicts.append(_verdict(f"client, {name} of {what}", client, CLIENT_LIMIT))
    restored = cas.restore("data", setting.work / f"{data.name}-restored")
    return [*verdicts, _verdict(f"restore of {what}", restored, CLIENT_LIMIT)]


def _peak_at(level: int, setting: Setting, what: str, data: Path) -> list[Verdict]:
    cas = Cas(setting.work / "cas", {"data": data}, level=level)
    cas.forget()
    client = cas.sync()
    return [
        _verdict(f"agent, first sync of {what} at level {level}", cas.agent(), AGENT_LIMIT),
        _verdict(f"client, first sync of {what} at level {level}", client, CLIENT_LIMIT),
    ]


def _image(directory: Path, size: int, small: int) -> None:
    """An archive, `image.tar`, of one layer: a tar of a file of `size` bytes and of `small` small
    ones, each compressed by itself as manual pages are; compressed as a whole."""
    large, many, layer = (directory / name for name in ("large", "many", "layer.tar.gz"))
    many.mkdir(parents=True)
    large_file(large, size, seed=6)
    source_tree(many, small, seed=7, most=16 * 1024)
    with tarfile.open(layer, "w:gz", compresslevel=6) as tar:
        tar.add(large, "large")
        for path in sorted(many.rglob("*")):
            if path.is_file():
                data = gzip.compress(path.read_bytes(), mtime=0)
                member = tarfile.TarInfo(f"{path.relative_to(many)}.gz")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    with tarfile.open(directory / "image.tar", "w") as tar:
        tar.add(layer, "blobs/layer.tar.gz")
    for path in (large, layer):
        path.unlink()
    shutil.rmtree(many)


def _verdict(who: str, usage: Usage, limit: float) -> Verdict:
    facts: dict[str, object] = {"wall": usage.wall, "cpu": usage.cpu}
    return Verdict(f"peak memory of the {who}", usage.peak / MIB, limit, "MiB", facts=facts)
