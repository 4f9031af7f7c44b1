//! The bindings: Python objects to slices and back, and where the interpreter lock is let go.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{FileStat, fstat};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyMemoryView};

use crate::place::{Dress, NewFile};
use crate::replay_python::Replay;
use crate::{cpu, crc, look, place, records, scout, sha};

/// Below this a checksum takes less time than letting the lock go and getting it again may.
const UNLOCK_FROM: usize = 64 * 1024;

/// Below this hashing takes less time than letting the lock go and getting it again may.
const UNLOCK_HASHING_FROM: usize = 8 * 1024;

/// The parts of cas that Python is too slow for.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::deflate_python::{Config, Span, Splitter, choose, config_of, rebuild};

    #[pymodule_export]
    use super::{
        Replay, Scout, Sha256, Status, cpu_features, crc32c, describe, dress_directories, look_at,
        look_at_open, look_into, place_files, sha256_pairs, sha256s, sort_records, sync_file_system,
    };
}

/// Which instruction sets that speed up hashing this processor has, by their /proc/cpuinfo names.
#[pyfunction]
fn cpu_features(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let features = PyDict::new(py);
    for (name, present) in cpu::features() {
        features.set_item(name, present)?;
    }
    Ok(features)
}

/// The CRC-32C of data, going on from value (the CRC of what came before it).
#[pyfunction]
#[pyo3(signature = (data, value = 0, /))]
fn crc32c(data: &Bound<'_, PyAny>, value: u32) -> PyResult<u32> {
    let held = as_bytes(data)?;
    let plain = held.as_bytes();
    if plain.len() < UNLOCK_FROM {
        return Ok(crc::crc32c(value, plain));
    }
    Ok(data.py().detach(|| crc::crc32c(value, plain)))
}

/// `data` itself if it is `bytes`, else a copy of the buffer it offers; `TypeError` if it offers none.
///
/// The stable ABI of Python 3.10 has no buffer protocol, and a buffer that another thread may write to
/// cannot be lent to Rust without the lock: the copy cures both.
pub(crate) fn as_bytes<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(plain) = data.cast::<PyBytes>() {
        return Ok(plain.clone());
    }
    let copy = PyMemoryView::from(data)?.call_method0("tobytes")?;
    Ok(copy.cast_into::<PyBytes>()?)
}

/// Whether `sha256s` hashes two messages in the time of one.
#[pyfunction]
fn sha256_pairs() -> bool {
    sha::is_fast()
}

/// The SHA-256 of what has come so far.
#[pyclass(module = "cas._native")]
struct Sha256(sha::Running);

#[pymethods]
impl Sha256 {
    #[new]
    fn new() -> Self {
        Sha256(sha::Running::default())
    }

    fn digest<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.digest())
    }
}

/// The digests of the parts of data that begin at `start` and have these lengths; `running` go on with all of them.
#[pyfunction]
#[pyo3(signature = (data, start, lengths, running, /))]
#[allow(clippy::needless_pass_by_value)] // as the bindings want them
fn sha256s<'py>(
    data: &Bound<'py, PyBytes>,
    start: usize,
    lengths: Vec<usize>,
    running: Vec<Bound<'py, Sha256>>,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let py = data.py();
    let plain = data.as_bytes();
    let size = lengths
        .iter()
        .try_fold(0_usize, |sum, &length| sum.checked_add(length));
    let part = size
        .and_then(|size| plain.get(start..start.checked_add(size)?))
        .ok_or_else(|| PyValueError::new_err("more than there is of the data"))?;
    let mut states: Vec<_> = running.iter().map(|one| one.borrow().0.clone()).collect();
    let found = if part.len() < UNLOCK_HASHING_FROM {
        sha::digests(part, &lengths, &mut states)
    } else {
        py.detach(|| sha::digests(part, &lengths, &mut states))
    };
    for (one, state) in running.iter().zip(states) {
        one.borrow_mut().0 = state;
    }
    Ok(found.iter().map(|digest| PyBytes::new(py, digest)).collect())
}

/// The records of `size` bytes that data is made of, in order.
#[pyfunction]
#[pyo3(signature = (data, size, /))]
fn sort_records<'py>(data: &Bound<'py, PyAny>, size: usize) -> PyResult<Bound<'py, PyBytes>> {
    let held = as_bytes(data)?;
    let plain = held.as_bytes();
    if size == 0 || plain.len() % size != 0 {
        return Err(PyValueError::new_err("the records do not come out even"));
    }
    let ordered = data.py().detach(|| records::sorted(plain, size));
    Ok(PyBytes::new(data.py(), &ordered))
}

