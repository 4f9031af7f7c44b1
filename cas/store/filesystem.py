"""Which file system a path lies on, and whether its files may be mapped and locked as LMDB does.

Over a network another machine may write what is mapped here, and locks are kept by one side only:
a store there would be torn without anybody noticing. Linux says in `/proc/self/mountinfo`
(proc_pid_mountinfo(5)) what is mounted where; elsewhere, and where that cannot be read, nothing is
refused.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from cas.errors import StoreError

MOUNTS = Path("/proc/self/mountinfo")

# Other machines', and the shared folders of virtual machines, which are the same to the guest.
NETWORK = {
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "fuse.beegfs", "fuse.ceph", "fuse.ceph-fuse",
    "fuse.cephfs", "fuse.curlftpfs", "fuse.davfs2", "fuse.gcsfuse", "fuse.glusterfs",
    "fuse.goofys", "fuse.juicefs", "fuse.lizardfs", "fuse.moosefs", "fuse.prl_fsd", "fuse.rclone",
    "fuse.s3fs", "fuse.seaweedfs", "fuse.sshfs", "fuse.vmhgfs-fuse", "glusterfs", "gfs2", "gpfs",
    "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "prl_fs", "pvfs2", "smb", "smb2",
    "smb3", "smbfs", "vboxsf", "vmhgfs", "wekafs",
}  # fmt: skip


def refuse_network_filesystem(path: Path, *, allowed: bool = False) -> None:
    """Raise StoreError when `path`, or where it would be made, is on a network file system;
    `allowed` is the user's word that nothing else will ever touch it."""
    if allowed:
        return
    kind = filesystem_of(path)
    if kind in NETWORK:
        raise StoreError(
            f"a {kind} file system cannot hold this safely",
            where=str(path),
            advice="use a directory on a local disk",
        )


def filesystem_of(path: Path, mounts: Path = MOUNTS) -> str:
    """The type of the file system `path` is on, or would be; empty when that is not known."""
    try:
        lines = mounts.read_bytes().splitlines()
    except OSError:
        return ""
    place = os.fsencode(os.path.realpath(path))
    best, found = -1, b""
    for line in lines:
        mount, kind = _parse(line)
        # A later mount hides an earlier one at the same place.
        if len(mount) >= best and _is_at_or_below(place, mount):
            best, found = len(mount), kind
    return found.decode("ascii", "replace")


def _parse(line: bytes) -> tuple[bytes, bytes]:
    """The place and the type of one mount: fields 5, and the first after the lone dash."""
    before, _, after = line.partition(b" - ")
    fields = before.split(b" ")
    mount = fields[4] if len(fields) > 4 else b""
    return re.sub(rb"\\([0-7]{3})", _unescape, mount), after.split(b" ")[0]


def _unescape(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 8)])


def _is_at_or_below(place: bytes, mount: bytes) -> bool:
    return bool(mount) and (place == mount or place.startswith(mount.rstrip(b"/") + b"/"))
