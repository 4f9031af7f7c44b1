"""What kind of file system a device number belongs to, from Linux's mount table.

Two kinds matter. The kernel's own (proc, sysfs and the like) hold no content and answer reads with
what they make up, so the walk does not enter them. On some others inode numbers change from mount
to mount, so a file's identity must do without. Where there is no mount table, or a device is not
in it (a btrfs subvolume), the answer is "neither".
"""

from __future__ import annotations

import os

from cas._native import Status

_TABLE = "/proc/self/mountinfo"

_PSEUDO = {
    *("binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "efivarfs"),
    *("fusectl", "hugetlbfs", "mqueue", "nfsd", "nsfs", "proc", "pstore", "resctrl", "rpc_pipefs"),
    *("securityfs", "selinuxfs", "smackfs", "sysfs", "tracefs"),
}
_UNSTABLE_INODES = {
    *("9p", "afs", "cifs", "exfat", "msdos", "ntfs", "overlay", "prl_fs", "smb3", "smbfs"),
    *("vboxsf", "vfat", "vmhgfs"),
}


class Mounts:
    """File systems by device number; reads the table again when it meets a new one."""

    def __init__(self) -> None:
        self._types: dict[int, str] = {}
        self._stable: dict[int, bool] = {}

    def type_of(self, device: int) -> str:
        """The type of the file system with this `st_dev`, or an empty string."""
        known = self._types.get(device)
        if known is None:
            self._types.update(_read_table())
            known = self._types.setdefault(device, "")
        return known

    def is_pseudo(self, device: int) -> bool:
        """Whether the kernel makes this file system up."""
        return self.type_of(device) in _PSEUDO

    def has_stable_inodes(self, device: int) -> bool:
        """Whether a file keeps its inode number there for as long as it exists."""
        known = self._stable.get(device)
        if known is None:
            name = self.type_of(device)
            known = not (name in _UNSTABLE_INODES or name.startswith("fuse"))
            self._stable[device] = known
        return known

    def identity(self, status: Status) -> bytes:
        """A value that differs whenever a name may stand for something else than it did.

        Whatever changes a file or its attributes sets its ctime. Where inode numbers are not
        stable they are left out.
        """
        return status.identity(self.has_stable_inodes(status.st_dev))


def _read_table() -> dict[int, str]:
    try:
        with open(_TABLE, "rb") as table:
            return dict(_parse(line) for line in table)
    except (OSError, ValueError):
        return {}


def _parse(line: bytes) -> tuple[int, str]:
    """proc(5), mountinfo: the third field is major:minor; the type comes after " - "."""
    major, minor = line.split(b" ", 3)[2].split(b":")
    kind = line.partition(b" - ")[2].split(b" ", 1)[0]
    return os.makedev(int(major), int(minor)), kind.decode("ascii", "replace")
