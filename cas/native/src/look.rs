//! What names are: lstat(2) and fstat(2), and the two together that a walk is made of, the names in a
//! directory and what each of them is.
//!
//! A scan in which nothing has changed does little but this. From Python it is a call for each name, which
//! takes half as long again as the kernel does, and a dozen objects for each answer; from here it is one call
//! for a directory, and one object.

use std::ffi::CString;
use std::os::fd::{AsRawFd, RawFd};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{FileStat, Mode, SFlag, fstatat};

/// Bytes in a name, at most: what formats take (`cas.entry`), and most file systems.
const NAME_LIMIT: usize = 255;

/// A name, and what it is or why that cannot be told; nothing where it was not looked at.
pub type Found = (CString, Option<Result<FileStat, Errno>>);

/// What `name` in an open directory is itself, never what a link points to.
///
/// # Errors
///
/// Those of fstatat(2), and ENAMETOOLONG also where the file system would take such a name.
pub fn look(directory: RawFd, name: &[u8]) -> Result<FileStat, Errno> {
    if name.len() > NAME_LIMIT {
        return Err(Errno::ENAMETOOLONG);
    }
    fstatat(Some(directory), name, AtFlags::AT_SYMLINK_NOFOLLOW)
}

/// The names in the directory `name` of an open one, in byte order, and what each of them is; no more than the
/// names when they are over `most`. It is opened with `flags`, besides those that a directory needs.
///
/// # Errors
///
/// Those of opening and reading the directory; those of looking at a name stand with it.
pub fn look_into(parent: RawFd, name: &[u8], flags: OFlag, most: usize) -> Result<Vec<Found>, Errno> {
    let flags = flags | OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut directory = Dir::openat(Some(parent), name, flags, Mode::empty())?;
    let names = names_in(&mut directory)?;
    if names.len() > most {
        return Ok(names.into_iter().map(|name| (name, None)).collect());
    }
    let fd = directory.as_raw_fd();
    let found = |name: CString| {
        let what = look(fd, name.to_bytes());
        (name, Some(what))
    };
    Ok(names.into_iter().map(found).collect())
}

