"""The small host that the outputs in docs/cli.md are of: always the same names, bytes and times.

It lies at a fixed depth below /tmp, because a tier also has the directories above its paths; shown,
its own path is taken away, so that it looks like a whole machine.
"""

import gzip
import io
import os
import random
import tarfile
import tempfile
from pathlib import Path

from tests.cli.conftest import Place, command_line

MTIME = 1_790_000_000
HOME = "home/me"

PLAN = """\
store = "store"

[source.npu]

[[tier]]
name = "00-critical-context"
source = "npu"
paths = ["{root}/opt/calrt"]

[[tier]]
name = "source"
source = "npu"
paths = ["{root}/srv/llama.cpp.tar.gz"]

[[tier]]
name = "02-user-workspace"
source = "npu"
paths = ["{root}/home/u/llm"]

[[tier]]
name = "05-oci-image"
source = "npu"
paths = ["{root}/srv/image.oci.tar"]

[sets]
minimal = ["00-critical-context", "source"]
"""
SENTENCE = "the tensor cache of a model is kept where its head reads each layer once and in order"


def make_example_place() -> Place:
    """A new one; `path` is the user's home in it, with the plan."""
    root = Path(tempfile.mkdtemp(dir="/tmp", prefix="cas-examples-"))
    runtime, llm = root / "opt/calrt", root / "home/u/llm"
    _write(runtime / "VERSION", b"8.2.0\n")
    _write(runtime / "include/ops.h", _text(1, 3_000))
    _write(runtime / "include/types.h", _text(2, 9_000))
    _write(runtime / "lib/libcalrt.so", _bytes(3, 900_000))
    sources = {f"llama.cpp/src/part{n}.cpp": _text(10 + n, 60_000) for n in range(8)}
    sources |= {"llama.cpp/README.md": b"# llama.cpp\n\n" + _text(4, 2_000)}
    _write(root / "srv/llama.cpp.tar.gz", gzip.compress(_tar(sources), mtime=0))
    for name, data in sources.items():
        _write(llm / name, data)
    _write(llm / "notes.md", _text(5, 4_000))
    _write(llm / "weights.bin", _bytes(6, 1_500_000))
    (llm / "current").symlink_to("llama.cpp")
    layer = {
        f"opt/calrt/{name}": (runtime / name).read_bytes()
        for name in ("VERSION", "lib/libcalrt.so")
    }
    layer |= {"usr/bin/serve": _bytes(7, 400_000)}
    _write(
        root / "srv/image.oci.tar", _tar({"blobs/layer.tar": _tar(layer), "index.json": b"{}\n"})
    )
    _write(root / HOME / "Downloads/image.oci.tar.incoming",
           (root / "srv/image.oci.tar").read_bytes()[:700_000])  # fmt: skip
    (root / HOME / "plan.toml").write_text(PLAN.format(root=root))
    _program(root / "bin/cas")
    for path in root.rglob("*"):
        os.utime(path, (MTIME, MTIME), follow_symlinks=False)
    return Place(root / HOME, root)


def change(place: Place) -> None:
    """What has happened at the source a day later."""
    llm = place.source / "home/u/llm"
    _write(llm / "notes.md", _text(8, 5_000))
    _write(llm / "eval/results.csv", _text(9, 20_000))
    (llm / "llama.cpp/src/part7.cpp").rename(llm / "llama.cpp/src/last.cpp")


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o644)


def _program(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec {" ".join(command_line())} "$@"\n')
    path.chmod(0o755)


def _bytes(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


def _text(seed: int, size: int) -> bytes:
    chosen, words = random.Random(seed), SENTENCE.split()
    lines = (" ".join(chosen.choices(words, k=9)) for _ in range(size // 30))
    return "\n".join(lines).encode()[:size]


def _tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(data), MTIME
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()
