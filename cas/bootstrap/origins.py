"""Where the files of what is sent come from: this installation, or a directory of wheels.

Wheels are zip files with the tree of site-packages in them (PEP 427). Which one fits is told by
the compiled modules in it and not by its tags: they are what has to be loaded in the end.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping
from importlib import metadata, util
from pathlib import Path

from cas.bootstrap.far import FarPython
from cas.bootstrap.needs import NATIVE, OURS, PACKAGES, Need, misfits, useful
from cas.errors import FormatError

WHEEL_LIMIT = 256 * 2**20  # bytes of plain files; the largest that is needed has 24 MB
_OWN_KINDS = {".py", ".toml", ".sh"}

Files = Mapping[str, bytes]  # by path below site-packages


def own_files() -> Files:
    """The modules of cas, without the compiled one."""
    found = {}
    for package, root in _own_roots():
        for path in sorted(root.rglob("*")):
            inside = path.relative_to(root).as_posix()
            if path.suffix in _OWN_KINDS and not inside.startswith("native/"):
                found[f"{package}/{inside}"] = path.read_bytes()
    return found


def own_native() -> Files:
    """The compiled module of cas."""
    root = dict(_own_roots())["cas"]
    return {f"cas/{path.name}": path.read_bytes() for path in sorted(root.glob("_native.*so"))}


def _own_roots() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        spec = util.find_spec(package)
        if spec is not None and spec.submodule_search_locations:
            yield package, Path(spec.submodule_search_locations[0])


def installed_version(name: str) -> str:
    """The version of a package in this installation; "" if it is not there."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def installed_files(need: Need) -> Files:
    """What is installed here of a package."""
    try:
        listed = metadata.distribution(need.name).files or []
    except metadata.PackageNotFoundError:
        return {}
    wanted = [file for file in listed if useful(need, file.as_posix())]
    return {file.as_posix(): Path(str(file.locate())).read_bytes() for file in wanted}


class Wheels:
    """The wheels of a directory; None for none."""

    def __init__(self, directory: Path | None) -> None:
        self._paths = [] if directory is None else sorted(directory.glob("*.whl"))

    def fitting(self, need: Need, version: str, python: FarPython) -> Files | None:
        """The files of a wheel of the package in this version that `python` can load, or None.

        Raises FormatError for a wheel that cannot be read.
        """
        for path in self._named(need.name, version):
            files = _wheel_files(path, need)
            if not misfits(files, python):
                return files
        return None

    def native(self, version: str, python: FarPython) -> Files | None:
        """The compiled module of cas itself from a wheel, or None."""
        for path in self._named(OURS, version):
            files = _wheel_files(path, Need(OURS))
            found = {name: data for name, data in files.items() if Path(name).match(NATIVE)}
            if found and not misfits(found, python):
                return found
        return None

    def _named(self, name: str, version: str) -> Iterator[Path]:
        for path in self._paths:
            parts = path.stem.split("-")
            if len(parts) >= 5 and (_plain(parts[0]), parts[1]) == (_plain(name), version):
                yield path


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _wheel_files(path: Path, need: Need) -> Files:
    try:
        with zipfile.ZipFile(path) as wheel:
            wanted = [i for i in wheel.infolist() if not i.is_dir() and useful(need, i.filename)]
            if sum(info.file_size for info in wanted) > WHEEL_LIMIT:
                raise FormatError("the wheel is too large to be what it says", where=str(path))
            return {info.filename: wheel.read(info) for info in wanted}
    except (zipfile.BadZipFile, OSError) as error:
        raise FormatError(f"the wheel cannot be read: {error}", where=str(path)) from error