pub(crate) fn names_in(directory: &mut Dir) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in directory.iter() {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Whether it is known what the name is, and that it is no directory.
#[must_use]
pub fn is_plain(what: Option<&Result<FileStat, Errno>>) -> bool {
    matches!(what, Some(Ok(status)) if !is_directory(status))
}

pub(crate) fn is_directory(status: &FileStat) -> bool {
    status.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFDIR.bits()
}

/// Adds to `packed` a value that differs when anything does that changes with a file or its attributes.
///
/// The time of access is not in it. Devices may have other numbers after a reboot, so that of a file is in it
/// only if it may have other names, which are told apart by it. Its inode number is, if `with_inode`. How long the
/// value is follows from how it begins.
pub fn add_identity(packed: &mut Vec<u8>, status: &FileStat, with_inode: bool) {
    let is_linked = status.st_nlink > 1 && !is_directory(status);
    let numbers = [
        number(status.st_mode),
        number(status.st_nlink),
        number(status.st_uid),
        number(status.st_gid),
        number(status.st_size),
        number(status.st_mtime),
        number(status.st_mtime_nsec),
        number(status.st_ctime),
        number(status.st_ctime_nsec),
        if with_inode { number(status.st_ino) } else { 0 },
        number(status.st_dev),
        number(status.st_ino),
    ];
    let count = if is_linked { 12 } else { 10 };
    for number in &numbers[..count] {
        packed.extend_from_slice(&number.to_le_bytes());
    }
}

/// A field of a status, whatever type it has on this system: none is wider than 64 bits.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn number(field: impl Into<i128>) -> u64 {
    field.into() as u64
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::PathBuf;

    use nix::errno::Errno;
    use nix::fcntl::OFlag;
    use nix::sys::stat::FileStat;

    use super::{Found, add_identity, is_plain, look, look_into};

    /// A directory that is gone with the value.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("cas-look-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn look_into(&self, name: &str, most: usize) -> Result<Vec<Found>, Errno> {
            let parent = File::open(&self.0).unwrap();
            look_into(parent.as_raw_fd(), name.as_bytes(), OFlag::O_NOFOLLOW, most)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn names_come_in_byte_order_with_what_they_are() {
        let scratch = Scratch::new("order");
        for name in ["b", "a-", "a", "\u{e9}", "B"] {
            fs::write(scratch.0.join(name), name).unwrap();
        }
        symlink("nowhere", scratch.0.join("link")).unwrap();
        let found = scratch.look_into(".", 6).unwrap();
        let names: Vec<_> = found.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        assert_eq!(["B", "a", "a-", "b", "link", "\u{e9}"], names[..]);
        for (name, status) in found {
            let status = status.unwrap().unwrap();
            let expected = fs::symlink_metadata(scratch.0.join(name.to_str().unwrap())).unwrap();
            assert_eq!((expected.ino(), expected.mode()), (status.st_ino, status.st_mode));
        }
        assert!(
            scratch
                .look_into(".", 5)
                .unwrap()
                .iter()
                .all(|(_, status)| status.is_none())
        );
    }

    #[test]
    fn only_directories_are_looked_into_and_no_link_is_followed() {
        let scratch = Scratch::new("links");
        fs::create_dir(scratch.0.join("inner")).unwrap();
        fs::write(scratch.0.join("file"), "").unwrap();
        symlink("inner", scratch.0.join("link")).unwrap();
        assert!(scratch.look_into("inner", 1).unwrap().is_empty());
        assert_eq!(Err(Errno::ENOENT), scratch.look_into("gone", 1));
        assert_eq!(Err(Errno::ENOTDIR), scratch.look_into("file", 1));
        assert!(scratch.look_into("link", 1).is_err());
    }

    #[test]
    fn plain_is_what_is_known_and_no_directory() {
        let scratch = Scratch::new("plain");
        fs::create_dir(scratch.0.join("d")).unwrap();
        symlink("d", scratch.0.join("l")).unwrap();
        let found = scratch.look_into(".", 2).unwrap();
        assert_eq!(
            [false, true],
            [0, 1].map(|at: usize| is_plain(found[at].1.as_ref()))
        );
        assert!(!is_plain(None));
        assert!(!is_plain(Some(&Err(Errno::EACCES))));
    }

    fn identity(status: &FileStat, with_inode: bool) -> Vec<u8> {
        let mut packed = Vec::new();
        add_identity(&mut packed, status, with_inode);
        packed
    }

    #[test]
    fn an_identity_tells_all_that_matters_and_no_more() {
        let scratch = Scratch::new("identity");
        fs::write(scratch.0.join("x"), "x").unwrap();
        let status = look(File::open(&scratch.0).unwrap().as_raw_fd(), b"x").unwrap();
        let changes: [fn(&mut FileStat); 10] = [
            |status| status.st_mode ^= 0o100,
            |status| status.st_uid += 1,
            |status| status.st_gid += 1,
            |status| status.st_nlink += 1,
            |status| status.st_size += 1,
            |status| status.st_mtime -= 1,
            |status| status.st_mtime_nsec ^= 1,
            |status| status.st_ctime -= 1,
            |status| status.st_ctime_nsec ^= 1,
            |status| status.st_ino += 1,
        ];
        for (at, change) in changes.iter().enumerate() {
            let mut other = status;
            change(&mut other);
            assert_ne!(identity(&status, true), identity(&other, true), "change {at}");
            assert_eq!(
                at == 9,
                identity(&status, false) == identity(&other, false),
                "change {at}"
            );
        }
        let mut other = status;
        (other.st_dev, other.st_atime, other.st_blocks) = (0, 0, 99);
        assert_eq!(identity(&status, true), identity(&other, true));
    }

    #[test]
    fn an_identity_says_which_inode_has_several_names() {
        let scratch = Scratch::new("linked");
        fs::write(scratch.0.join("x"), "x").unwrap();
        let mut linked = look(File::open(&scratch.0).unwrap().as_raw_fd(), b"x").unwrap();
        linked.st_nlink = 2;
        for change in [
            |status: &mut FileStat| status.st_dev += 1,
            |status: &mut FileStat| status.st_ino += 1,
        ] {
            let mut other = linked;
            change(&mut other);
            assert_ne!(identity(&linked, false), identity(&other, false));
        }
    }
}
