"""Layers of container images: buildah's, skopeo's and umoci's own, gzip and zstd.

Each tool keeps its storage on the bench. The small zoo's root file system is the plain tar; the
large one's is a Debian that mmdebstrap makes.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

from tests.zoo.tools import Debian, Encoder, run
from tests.zoo.workshop import FIXED, Job, Made, Workshop, job

BUILDAH = Debian("buildah", "buildah")
SKOPEO = Debian("skopeo", "skopeo")
UMOCI = Debian("umoci", "umoci")
MMDEBSTRAP = Debian("mmdebstrap", "mmdebstrap")
SUITE = "bookworm"
ACCEPT_ANYTHING = '{"default": [{"type": "insecureAcceptAnything"}]}'


def jobs() -> Iterator[Job]:
    """All of them."""
    yield from (by_buildah, by_skopeo, by_umoci)


@job("buildah-layer.gz", "buildah-layer.zst")
def by_buildah(shop: Workshop) -> Iterator[Made]:
    """As pushed, with the default and with zstd."""
    buildah, (image, name) = shop.get(BUILDAH), _image(shop)
    for suffix, container in (("gz", "gzip"), ("zst", "zstd")):
        layout = shop.bench / f"pushed-{suffix}"
        command = f"push --compression-format {container}"
        _buildah(shop, *command.split(), image, f"oci:{layout}:zoo")
        shown = f"buildah add {name} /; buildah {command} oci:LAYOUT"
        yield Made(f"buildah-layer.{suffix}", _layer(layout), container, buildah, shown)


@job("skopeo-layer.gz", "skopeo-layer.zst", "skopeo-chunked-layer.zst")
def by_skopeo(shop: Workshop) -> Iterator[Made]:
    """Compressed on the way from one layout to another."""
    skopeo, (image, _) = shop.get(SKOPEO), _image(shop)
    bare = shop.bench / "bare"
    _buildah(shop, "push", "-D", image, f"oci:{bare}:zoo")
    policy = shop.bench / "policy.json"
    policy.write_text(ACCEPT_ANYTHING)
    for name, container, arguments in (
        ("skopeo-layer.gz", "gzip", "--dest-compress-format gzip"),
        ("skopeo-layer.zst", "zstd", "--dest-compress-format zstd"),
        ("skopeo-chunked-layer.zst", "zstd", "--dest-compress-format zstd:chunked"),
    ):
        layout = shop.bench / name
        places = (f"oci:{bare}:zoo", f"oci:{layout}:zoo")
        shop.do(*skopeo.command, "--policy", policy, "copy", *arguments.split(), *places)
        shown = f"skopeo copy {arguments} oci:BARE oci:LAYOUT"
        yield Made(name, _layer(layout), container, skopeo, shown)


@job("umoci-layer.gz")
def by_umoci(shop: Workshop) -> Iterator[Made]:
    """A directory put into a new image."""
    umoci, root, layout = shop.get(UMOCI), shop.bench / "root", shop.bench / "layout"
    root.mkdir()
    shop.do("tar", "-C", root, "--exclude=./dev/*", "-xf", _root_tar(shop))
    image = f"{layout}:zoo"
    shop.do(*umoci.command, "init", "--layout", layout)
    shop.do(*umoci.command, "new", "--image", image)
    shop.do(*umoci.command, "insert", "--image", image, root, "/")
    shown = "umoci insert --image LAYOUT:zoo root /"
    yield Made("umoci-layer.gz", _layer(layout), "gzip", umoci, shown)


def _image(shop: Workshop) -> tuple[str, str]:
    """An image of one layer in buildah's storage: its id, and the name of the tar inside."""
    tar = _root_tar(shop)
    container = _buildah(shop, "from", "scratch")
    _buildah(shop, "add", "-q", container, str(tar), "/")
    return _buildah(shop, "commit", "-q", container), tar.name


def _buildah(shop: Workshop, *words: str) -> str:
    encoder: Encoder = shop.get(BUILDAH)
    storage = ("--root", shop.bench / "storage", "--runroot", shop.bench / "run")
    driver = ("--storage-driver", "vfs", "--log-level", "error")
    return shop.do(*encoder.command, *storage, *driver, *words).read_text().strip()


def _layer(layout: Path) -> Path:
    """The one layer of the one image in an OCI layout."""
    index = json.loads((layout / "index.json").read_bytes())
    manifest = json.loads(_blob(layout, index["manifests"][0]["digest"]).read_bytes())
    return _blob(layout, manifest["layers"][0]["digest"])


def _blob(layout: Path, digest: str) -> Path:
    return layout / "blobs" / digest.replace(":", "/")


def _root_tar(shop: Workshop) -> Path:
    if shop.size == "small":
        return shop.plains["whole"]
    path = shop.cache / "rootfs.tar"
    if not path.exists():
        made = path.with_suffix(".new.tar")
        run([*shop.get(MMDEBSTRAP).command, "--variant=minbase", SUITE, made], env=FIXED)
        assert tarfile.is_tarfile(made)
        made.rename(path)
    return path
