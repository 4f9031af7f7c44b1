"""What is restored is taken by the tools it was made for: images, archives, a git repository."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.unpack.quine import gzip_quine

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ROOT / "docs"
PLAN = """\
store = "store"

[source.here]

[[tier]]
name = "all"
source = "here"
paths = ["{}"]
"""
NEEDED = ("umoci", "skopeo", "git", "gzip", "bzip2", "xz", "zip", "unzip", "tar", "ar")


def _run(*command: str | Path, cwd: Path, **more: str) -> str:
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env={**os.environ, **more}, capture_output=True, text=True
    )
    assert 0 == done.returncode, (command, done.stdout, done.stderr)
    return done.stdout


def _image(at: Path) -> None:
    """An OCI archive of two layers, the second of which has the texts once more."""
    layout = at / "layout"
    _run("umoci", "init", "--layout", layout, cwd=at)
    _run("umoci", "new", "--image", f"{layout}:latest", cwd=at)
    for target in ("/texts", "/again"):
        _run("umoci", "insert", "--image", f"{layout}:latest", TEXTS, target, cwd=at)
    _run("tar", "-cf", at / "image.oci.tar", "-C", layout, ".", cwd=at)
    shutil.rmtree(layout)


def _repository(at: Path) -> None:
    repository = at / "repository"
    shutil.copytree(TEXTS, repository)
    names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
             "GIT_COMMITTER_EMAIL": "a@b"}  # fmt: skip
    _run("git", "init", "-q", ".", cwd=repository)
    _run("git", "add", ".", cwd=repository)
    _run("git", "commit", "-qm", "texts", cwd=repository, **names)


def _odd(at: Path) -> None:
    """What unpacks to itself, and zips in zips in zips."""
    (at / "itself.gz").write_bytes(20 * gzip_quine())
    data = bytes(2**20)
    for _ in range(6):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for number in range(16):
                archive.writestr(f"{number}.zip", data)
        data = out.getvalue()
    (at / "42.zip").write_bytes(data)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of everything, each holding the same texts."""
    for tool in NEEDED:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    at = tmp_path_factory.mktemp("accepted") / "source"
    at.mkdir()
    _image(at)
    _repository(at)
    _odd(at)
    for option, suffix in (("-z", "gz"), ("-j", "bz2"), ("-J", "xz")):
        _run("tar", option, "-cf", f"texts.tar.{suffix}", "-C", ROOT, "docs", cwd=at)
    _run("zip", "-qr", at / "texts.zip", "docs", cwd=ROOT)
    (at / "debian-binary").write_text("2.0\n")
    _run("ar", "rc", "texts.deb", "debian-binary", "texts.tar.xz", "texts.tar.gz", cwd=at)
    return at


@pytest.fixture(scope="module")
def restored(source: Path) -> Path:
    """The same directory, fetched and restored by commands that ended well."""
    home = source.parent
    (home / "plan.toml").write_text(PLAN.format(source))
    cache = {"XDG_CACHE_HOME": str(home / "cache"), "PYTHONPATH": str(ROOT)}
    cas = (sys.executable, "-m", "cli")
    _run(*cas, "sync", cwd=home, **cache)
    _run(*cas, "restore", "all", "--to", "out", cwd=home, **cache)
    return home / "out" / str(source).lstrip("/")


def test_all_of_it(source: Path, restored: Path, tmp_path: Path) -> None:
    out = restored
    _run("diff", "-r", source, out, cwd=tmp_path)
    assert "sha256:" in _run("skopeo", "inspect", f"oci-archive:{out}/image.oci.tar", cwd=tmp_path)
    for tool, suffix in (("gzip", "gz"), ("bzip2", "bz2"), ("xz", "xz")):
        _run(tool, "-t", out / f"texts.tar.{suffix}", cwd=tmp_path)
    _run("unzip", "-tq", out / "texts.zip", cwd=tmp_path)
    assert "texts.tar.gz" in _run("ar", "t", out / "texts.deb", cwd=tmp_path)
    _run("git", "fsck", "--strict", cwd=out / "repository")
    assert "" == _run("git", "status", "--porcelain", cwd=out / "repository")


def test_a_container_can_be_had_of_the_image(restored: Path, tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("buildah needs root, or a user's range of ids")
    if shutil.which("buildah") is None:
        pytest.skip("buildah is not installed")
    places = ("--root", tmp_path / "root", "--runroot", tmp_path / "run")
    buildah = ("buildah", *places, "--storage-driver", "vfs")
    image = _run(*buildah, "pull", f"oci-archive:{restored}/image.oci.tar", cwd=tmp_path).strip()
    container = _run(*buildah, "from", "--pull-never", image, cwd=tmp_path).strip()
    try:
        mounted = _run(*buildah, "mount", container, cwd=tmp_path).strip()
        for name in ("texts", "again"):
            _run("diff", "-r", TEXTS, Path(mounted, name), cwd=tmp_path)
    finally:
        _run(*buildah, "rm", container, cwd=tmp_path)
