//! The bindings of `replay`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::replay::{Encoder, ZstdSettings};

/// An encoder of a fixed version, fed with plain bytes in pieces; see cas/native/src/replay.rs.
#[pyclass(module = "cas._native")]
pub struct Replay(Encoder);

#[pymethods]
impl Replay {
    /// LZMA2 as in an xz block.
    #[staticmethod]
    fn lzma2(preset: u32, extreme: bool, dict_size: u32) -> PyResult<Self> {
        Encoder::lzma2(preset, extreme, dict_size)
            .map(Self)
            .map_err(PyValueError::new_err)
    }

    /// A bzip2 stream.
    #[staticmethod]
    fn bzip2(level: u32) -> PyResult<Self> {
        Encoder::bzip2(level).map(Self).map_err(PyValueError::new_err)
    }

    /// A zstd frame.
    #[staticmethod]
    fn zstd(
        level: i32,
        window_log: u32,
        long: bool,
        jobs: bool,
        checksum: bool,
        content_size: Option<u64>,
    ) -> PyResult<Self> {
        let settings = ZstdSettings {
            level,
            window_log,
            long,
            jobs,
            checksum,
            content_size,
        };
        Encoder::zstd(settings).map(Self).map_err(PyValueError::new_err)
    }

    /// What the encoder writes now that data follows.
    fn write<'py>(&mut self, data: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyBytes>> {
        let py = data.py();
        let plain = data.as_bytes();
        let out = py.detach(|| self.0.write(plain)).map_err(PyValueError::new_err)?;
        Ok(PyBytes::new(py, &out))
    }

    /// The end of the stream.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let out = py.detach(|| self.0.finish()).map_err(PyValueError::new_err)?;
        Ok(PyBytes::new(py, &out))
    }
}
