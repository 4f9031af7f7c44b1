"""Side information and speed of the deflate core on streams of real encoders (tests/zoo).

A stream's side information is in percent of its compressed bytes; speeds are plain MB for each
second of one processor. Encoders run beside on the same plain bytes. Without a large zoo, the small
one of the tests is measured: its streams are too short for speeds to mean much.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.verdict import Setting, Verdict
from tests.zoo.stream import STREAMS, Stream, read
from tests.zoo.tools import Go, Unavailable

ROOT = Path(__file__).resolve().parents[2]
CONTAINERS = ("gzip", "zlib", "deflate")  # and wheels, whose members are measured together
LEAST = 64 * 1024  # bytes of a stream: in a shorter one a span's few bytes are many percent
TOOLS = {  # what wrote the stream, on one processor: in which it is compared
    "gzip-1.gz": ["gzip", "-1", "-c"],
    "gzip-6.gz": ["gzip", "-6", "-c"],
    "gzip-9.gz": ["gzip", "-9", "-c"],
    "pigz-6.gz": ["pigz", "-p1", "-6", "-c"],
}
PGZIP = "pgzip-default-v1.15.12.gz"
ROUNDS = 3  # of measuring encoder and core in turn, the best of which count
LEAST_SPEED = {"gzip-6.gz": 0.7, PGZIP: 0.5}  # of rebuilding, to that of what wrote the stream
CACHE = Path.home() / ".cache/cas-zoo"  # where `tests.zoo.make` keeps encoders
# The first of these that a name begins with sets the limit, in percent.
LIMITS = (
    ("buildah", 0.05), ("skopeo", 0.05), ("umoci", 0.05), ("pgzip-default-v1.1", 0.05),
    ("gzip-1", 0.15), ("pigz-1.", 0.15), ("zlib-1.", 0.15),
    ("gzip-9-rsyncable", None), ("pigz-rsyncable", None), ("pigz-11", None),
    ("gzip-", 0.05), ("pigz-6", 0.05), ("pigz-9", 0.05),
    ("zlib-2.", 0.05), ("zlib-3.", 0.05), ("zlib-4.", 0.05), ("zlib-5.", 0.05), ("zlib-6.", 0.05),
    ("zlib-7.", 0.05), ("zlib-8.", 0.05), ("zlib-9.", 0.05),
    ("go-", 0.2), ("node-", 0.2), ("uv.", 0.5), ("ruff.", 0.5),
)  # fmt: skip


def run(setting: Setting) -> list[Verdict]:
    """See `Benchmark`."""
    folder = setting.zoo if read(setting.zoo) else STREAMS
    streams = [s for s in read(folder) if _is_measured(s) and s.size >= LEAST]
    found = {stream.name: _measure(folder / stream.name) for stream in streams}
    for stream in streams:
        print(_row(stream, found[stream.name]), flush=True)
    shares = {name: 100 * said["side"] / said["compressed"] for name, said in found.items()}
    verdicts = [
        Verdict("streams that did not come back", sum(not said["exact"] for said in found.values()),
                0, unit="", facts={"streams": found}),
        Verdict("side information, median", statistics.median(shares.values()), 0.1, unit="%"),
    ]  # fmt: skip
    verdicts += [
        Verdict(f"side information of {name}", shares[name], limit, unit="%")
        for name in sorted(shares)
        if (limit := _limit(name)) is not None
    ]
    return [*verdicts, *_speeds(folder, found)]


def _is_measured(stream: Stream) -> bool:
    return stream.container in CONTAINERS or stream.name.endswith(".whl")


def _limit(name: str) -> float | None:
    return next((limit for start, limit in LIMITS if name.startswith(start)), None)


def _measure(path: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.deflate_one", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return dict(json.loads(done.stdout))


def _row(stream: Stream, said: dict[str, float]) -> str:
    plain = said["plain"] / 1e6
    return (
        f"{stream.name:32} {100 * said['side'] / said['compressed']:9.4f} % "
        f"{plain / max(said['analyse'], 1e-6):8.1f} {plain / max(said['rebuild'], 1e-6):8.1f} MB/s "
        f"choose {said['choose']:5.2f} s {said['rss'] / 2**20:5.0f} MiB"
        f"{'' if said['exact'] else '  NOT EXACT'}"
    )


def _speeds(folder: Path, found: dict[str, dict[str, float]]) -> list[Verdict]:
    """Rebuilding and analysing, beside the encoder that wrote the stream."""
    verdicts: list[Verdict] = []
    plain = folder / "git.tar"
    if not plain.exists():
        return verdicts
    for name, command in _tools().items():
        if name not in found:
            continue
        encoder, said = _best(folder / name, command, plain)
        least = LEAST_SPEED.get(name)
        detail = f"{' '.join(command)} took {encoder:.2f} s"
        verdicts += [
            Verdict(f"speed of rebuilding {name} / of its encoder",
                    encoder / said["rebuild"], least, at_least=True, detail=detail),
            Verdict(f"speed of analysing {name} / of its encoder",
                    encoder / said["analyse"], 0.4, at_least=True),
        ]  # fmt: skip
    return verdicts


def _best(path: Path, command: Sequence[str], plain: Path) -> tuple[float, dict[str, float]]:
    """The least seconds of an encoder and of each step with what it wrote, in turn."""
    rounds = [(_seconds(command, plain), _measure(path)) for _ in range(ROUNDS)]
    steps = ("analyse", "rebuild")
    said = {step: min(measured[step] for _, measured in rounds) for step in steps}
    return min(encoder for encoder, _ in rounds), said


def _tools() -> dict[str, list[str]]:
    """What wrote each stream that it is compared with."""
    try:
        encoder = Go("v1.15.12").obtain(CACHE)
    except Unavailable as why:
        print(f"{PGZIP} is compared with nothing: {why}")
        return TOOLS
    return TOOLS | {PGZIP: [*encoder.command, "pgzip", "-1"]}


def _seconds(command: Sequence[str], plain: Path) -> float:
    """The processor's seconds that `command` takes to compress `plain`."""
    env = os.environ | {"GOMAXPROCS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with plain.open("rb") as data, Path(os.devnull).open("wb") as out:
        subprocess.run(command, stdin=data, stdout=out, env=env, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