/// What stat(2) says of a name.
#[pyclass(frozen, module = "cas._native")]
struct Status(FileStat);

#[pymethods]
#[allow(clippy::useless_conversion)] // what types the fields have differs between systems
impl Status {
    #[getter]
    fn st_mode(&self) -> u32 {
        self.0.st_mode.into()
    }

    #[getter]
    fn st_uid(&self) -> u32 {
        self.0.st_uid
    }

    #[getter]
    fn st_gid(&self) -> u32 {
        self.0.st_gid
    }

    #[getter]
    fn st_nlink(&self) -> u64 {
        self.0.st_nlink.into()
    }

    #[getter]
    fn st_dev(&self) -> u64 {
        self.0.st_dev
    }

    #[getter]
    fn st_ino(&self) -> u64 {
        self.0.st_ino.into()
    }

    #[getter]
    fn st_rdev(&self) -> u64 {
        self.0.st_rdev
    }

    #[getter]
    fn st_size(&self) -> i64 {
        self.0.st_size.into()
    }

    #[getter]
    fn st_blocks(&self) -> i64 {
        self.0.st_blocks.into()
    }

    #[getter]
    fn st_mtime_ns(&self) -> i128 {
        nanoseconds(self.0.st_mtime.into(), self.0.st_mtime_nsec.into())
    }

    #[getter]
    fn st_ctime_ns(&self) -> i128 {
        nanoseconds(self.0.st_ctime.into(), self.0.st_ctime_nsec.into())
    }

    #[pyo3(signature = (with_inode, /))]
    fn identity<'py>(&self, py: Python<'py>, with_inode: bool) -> Bound<'py, PyBytes> {
        let mut packed = Vec::new();
        look::add_identity(&mut packed, &self.0, with_inode);
        PyBytes::new(py, &packed)
    }
}

/// A time that may be set to what 64 bits of nanoseconds do not hold.
fn nanoseconds(seconds: i128, nanoseconds: i128) -> i128 {
    seconds * 1_000_000_000 + nanoseconds
}

/// What `name` in an open directory is itself.
#[pyfunction(name = "look")]
#[pyo3(signature = (directory, name, /))]
fn look_at(py: Python<'_>, directory: i32, name: &[u8]) -> PyResult<Status> {
    py.detach(|| look::look(directory, name))
        .map(Status)
        .map_err(os_error)
}

/// What an open file is.
#[pyfunction]
#[pyo3(signature = (file, /))]
fn look_at_open(py: Python<'_>, file: i32) -> PyResult<Status> {
    py.detach(|| fstat(file)).map(Status).map_err(os_error)
}

/// Paths, each with its status, an errno, or None; and the places of those that are not known to be plain.
type Listing<'py> = (Vec<(Bound<'py, PyBytes>, Bound<'py, PyAny>)>, Vec<usize>);

/// The names in a directory, and what they are.
#[pyfunction]
#[pyo3(signature = (parent, name, flags, most, prefix, /))]
fn look_into<'py>(
    py: Python<'py>,
    parent: i32,
    name: &[u8],
    flags: i32,
    most: usize,
    prefix: &[u8],
) -> PyResult<Listing<'py>> {
    let flags = OFlag::from_bits_retain(flags);
    let found = py
        .detach(|| look::look_into(parent, name, flags, most))
        .map_err(os_error)?;
    listing(py, found, prefix)
}

/// What was found in a directory, as Python has it; `prefix` goes before the names.
fn listing<'py>(py: Python<'py>, found: Vec<look::Found>, prefix: &[u8]) -> PyResult<Listing<'py>> {
    let stops = (0..found.len())
        .filter(|&at| !look::is_plain(found[at].1.as_ref()))
        .collect();
    let mut path = prefix.to_vec();
    let mut item = |(name, what): look::Found| {
        path.truncate(prefix.len());
        path.extend_from_slice(name.as_bytes());
        Ok((PyBytes::new(py, &path), as_object(py, what)?))
    };
    let items = found.into_iter().map(&mut item).collect::<PyResult<_>>()?;
    Ok((items, stops))
}

/// Lists directories ahead of who walks.
#[pyclass(frozen, module = "cas._native")]
struct Scout(Mutex<Option<Arc<scout::Scout>>>);

