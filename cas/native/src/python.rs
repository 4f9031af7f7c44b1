//! The bindings: Python objects to slices and back, and where the interpreter lock is let go.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMemoryView};

use crate::{cpu, crc};

/// Below this a checksum takes less time than letting the lock go and getting it again may.
const UNLOCK_FROM: usize = 64 * 1024;

/// The parts of cas that Python is too slow for.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{cpu_features, crc32c};
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
fn as_bytes<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(plain) = data.cast::<PyBytes>() {
        return Ok(plain.clone());
    }
    let copy = PyMemoryView::from(data)?.call_method0("tobytes")?;
    Ok(copy.cast_into::<PyBytes>()?)
}
