"""Which file systems a store may lie on."""

import subprocess
from pathlib import Path

import pytest

from cas.errors import StoreError
from cas.store.filesystem import NETWORK, filesystem_of, refuse_network_filesystem

MOUNTS = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 27 0:40 / /home/me rw,relatime shared:2 master:3 - nfs4 server:/home rw,vers=4.2
31 30 0:41 / /home/me/local\040disk rw,relatime - xfs /dev/vdb rw
32 27 0:42 / /mnt rw - ext4 /dev/vdc rw
33 32 0:43 / /mnt rw - fuse.sshfs host:/ rw
34 27 0:44 / /mnt/inner rw - btrfs /dev/vdd rw
broken line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/var/lib/not-there/yet", "ext4"),
        ("/home/mel", "ext4"),
        ("/home/me", "nfs4"),
        ("/home/me/store", "nfs4"),
        ("/home/me/local disk/store", "xfs"),
        ("/home/me/local", "nfs4"),
        ("/mnt/x", "fuse.sshfs"),
        ("/mnt/inner/x", "btrfs"),
        ("/home/me/../../mnt/x", "fuse.sshfs"),
    ],
)
def test_the_innermost_and_newest_mount_counts(tmp_path: Path, path: str, kind: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert kind == filesystem_of(Path(path), mounts)


def test_where_mounts_are_not_known_nothing_is_refused(tmp_path: Path) -> None:
    assert filesystem_of(Path("/"), tmp_path / "not there") == ""


def test_this_machine_is_read(tmp_path: Path) -> None:
    assert filesystem_of(Path("/proc/self")) == "proc"
    refuse_network_filesystem(tmp_path / "not" / "there")


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph"])
def test_networks_are_known(kind: str) -> None:
    assert kind in NETWORK


def test_a_network_file_system_is_refused_unless_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cas.store.filesystem.NETWORK", {filesystem_of(tmp_path)})
    with pytest.raises(StoreError, match=r"cannot hold this safely \(use a directory on a local"):
        refuse_network_filesystem(tmp_path / "store")
    refuse_network_filesystem(tmp_path / "store", allowed=True)


@pytest.mark.root
def test_a_real_mount_is_seen_through_a_link(tmp_path: Path) -> None:
    inner = tmp_path / "a disk"
    inner.mkdir()
    mounted = subprocess.run(["mount", "-t", "ramfs", "ramfs", inner], capture_output=True)
    if mounted.returncode:
        pytest.skip("cannot mount")
    try:
        (tmp_path / "link").symlink_to(inner)
        assert filesystem_of(tmp_path / "link" / "store") == "ramfs"
        assert filesystem_of(tmp_path) != "ramfs"
    finally:
        subprocess.run(["umount", inner], check=True)
