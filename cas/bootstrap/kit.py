"""The kit: all that the agent needs at the far end, in one archive.

It is a tar archive, compressed with xz (the agent needs Python's lzma anyway). `MANIFEST` is its
first file and names every other with its SHA-256, as `sha256sum` does. The same files always give
the same manifest, and its digest names the kit: `VERSION-DIGEST8`. Compiled modules go without
their sections, which makes the whole a third as large.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import tarfile
from dataclasses import dataclass

from cas import __version__
from cas.bootstrap.elf import without_sections
from cas.bootstrap.far import FarPython
from cas.bootstrap.needs import NEEDS, OURS, Need, is_compiled, misfits
from cas.bootstrap.origins import (
    Files,
    Wheels,
    installed_files,
    installed_version,
    own_files,
    own_native,
)

MANIFEST = "MANIFEST"
PRESET = 6


@dataclass(frozen=True, slots=True)
class Lack:
    """A package that is not here in a form that the host's Python can use. `optional`: the agent
    runs without, but slowly."""

    name: str
    version: str
    why: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Kit:
    """What is sent: files by path, and the manifest of them. `lacks`: what it is slow without."""

    name: str
    manifest: bytes
    files: Files
    lacks: tuple[Lack, ...] = ()


@dataclass(frozen=True, slots=True)
class Gathered:
    """Files for one Python, and what is missing of them."""

    files: Files
    lacks: tuple[Lack, ...]

    @property
    def complete(self) -> bool:
        """Whether an agent can be made of them."""
        return all(lack.optional for lack in self.lacks)


def gather(python: FarPython, wheels: Wheels) -> Gathered:
    """Find the files that an agent on `python` needs. Raises FormatError for a bad wheel."""
    files = dict(own_files())
    lacks = []
    native = own_native()
    why = "; ".join(misfits(native, python).values()) if native else "it is not installed here"
    if why:
        native = wheels.native(__version__, python) or {}
        if not native:
            lacks.append(Lack(OURS, __version__, why))
    files.update(native)
    for need in NEEDS:
        found, lack = _find(need, python, wheels)
        files.update(found)
        lacks += [lack] if lack else []
    return Gathered(files, tuple(lacks))


def _find(need: Need, python: FarPython, wheels: Wheels) -> tuple[Files, Lack | None]:
    """The files of a package: those installed here if they fit, else those of a wheel, else those
    that need no compiling if that will do."""
    version, files = installed_version(need.name), installed_files(need)
    bad = misfits(files, python)
    if files and not bad:
        return files, None
    if (found := wheels.fitting(need, version, python)) is not None:
        return found, None
    if files and need.slow:
        pure = {path: data for path, data in files.items() if not is_compiled(path)}
        return pure, Lack(need.name, version, need.slow, optional=True)
    return {}, Lack(need.name, version, next(iter(bad.values()), "it is not installed here"))


def make_kit(gathered: Gathered) -> Kit:
    """Name the files; `gathered` is complete. Raises FormatError for a damaged module."""
    files = {
        path: without_sections(data) if is_compiled(path) else data
        for path, data in sorted(gathered.files.items())
    }
    lines = [f"{hashlib.sha256(data).hexdigest()}  {path}\n" for path, data in files.items()]
    manifest = "".join(lines).encode()
    name = f"{__version__}-{hashlib.sha256(manifest).hexdigest()[:8]}"
    return Kit(name, manifest, files, gathered.lacks)


def pack_kit(kit: Kit) -> bytes:
    """The archive; takes some seconds."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, data in {MANIFEST: kit.manifest, **kit.files}.items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return lzma.compress(packed.getvalue(), preset=PRESET)
