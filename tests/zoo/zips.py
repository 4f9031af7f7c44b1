"""Zip files: by Info-ZIP, 7-Zip, Python, the JDK, libarchive and pigz; stored, streamed, zip64."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.zoo.deflaters import PIGZ, SEVEN_ZIP
from tests.zoo.tools import Debian, Encoder, Program
from tests.zoo.workshop import BRIEF, Job, Made, Workshop, job

ZIP = Debian("zip", "zip")
BSDTAR = Debian("bsdtar", "libarchive-tools")
JAR = Program("jar")
# zip seeks where it can, so that its output must be what cannot.
THROUGH_A_PIPE = ("sh", "-c", '"$@" | cat', "sh")
STUB = b"#!/bin/sh\n# What a self-extracting archive begins with.\nexit 0\n"

# What is said to zip for each; {} is the archive, "-" where it is streamed.
INFO_ZIP = {
    "infozip": "-q -X -r -n .csv:.bin {} .",
    "infozip-1": "-q -X -r -1 {} .",
    "infozip-9": "-q -X -r -9 {} .",
    "infozip-extra": "-q -r {} .",
    "infozip-zip64": "-q -X -r -fz {} .",
    "infozip-bzip2": "-q -X -r -Z bzip2 {} .",
    "infozip-encrypted": "-q -X -r -P word {} .",
    "infozip-streamed": "-q -X -r - .",
}
SEVEN = {
    "7z": "-mx=5",
    "7z-9": "-mx=9",
    "7z-deflate64": "-mm=Deflate64",
    "7z-lzma": "-mm=LZMA",
}


def jobs() -> Iterator[Job]:
    """All of them."""
    yield from (_info_zip(word, arguments) for word, arguments in INFO_ZIP.items())
    yield from (_seven_zip(word, argument) for word, argument in SEVEN.items())
    yield from (piped, stubs, by_pigz, by_python, by_jar, by_bsdtar)


def _info_zip(word: str, arguments: str) -> Job:
    @job(f"{word}.zip")
    def make(shop: Workshop) -> Iterator[Made]:
        encoder, archive = shop.get(ZIP), shop.bench / "made.zip"
        words = arguments.format(archive).split()
        through = THROUGH_A_PIPE if "-" in words else ()
        output = shop.do(*through, *encoder.command, *words, cwd=_tree(shop))
        path = output if through else archive
        yield Made(f"{word}.zip", path, "zip", encoder, f"zip {arguments.format('ZIP')}")

    return make


def _seven_zip(word: str, argument: str) -> Job:
    @job(f"{word}.zip")
    def make(shop: Workshop) -> Iterator[Made]:
        encoder, archive = shop.get(SEVEN_ZIP), shop.bench / "made.zip"
        shop.do(*encoder.command, "a", "-tzip", argument, archive, ".", cwd=_tree(shop))
        yield Made(f"{word}.zip", archive, "zip", encoder, f"7z a -tzip {argument} ZIP .")

    return make


@job("infozip-piped.zip")
def piped(shop: Workshop) -> Iterator[Made]:
    """One member of unknown size, streamed both ways: a data descriptor, and zip64 for safety."""
    encoder, (name, plain) = shop.get(ZIP), shop.plain(BRIEF)
    path = shop.do(*THROUGH_A_PIPE, *encoder.command, "-q", "-", "-", stdin=plain)
    yield Made("infozip-piped.zip", path, "zip", encoder, f"zip - - <{name} | cat")


@job("stub.zip", "stub-adjusted.zip")
def stubs(shop: Workshop) -> Iterator[Made]:
    """A program before the first member, with and without the offsets put right."""
    encoder, archive = shop.get(ZIP), shop.bench / "made.zip"
    shop.do(*encoder.command, "-q", "-X", "-r", archive, ".", cwd=_tree(shop))
    stubbed = shop.bench / "stub.zip"
    stubbed.write_bytes(STUB + archive.read_bytes())
    adjusted = shop.bench / "adjusted.zip"
    adjusted.write_bytes(stubbed.read_bytes())
    shop.do(*encoder.command, "-q", "-A", adjusted)
    yield Made("stub.zip", stubbed, "zip", encoder, "cat stub ZIP")
    yield Made("stub-adjusted.zip", adjusted, "zip", encoder, "cat stub ZIP >NEW; zip -A NEW")


@job("pigz.zip")
def by_pigz(shop: Workshop) -> Iterator[Made]:
    """pigz's single member, in blocks of 128 KiB."""
    encoder, (name, plain) = shop.get(PIGZ), shop.plain(BRIEF)
    path = shop.do(*encoder.command, "-n", "-p", "2", "-K", stdin=plain)
    yield Made("pigz.zip", path, "zip", encoder, f"pigz -n -p 2 -K <{name}")


@job("python.zip", "python-streamed.zip")
def by_python(shop: Workshop) -> Iterator[Made]:
    """zipfile, into a file, and into something that cannot seek (as a web server sends one)."""
    encoder = Encoder((), "zipfile", f"Python {sys.version.split()[0]}")
    tree = _tree(shop)
    seekable, streamed = shop.bench / "python.zip", shop.bench / "streamed.zip"
    with zipfile.ZipFile(seekable, "w", zipfile.ZIP_DEFLATED) as archive:
        _fill(archive, tree)
    with streamed.open("wb") as file:
        file.seekable = lambda: False  # type: ignore[method-assign]
        file.tell = _refuse  # type: ignore[method-assign]
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            _fill(archive, tree)
    yield Made("python.zip", seekable, "zip", encoder, "ZipFile(ZIP, 'w', ZIP_DEFLATED)")
    yield Made("python-streamed.zip", streamed, "zip", encoder, "ZipFile(PIPE, compresslevel=9)")


@job("jdk.jar")
def by_jar(shop: Workshop) -> Iterator[Made]:
    """The JDK's: data descriptors, a manifest first."""
    encoder, archive = shop.get(JAR), shop.bench / "made.jar"
    words = (
        "--create",
        "--file",
        archive,
        "--date",
        "2025-10-09T08:53:20Z",
        "-C",
        _tree(shop),
        ".",
    )
    shop.do(*encoder.command, *words)
    yield Made("jdk.jar", archive, "zip", encoder, "jar --create --file JAR -C tree .")


@job("bsdtar.zip")
def by_bsdtar(shop: Workshop) -> Iterator[Made]:
    """libarchive's, streamed."""
    encoder = shop.get(BSDTAR)
    path = shop.do(*encoder.command, "--format", "zip", "-cf", "-", ".", cwd=_tree(shop))
    yield Made("bsdtar.zip", path, "zip", encoder, "bsdtar --format zip -cf - .")


def _fill(archive: zipfile.ZipFile, tree: Path) -> None:
    for path in sorted(path for path in tree.rglob("*") if path.is_file()):
        archive.write(path, path.relative_to(tree))


def _refuse() -> int:
    raise OSError("this cannot seek")


def _tree(shop: Workshop) -> Path:
    return shop.tree(shop.plain(BRIEF)[0])
