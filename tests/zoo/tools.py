"""Where the encoders come from: Debian packages, PyPI, Go modules, crates, Node.

Each kind of tool says how it is had (`obtain`); what cannot be had raises Unavailable, and the
streams it would have made are left out with a line that says so. Nothing is written outside the
cache but by apt-get, which installs what is missing where it runs as root.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

ENCODERS = Path(__file__).with_name("encoders")
PGZIP = "v1.2.5"
FLATE2 = "1.1"


class Unavailable(Exception):
    """An encoder is not to be had here, or did not do what it was asked."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """A command that can be run: its first words, the same as shown to a person, its version."""

    command: tuple[str, ...]
    shown: str
    version: str


class Tool(Protocol):
    """Something an Encoder can be had from. Raises Unavailable."""

    def obtain(self, cache: Path) -> Encoder: ...


@dataclass(frozen=True, slots=True)
class Toolbox:
    """Obtains each tool once, and remembers which are not to be had."""

    cache: Path
    _had: dict[Tool, Encoder | Unavailable] = field(default_factory=dict)

    def get(self, tool: Tool) -> Encoder:
        """Raises Unavailable, again for each stream that needs the tool."""
        if tool not in self._had:
            try:
                self._had[tool] = tool.obtain(self.cache)
            except Unavailable as why:
                self._had[tool] = why
        found = self._had[tool]
        if isinstance(found, Unavailable):
            raise found
        return found


@dataclass(frozen=True, slots=True)
class Debian:
    """A program of a Debian package."""

    program: str
    package: str

    def obtain(self, cache: Path) -> Encoder:
        if shutil.which(self.program) is None:
            run(
                ["apt-get", "install", "-qq", "--no-install-recommends", self.package],
                env={"DEBIAN_FRONTEND": "noninteractive"},
            )
        asked = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Version}", self.package], capture_output=True, text=True
        )
        if shutil.which(self.program) is None or asked.returncode:
            raise Unavailable(f"no {self.program} of the Debian package {self.package}")
        return Encoder((self.program,), self.program, f"{self.package} {asked.stdout}")


@dataclass(frozen=True, slots=True)
class Program:
    """A program that is here or not, with how it is asked for its version."""

    program: str
    asks: tuple[str, ...] = ("--version",)

    def obtain(self, cache: Path) -> Encoder:
        if shutil.which(self.program) is None:
            raise Unavailable(f"{self.program} is not installed")
        return Encoder((self.program,), self.program, said([self.program, *self.asks]))


@dataclass(frozen=True, slots=True)
class Python:
    """A module, run by encode.py. `package` is what pip installs for it, if anything."""

    module: str
    package: str = ""

    def obtain(self, cache: Path) -> Encoder:
        venv = cache / "venv"
        python = venv / "bin/python"
        if not python.exists():
            run([sys.executable, "-m", "venv", venv])
        if self.package:
            run([python, "-m", "pip", "install", "--quiet", "--no-deps", self.package])
        script = [str(python), str(ENCODERS / "encode.py"), self.module]
        return Encoder(tuple(script), f"encode.py {self.module}", said([*script, "version"]))


@dataclass(frozen=True, slots=True)
class Go:
    """encode.go with one version of klauspost/compress; for the standard library any will do."""

    compress: str = "v1.18.4"
    pgzip: str = PGZIP

    def obtain(self, cache: Path) -> Encoder:
        folder = cache / f"go-{self.compress}"
        env = {"GOPATH": str(cache / "go"), "GOFLAGS": "-mod=mod -modcacherw"}
        if not (folder / "encode").exists():
            Program("go", ("version",)).obtain(cache)
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(ENCODERS / "encode.go", folder)
            wants = {"github.com/klauspost/compress": self.compress}
            wants["github.com/klauspost/pgzip"] = self.pgzip
            lines = [f"require {name} {version}\n" for name, version in wants.items()]
            (folder / "go.mod").write_text("module encode\n\ngo 1.16\n\n" + "".join(lines))
            run(["go", "mod", "tidy"], cwd=folder, env=env)
            run(["go", "build", "-o", "encode", "."], cwd=folder, env=env)
        version = f"{said(['go', 'version'])}, compress {self.compress}, pgzip {self.pgzip}"
        return Encoder((str(folder / "encode"),), "encode.go", version)


@dataclass(frozen=True, slots=True)
class Rust:
    """encode.rs with one back end of the crate flate2."""

    backend: str

    def obtain(self, cache: Path) -> Encoder:
        folder = cache / f"rust-{self.backend}"
        program = folder / "target/release/encode"
        if not program.exists():
            Program("cargo").obtain(cache)
            (folder / "src").mkdir(parents=True, exist_ok=True)
            shutil.copy(ENCODERS / "encode.rs", folder / "src/main.rs")
            (folder / "Cargo.toml").write_text(
                '[package]\nname = "encode"\nversion = "0.1.0"\nedition = "2021"\n'
                "[dependencies.flate2]\n"
                f'version = "{FLATE2}"\ndefault-features = false\nfeatures = ["{self.backend}"]\n'
            )
            run(["cargo", "build", "--quiet", "--release"], cwd=folder)
        pins = re.findall(r'name = "(.+)"\nversion = "(.+)"', (folder / "Cargo.lock").read_text())
        names = {"flate2", "miniz_oxide", "zlib-rs"}
        version = ", ".join(f"{name} {number}" for name, number in pins if name in names)
        return Encoder((str(program),), f"encode.rs({self.backend})", version)


@dataclass(frozen=True, slots=True)
class Node:
    """encode.js: zlib as Node bundles it, which is Chromium's."""

    def obtain(self, cache: Path) -> Encoder:
        Program("node").obtain(cache)
        script = ("node", str(ENCODERS / "encode.js"))
        return Encoder(script, "encode.js", said([*script, "version"]))


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: Path | None = None,
    stdout: Path | None = None,
) -> None:
    """Run it to its end. Raises Unavailable with its last words where it fails."""
    words = [str(word) for word in command]
    null = Path(os.devnull)
    with (stdin or null).open("rb") as source, (stdout or null).open("wb") as target:
        try:
            done = subprocess.run(
                words,
                cwd=cwd,
                env={**os.environ, **(env or {})},
                stdin=source,
                stdout=target,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            raise Unavailable(f"{words[0]}: {error.strerror}") from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise Unavailable(f"{Path(words[0]).name}: {lines[-1]}")


def said(command: Sequence[str]) -> str:
    """The first line it prints. Raises Unavailable where it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"{' '.join(command)}: {done.stderr.strip()}")
    return (done.stdout or done.stderr).splitlines()[0]
