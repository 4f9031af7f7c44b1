//! Small files and directories, each given all that it needs in one call.
//!
//! From Python a small file is nine calls to the kernel, each of which lets the interpreter lock go and has to
//! get it again; two threads that make files so wait for one another longer than for the kernel. From here it
//! is one call for some hundred files.
//!
//! A file has no name until it is whole (`O_TMPFILE`, open(2)), and linking it fails where the name is taken: so
//! whatever goes wrong, nothing was made. Whoever asked then does the same file with more care, and can say
//! what is the matter. Only what is not as wanted already is set: mostly a new file has its owner.

use std::ffi::OsStr;
use std::fs::{File, FileTimes, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::fstatat;
use nix::unistd::linkat;

const MODE_BITS: u32 = 0o7777;
const PERMISSION_BITS: u32 = 0o777;

/// Metadata to put on what was made. Without an owner it stays as it is, without a time (nanoseconds since
/// 1970) that too.
pub struct Dress {
    /// The permissions, with setuid, setgid and sticky bits.
    pub mode: u32,
    /// The numbers of user and group.
    pub owner: Option<(u32, u32)>,
    /// For the times of access and of modification.
    pub mtime_ns: Option<i64>,
}

/// A file to make as `name` in an open directory.
pub struct NewFile<'a> {
    /// The descriptor of the directory.
    pub directory: RawFd,
    /// Its name there, without a slash.
    pub name: Vec<u8>,
    /// All of its bytes.
    pub content: &'a [u8],
    /// Its metadata.
    pub dress: Dress,
}

/// Makes the file, whole and with its metadata, unless its name is taken; after an error nothing was made.
///
/// # Errors
///
/// EEXIST if the name is taken, and those of the calls.
pub fn place(file: &NewFile) -> Result<(), Errno> {
    if !is_name(&file.name) {
        return Err(Errno::EINVAL);
    }
    // Cheap, and spares writing a file of which linking would say the same.
    match fstatat(
        Some(file.directory),
        file.name.as_slice(),
        AtFlags::AT_SYMLINK_NOFOLLOW,
    ) {
        Err(Errno::ENOENT) => {}
        Ok(_) => return Err(Errno::EEXIST),
        Err(errno) => return Err(errno),
    }
    let mut new = unnamed(file.directory, file.dress.mode).map_err(|error| errno_of(&error))?;
    new.write_all(file.content).map_err(|error| errno_of(&error))?;
    put(&new, &file.dress).map_err(|error| errno_of(&error))?;
    let path = descriptor_path(new.as_raw_fd());
    linkat(
        None,
        path.as_os_str().as_bytes(),
        Some(file.directory),
        file.name.as_slice(),
        AtFlags::AT_SYMLINK_FOLLOW,
    )
}

/// Puts metadata on the directory `name` of an open one, which is not followed if it is a link.
///
/// # Errors
///
/// ENOTDIR or ELOOP if it is no directory, and those of the calls.
pub fn dress_directory(parent: RawFd, name: &[u8], dress: &Dress) -> Result<(), Errno> {
    if !is_name(name) {
        return Err(Errno::EINVAL);
    }
    let path = descriptor_path(parent).join(OsStr::from_bytes(name));
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
    let directory = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path);
    directory
        .and_then(|found| put(&found, dress))
        .map_err(|error| errno_of(&error))
}

/// Waits until all that was written to the file system of an open file is on its disk.
///
/// # Errors
///
/// Those of syncfs(2): also that something could not be written.
pub fn sync_file_system(file: RawFd) -> Result<(), Errno> {
    #[cfg(target_os = "linux")]
    return nix::unistd::syncfs(file);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        nix::unistd::sync();
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn unnamed(directory: RawFd, mode: u32) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlag::O_TMPFILE.bits())
        .mode(mode & PERMISSION_BITS)
        .open(descriptor_path(directory))
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_directory: RawFd, _mode: u32) -> io::Result<File> {
    Err(Errno::EOPNOTSUPP.into())
}

/// The owner first, since that clears the setuid bit; the time last, since all else may change it.
fn put(file: &File, dress: &Dress) -> io::Result<()> {
    let found = file.metadata()?;
    let given = dress.owner.filter(|&owner| owner != (found.uid(), found.gid()));
    if let Some((user, group)) = given {
        fchown(file, Some(user), Some(group))?;
    }
    if given.is_some() || found.mode() & MODE_BITS != dress.mode {
        file.set_permissions(Permissions::from_mode(dress.mode))?;
    }
    let Some(mtime_ns) = dress.mtime_ns else {
        return Ok(());
    };
    let time = time_of(mtime_ns).ok_or(Errno::EOVERFLOW)?;
    file.set_times(FileTimes::new().set_accessed(time).set_modified(time))
}

fn time_of(since_1970_ns: i64) -> Option<SystemTime> {
    let distance = Duration::from_nanos(since_1970_ns.unsigned_abs());
    if since_1970_ns < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    }
}

/// A path that names what `fd` is open on, and nothing else (proc(5)).
fn descriptor_path(fd: RawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{fd}"))
}

fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}

fn errno_of(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(Errno::EIO as i32))
}
