"""Packages as they are published: wheels, npm's tarballs, crates, Debian's binaries and sources.

What made them is not always known; it is what people have on their disks.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.zoo import debian
from tests.zoo.tools import Debian, Encoder, Program, Unavailable, run
from tests.zoo.workshop import Job, Made, Workshop, job

DPKG_DEB = Debian("dpkg-deb", "dpkg")
# Binary wheels of one Python, so that each machine gets the same.
PLATFORM = ("--python-version", "3.11", "--platform", "manylinux2014_x86_64")

WHEELS: dict[str, tuple[str, ...]] = {"small": ("requests==2.32.3", "six==1.16.0")}
WHEELS["large"] = (
    *WHEELS["small"],
    "django==5.1.4",
    "numpy==2.1.3",
    "uv==0.13.9",
    "ruff==0.17.6",
    "pydantic_core==2.27.2",
)
NPM: dict[str, tuple[str, ...]] = {"small": ("ms@2.1.3", "semver@7.6.3")}
NPM["large"] = (*NPM["small"], "typescript@5.4.5", "lodash@4.17.21")
CRATES: dict[str, tuple[str, ...]] = {"small": ("cfg-if@1.0.0",)}
CRATES["large"] = (*CRATES["small"], "libc@0.2.169", "syn@2.0.90")
DEBS = {"small": ("python3-six",), "large": ("python3-six", "coreutils", "perl-base")}
# Of a source package, the file wanted.
SOURCES: dict[str, tuple[tuple[str, str], ...]] = {
    "small": (("python-mccabe", "*.orig.tar.gz"), ("mdocml", "*.debian.tar.xz")),
}
SOURCES["large"] = (
    *SOURCES["small"],
    ("git", "*.orig.tar.xz"),
    ("coreutils", "*.orig.tar.xz"),
    ("ncurses", "*.orig.tar.gz"),
    ("bmake", "*.orig.tar.gz"),
    ("lz4", "*.orig.tar.gz"),
    ("tmux", "*.orig.tar.gz"),
    ("git", "*.debian.tar.xz"),
    ("pv", "*.orig.tar.bz2"),
    ("busybox", "*.orig.tar.bz2"),
    ("gnupg2", "*.orig.tar.bz2"),
)
REPACKED = ("gzip", "xz", "zstd")
CONTAINERS = {".gz": "gzip", ".xz": "xz", ".bz2": "bzip2"}


def jobs(size: str) -> Iterator[Job]:
    """Those of that size of zoo."""
    yield from map(_wheel, WHEELS[size])
    yield from map(_npm, NPM[size])
    yield from map(_crate, CRATES[size])
    yield from map(_deb, DEBS[size])
    yield from map(_repacked, REPACKED)
    for package, pattern in SOURCES[size]:
        yield _source(package, pattern)


def _wheel(wanted: str) -> Job:
    name = wanted.partition("==")[0] + ".whl"

    @job(name)
    def make(shop: Workshop) -> Iterator[Made]:
        folder = shop.cache / "wheels" / wanted
        if not list(folder.glob("*.whl")):
            words = ("download", "-q", "--no-deps", "--only-binary", ":all:", "-d", folder)
            run([*shop.get(Program("pip")).command, *words, *PLATFORM, wanted])
        yield _published(shop, name, _only(folder, "*.whl"), "zip", f"pip download {wanted}")

    return make


def _npm(wanted: str) -> Job:
    name = wanted.partition("@")[0] + ".tgz"

    @job(name)
    def make(shop: Workshop) -> Iterator[Made]:
        folder = shop.cache / "npm"
        path = folder / (wanted.replace("@", "-") + ".tgz")
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            run([*shop.get(Program("npm")).command, "pack", "--silent", wanted], cwd=folder)
        yield _published(shop, name, _only(folder, path.name), "gzip", f"npm pack {wanted}")

    return make


def _crate(wanted: str) -> Job:
    """cargo keeps each crate it fetches, as it came."""
    package, version = wanted.split("@")
    name = f"{package}.crate.gz"

    @job(name)
    def make(shop: Workshop) -> Iterator[Made]:
        folder = shop.bench / "crate"
        home = shop.cache / "cargo"
        (folder / "src").mkdir(parents=True)
        (folder / "src/lib.rs").touch()
        (folder / "Cargo.toml").write_text(
            '[package]\nname = "wants"\nversion = "0.1.0"\nedition = "2021"\n'
            f'[dependencies]\n{package} = "={version}"\n'
        )
        pattern = f"registry/cache/*/{package}-{version}.crate"
        if not list(home.glob(pattern)):
            words = (*shop.get(Program("cargo")).command, "fetch", "--quiet")
            run(words, cwd=folder, env={"CARGO_HOME": str(home)})
        yield _published(shop, name, _only(home, pattern), "gzip", f"cargo fetch {wanted}")

    return make


def _deb(package: str) -> Job:
    name = f"{package}.deb"

    @job(name)
    def make(shop: Workshop) -> Iterator[Made]:
        path = debian.package(shop.cache, package)
        yield _published(shop, name, path, "deb", f"apt-get download {package}")

    return make


def _source(package: str, pattern: str) -> Job:
    name = f"{package}{pattern[1:]}"

    @job(name)
    def make(shop: Workshop) -> Iterator[Made]:
        path = debian.source(shop.cache, package, pattern)
        container = CONTAINERS[path.suffix]
        yield _published(shop, name, path, container, f"apt-get source {package}")

    return make


def _repacked(kind: str) -> Job:
    """A package built again with another compression of its members."""
    name = f"repacked-{kind}.deb"

    @job(name)
    def make(shop: Workshop) -> Iterator[Made]:
        encoder, tree = shop.get(DPKG_DEB), shop.bench / "tree"
        original = debian.package(shop.cache, DEBS["small"][0])
        made = shop.bench / name
        shop.do(*encoder.command, "-R", original, tree)
        shop.do(*encoder.command, f"-Z{kind}", "--root-owner-group", "-b", tree, made)
        yield Made(name, made, "deb", encoder, f"dpkg-deb -Z{kind} -b tree")

    return make


def _only(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise Unavailable(f"{len(found)} files came that are like {pattern}")
    return found[0]


def _published(shop: Workshop, name: str, path: Path, container: str, command: str) -> Made:
    copy = shop.bench / name
    shutil.copy(path, copy)
    return Made(name, copy, container, Encoder((), "published", path.name), command)
