"""What is sent to a host: the files, from where, for which Python."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cas import __version__, _native
from cas.bootstrap import lacking
from cas.bootstrap.elf import Machine, read_compiled, without_sections
from cas.bootstrap.kit import gather, make_kit, pack_kit
from cas.bootstrap.needs import NEEDS, misfits
from cas.bootstrap.origins import Wheels, installed_version, own_files
from cas.errors import FormatError, SourceError
from tests.bootstrap.hosts import module, python_of, this_python, write_wheel

NONE = Wheels(None)
ARM = Machine(2, 183)


def test_everything_for_this_python_is_installed_here() -> None:
    gathered = gather(this_python(), NONE)
    assert () == gathered.lacks
    assert {"cas/bootstrap/probe.sh", "cli/__main__.py", "indexes/env.py"} <= set(gathered.files)
    assert not [path for path in gathered.files if path.startswith(("cas/native", "/", "."))]


def test_the_same_files_make_the_same_kit_and_archive() -> None:
    gathered = gather(this_python(), NONE)
    one, two = make_kit(gathered), make_kit(gathered)
    assert one.name == two.name
    assert one.name.startswith(f"{__version__}-")
    assert pack_kit(one) == pack_kit(two)


def test_a_module_is_loaded_without_its_sections(tmp_path: Path) -> None:
    whole = Path(_native.__file__).read_bytes()
    bare = without_sections(whole)
    assert len(bare) < len(whole)
    (tmp_path / Path(_native.__file__).name).write_bytes(bare)
    code = f"import sys; sys.path[:0] = [{str(tmp_path)!r}]; import _native; print(_native)"
    said = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, check=True)
    assert str(tmp_path).encode() in said.stdout
    assert without_sections(bare) == bare


def test_what_a_module_asks_for_is_read() -> None:
    made = read_compiled(module(b"\0libc.so.6\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0", 183))
    assert (ARM, False, 34) == (made.machine, made.musl, made.glibc)
    assert read_compiled(module(b"\0libc.musl-x86_64.so.1\0")).musl


@given(st.binary(max_size=200) | st.integers(0, 255).map(lambda n: module()[:n]))
def test_any_bytes_are_a_module_or_refused(data: bytes) -> None:
    with contextlib.suppress(FormatError):
        assert read_compiled(data).glibc >= 0
    with contextlib.suppress(FormatError):
        assert len(without_sections(data)) <= len(data)


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.cpython-312-x86_64-linux-gnu.so", module(), ""),
        ("a.abi3.so", module(), ""),
        ("a.libs/libz-12.so.1", module(), ""),
        ("a.cpython-311-x86_64-linux-gnu.so", module(), "it is not for Python 3.12"),
        ("a.abi3.so", module(number=183), "it is for aarch64, and the host is x86_64"),
        ("a.abi3.so", module(b"\0libc.so.6\0GLIBC_2.32\0"), "it needs glibc 2.32"),
        ("a.abi3.so", module(b"\0libc.musl-x86_64.so.1\0"), "it is for musl"),
        ("a.abi3.so", b"#!/bin/sh", "no compiled module"),
    ],
)
def test_why_a_module_does_not_fit(name: str, data: bytes, why: str) -> None:
    said = "".join(misfits({f"a/{name}": data, "a/b.py": b"x"}, python_of(12)).values())
    assert (bool(why), True) == (bool(said), why in said)


def test_what_is_missing_is_named_with_the_commands_that_fetch_it() -> None:
    python = python_of(9 if sys.version_info[1] != 9 else 8)
    with pytest.raises(SourceError) as caught:
        lacking.first_that_works([python], NONE, "npu")
    said = str(caught.value)
    assert "lmdb: it is not for Python 3" in said
    pins = f"lmdb=={installed_version('lmdb')} zstandard=={installed_version('zstandard')}"
    assert pins in said
    assert "--python-version 3.9 --platform manylinux2014_x86_64" in said
    assert "manylinux_2_34" not in said  # newer than the host's glibc
    assert "--wheels" in said


def test_for_another_machine_cas_itself_has_to_be_built() -> None:
    python = python_of(12, "musl", ARM)
    gathered = gather(python, NONE)
    assert not gathered.complete
    build = [line for line in lacking.commands(python, gathered.lacks) if "maturin" in line]
    assert "--target aarch64-unknown-linux-musl" in build[0]


def _wheels(directory: Path, minor: int, number: int, *, without: str = "") -> Wheels:
    """A wheel of each package that has compiled modules."""
    tag = f"cp3{minor}-cp3{minor}-linux"
    for need in NEEDS:
        if need.name in ("click", without):
            continue
        inside = f"{need.name}/x.cpython-3{minor}-{Machine(2, number)}-linux-gnu.so"
        files = {f"{need.name}/__init__.py": b"", inside: module(number=number)}
        version = installed_version(need.name)
        write_wheel(directory, f"{need.name}-{version}-{tag}.whl", files)
    files = {"cas/_native.abi3.so": module(number=number), "cas/ids.py": b"not ours"}
    write_wheel(directory, f"cas_sync-{__version__}-cp310-abi3-linux.whl", files)
    return Wheels(directory)


def test_wheels_serve_another_python_on_another_machine(tmp_path: Path) -> None:
    python = python_of(13, machine=ARM)
    gathered = gather(python, _wheels(tmp_path, 13, 183))
    assert () == gathered.lacks
    assert module(number=183) == gathered.files["cas/_native.abi3.so"]
    assert own_files()["cas/ids.py"] == gathered.files["cas/ids.py"]
    assert not misfits(gathered.files, python)


def test_wheels_of_another_python_do_not_serve(tmp_path: Path) -> None:
    gathered = gather(python_of(13, machine=ARM), _wheels(tmp_path, 12, 183))
    assert {"lmdb", "zstandard"} <= {lack.name for lack in gathered.lacks if not lack.optional}


def test_without_a_compiled_fastcdc_it_is_slow_and_said_so(tmp_path: Path) -> None:
    python = python_of(13, machine=ARM)
    gathered = gather(python, _wheels(tmp_path, 13, 183, without="fastcdc"))
    assert gathered.complete
    [lack] = gathered.lacks
    assert ("fastcdc", True) == (lack.name, lack.optional)
    assert "fastcdc/fastcdc_py.py" in gathered.files
    assert not misfits(gathered.files, python)


def test_a_python_that_has_all_comes_before_one_that_would_be_slow(tmp_path: Path) -> None:
    slow, quick = python_of(13, machine=ARM), python_of(12, machine=ARM)
    _wheels(tmp_path, 13, 183, without="fastcdc")
    wheels = _wheels(tmp_path, 12, 183)
    chosen, _ = lacking.first_that_works([slow, quick], wheels, "npu")
    assert quick == chosen


def test_a_broken_wheel_is_named(tmp_path: Path) -> None:
    wheel = tmp_path / f"lmdb-{installed_version('lmdb')}-cp39-cp39-linux.whl"
    wheel.write_bytes(b"no zip")
    with pytest.raises(FormatError, match="cannot be read") as caught:
        gather(python_of(9), Wheels(tmp_path))
    assert str(wheel) == caught.value.where
