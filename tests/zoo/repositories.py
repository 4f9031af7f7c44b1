"""Git's objects: loose ones (a zlib stream each) and packs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.zoo.tools import Debian, run
from tests.zoo.workshop import BRIEF, CLOCK, Job, Made, Workshop, job

GIT = Debian("git", "git")
WHO = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Zoo"), ("EMAIL", "zoo@example.org"), ("DATE", f"{CLOCK} +0000"))
}
OWN = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
LOOSE = 3
PACKS = {"git-pack.pack": (), "git-pack-9.pack": ("-c", "pack.compression=9")}


def jobs() -> Iterator[Job]:
    """All of them."""
    yield from (loose, packs)


@job("git-blob-0.zz", "git-blob-1.zz", "git-blob-2.zz", "git-tree.zz", "git-commit.zz")
def loose(shop: Workshop) -> Iterator[Made]:
    """The three largest blobs, the tree and the commit, as `git commit` leaves them."""
    git, repository = shop.get(GIT), _repository(shop)
    found = (repository / ".git/objects").glob("??/*")
    objects = sorted(found, key=lambda path: (-path.stat().st_size, path))
    tree, commit = (_object(shop, repository, name) for name in ("HEAD^{tree}", "HEAD"))
    blobs = [path for path in objects if path not in (tree, commit)][:LOOSE]
    for number, path in enumerate(blobs):
        yield Made(f"git-blob-{number}.zz", path, "zlib", git, "git add .")
    yield Made("git-tree.zz", tree, "zlib", git, "git commit")
    yield Made("git-commit.zz", commit, "zlib", git, "git commit")


@job(*PACKS)
def packs(shop: Workshop) -> Iterator[Made]:
    """Two commits, packed with deltas."""
    git, repository = shop.get(GIT), _repository(shop)
    for path in sorted(path for path in repository.iterdir() if path.is_dir())[:2]:
        for file in sorted(path.rglob("*.*"))[:2]:
            if file.is_file() and ".git" not in file.parts:
                file.write_bytes(file.read_bytes() + b"one more line\n")
    _git(repository, "commit", "-q", "-a", "-m", "More")
    for name, setting in PACKS.items():
        _git(repository, *setting, "repack", "-q", "-a", "-d", "-f")
        path = next((repository / ".git/objects/pack").glob("*.pack"))
        copy = shop.bench / name
        copy.write_bytes(path.read_bytes())
        shown = " ".join(["git", *setting, "repack -a -d -f"])
        yield Made(name, copy, "pack", git, shown)


def _repository(shop: Workshop) -> Path:
    tree = shop.tree(shop.plain(BRIEF)[0])
    _git(tree, "init", "-q", "-b", "main")
    _git(tree, "add", ".")
    _git(tree, "commit", "-q", "-m", "Begin")
    return tree


def _object(shop: Workshop, repository: Path, name: str) -> Path:
    said = shop.do("git", "rev-parse", name, cwd=repository).read_text().strip()
    return repository / ".git/objects" / said[:2] / said[2:]


def _git(tree: Path, *words: str) -> None:
    run(["git", *words], cwd=tree, env={**WHO, **OWN})