#[pymethods]
impl Scout {
    #[new]
    #[pyo3(signature = (directory, path, flags, quiet, user, most, /))]
    fn new(directory: i32, path: &[u8], flags: i32, quiet: i32, user: u32, most: usize) -> PyResult<Self> {
        let manner = scout::Manner {
            flags: OFlag::from_bits_retain(flags),
            quiet: OFlag::from_bits_retain(quiet),
            user,
        };
        let scout = scout::Scout::new(directory, path, manner, most).map_err(os_error)?;
        Ok(Scout(Mutex::new(Some(Arc::new(scout)))))
    }

    #[pyo3(signature = (path, prefix, /))]
    fn take<'py>(
        &self,
        py: Python<'py>,
        path: &[u8],
        prefix: &[u8],
    ) -> PyResult<Option<(Listing<'py>, f64)>> {
        let Some(scout) = self.held().clone() else {
            return Ok(None);
        };
        let Some(found) = py.detach(|| scout.take(path)) else {
            return Ok(None);
        };
        let age = found.looked.elapsed().as_secs_f64();
        Ok(Some((listing(py, found.found, prefix)?, age)))
    }

    fn close(&self, py: Python<'_>) {
        let scout = self.held().take();
        py.detach(|| drop(scout));
    }
}

impl Scout {
    fn held(&self) -> MutexGuard<'_, Option<Arc<scout::Scout>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The paths of items, their identities, and the devices that they are on.
#[pyfunction]
#[pyo3(signature = (items, /))]
fn describe<'py>(
    items: &Bound<'py, PyList>,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, Vec<u64>)> {
    let (mut paths, mut identities, mut devices) = (Vec::new(), Vec::new(), Vec::new());
    for item in items {
        let (path, status): (Bound<'py, PyBytes>, Bound<'py, Status>) = item.extract()?;
        let status = &status.get().0;
        paths.extend_from_slice(path.as_bytes());
        paths.push(0);
        look::add_identity(&mut identities, status, true);
        if !devices.contains(&status.st_dev) {
            devices.push(status.st_dev);
        }
    }
    let py = items.py();
    Ok((PyBytes::new(py, &paths), PyBytes::new(py, &identities), devices))
}

/// As Python has `Dress`: mode, owner, time.
type Wanted = (u32, Option<(u32, u32)>, Option<i64>);

impl From<Wanted> for Dress {
    fn from((mode, owner, mtime_ns): Wanted) -> Self {
        Self {
            mode,
            owner,
            mtime_ns,
        }
    }
}

/// Makes files, whose contents lie end to end; gives 0 for each, or the errno that says why there is none.
#[pyfunction]
#[pyo3(signature = (contents, files, /))]
fn place_files(
    contents: &Bound<'_, PyBytes>,
    files: Vec<(i32, Vec<u8>, usize, Wanted)>,
) -> PyResult<Vec<i32>> {
    let mut left = contents.as_bytes();
    let mut new = Vec::with_capacity(files.len());
    for (directory, name, length, wanted) in files {
        let content;
        (content, left) = left
            .split_at_checked(length)
            .ok_or_else(|| PyValueError::new_err("more than there is of the contents"))?;
        new.push(NewFile {
            directory,
            name,
            content,
            dress: wanted.into(),
        });
    }
    let done = contents
        .py()
        .detach(|| new.iter().map(place::place).map(number).collect());
    Ok(done)
}

/// Puts metadata on directories; gives 0 for each, or the errno that says why it could not.
#[pyfunction]
#[pyo3(signature = (directories, /))]
fn dress_directories(py: Python<'_>, directories: Vec<(i32, Vec<u8>, Wanted)>) -> Vec<i32> {
    let put = |(parent, name, wanted): (i32, Vec<u8>, Wanted)| {
        number(place::dress_directory(parent, &name, &wanted.into()))
    };
    py.detach(|| directories.into_iter().map(put).collect())
}

/// Waits until a file system has all on its disk.
#[pyfunction]
#[pyo3(signature = (file, /))]
fn sync_file_system(py: Python<'_>, file: i32) -> PyResult<()> {
    py.detach(|| place::sync_file_system(file)).map_err(os_error)
}

fn number(result: Result<(), Errno>) -> i32 {
    result.map_or_else(|errno| errno as i32, |()| 0)
}

fn as_object(py: Python<'_>, what: Option<Result<FileStat, Errno>>) -> PyResult<Bound<'_, PyAny>> {
    Ok(match what {
        Some(Ok(status)) => Bound::new(py, Status(status))?.into_any(),
        Some(Err(errno)) => (errno as i32).into_pyobject(py)?.into_any(),
        None => py.None().into_bound(py),
    })
}

fn os_error(errno: Errno) -> PyErr {
    PyOSError::new_err((errno as i32, errno.desc()))
}
