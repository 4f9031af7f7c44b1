"""Fetches Debian packages and their sources with apt, whose state is kept apart in the cache."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.zoo.tools import Unavailable, run

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def package(cache: Path, name: str) -> Path:
    """The newest .deb of that name. Raises Unavailable."""
    folder = cache / "debian" / "deb"
    if not list(folder.glob(f"{name}_*.deb")):
        _apt(cache, "apt-get", "download", name, cwd=folder)
    return _only(folder, f"{name}_*.deb")


def source(cache: Path, name: str, pattern: str) -> Path:
    """That file of the newest source package, as `*.orig.tar.*`. Raises Unavailable."""
    folder = cache / "debian" / f"source-{name}"
    if not list(folder.glob(pattern)):
        try:
            _apt(cache, "apt-get", "source", "--download-only", name, cwd=folder)
        except Unavailable:
            if not list(folder.glob(pattern)):  # a mirror may lack but one of the files
                raise
    return _only(folder, pattern)


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if not found:
        raise Unavailable(f"nothing like {pattern} was there")
    return found[-1]


def _apt(cache: Path, command: str, *words: str, cwd: Path) -> None:
    home = cache / "debian"
    cwd.mkdir(parents=True, exist_ok=True)
    options = [
        f"Dir::Etc::SourceList={home}/sources.list",
        "Dir::Etc::SourceParts=/dev/null",
        f"Dir::State={home}/state",
        f"Dir::State::Lists={home}/state/lists",
        f"Dir::Cache={home}/cache",
        "APT::Sandbox::User=root",
    ]
    options = [word for option in options for word in ("-o", option)]
    if not (home / "sources.list").exists():
        for folder in ("state/lists/partial", "cache/archives/partial"):
            (home / folder).mkdir(parents=True, exist_ok=True)
        (home / "sources.list").write_text(_sources())
        run([command, *options, "-qq", "update"])
    run([command, *options, "-qq", *words], cwd=cwd)


def _sources() -> str:
    """This machine's own mirrors of this suite, for packages and for sources."""
    command = ["apt-get", "indextargets", "--format", "$(SITE) $(CODENAME)", "Created-By: Packages"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unavailable(f"apt tells no sources: {error}") from error
    suite = _suite()
    lines = []
    for site, name in sorted({tuple(line.split(" ", 1)) for line in said.splitlines()}):
        if name in (suite, f"{suite}-updates", f"{suite}-security"):
            rest = f"[signed-by={KEYRING}] {site} {name} main"
            lines += [f"deb {rest}\n", f"deb-src {rest}\n"]
    if not lines:
        raise Unavailable("apt knows no sources of this suite: run apt-get update")
    return "".join(lines)


def _suite() -> str:
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.split("=")[1]
    raise Unavailable("this is no Debian")
