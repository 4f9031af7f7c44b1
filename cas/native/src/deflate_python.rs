//! The bindings of the deflate core: spans of a stream, and their side information.
//!
//! A span is shared with the work that is done without the interpreter lock, and never changed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::deflate::{self, Error, detect, span, stream};
use crate::python::as_bytes;

/// A deflate stream, cut into spans as it comes.
#[pyclass(module = "cas._native")]
pub struct Splitter(stream::Splitter);

#[pymethods]
impl Splitter {
    #[new]
    #[pyo3(signature = (span_size = 1 << 20, /))]
    fn new(span_size: usize) -> PyResult<Self> {
        if stream::SPAN_SIZES.contains(&span_size) {
            return Ok(Self(stream::Splitter::new(span_size)));
        }
        let (least, most) = (stream::SPAN_SIZES.start(), stream::SPAN_SIZES.end());
        Err(PyValueError::new_err(format!(
            "a span size is from {least} to {most}, not {span_size}"
        )))
    }

    #[pyo3(signature = (data, /))]
    fn feed(&mut self, data: &Bound<'_, PyAny>) -> PyResult<Vec<Span>> {
        let held = as_bytes(data)?;
        let bytes = held.as_bytes();
        let spans = data.py().detach(|| self.0.feed(bytes));
        Ok(spans.into_iter().map(|span| Span(Arc::new(span))).collect())
    }

    fn finish(&mut self, py: Python<'_>) -> Option<Span> {
        py.detach(|| self.0.finish()).map(|span| Span(Arc::new(span)))
    }

    #[getter]
    fn finished(&self) -> bool {
        self.0.is_finished()
    }

    #[getter]
    fn unused<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.unused())
    }

    #[getter]
    fn position(&self) -> u64 {
        self.0.position() / 8
    }

    #[getter]
    fn phase(&self) -> u64 {
        self.0.position() % 8
    }

    #[getter]
    fn failed(&self) -> Option<String> {
        self.0.failed().map(Error::to_string)
    }

    #[getter]
    fn window<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.window())
    }
}

/// A span of a deflate stream.
#[pyclass(frozen, module = "cas._native")]
pub struct Span(Arc<span::Span>);

#[pymethods]
impl Span {
    #[getter]
    fn plain<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.plain())
    }

    #[getter]
    fn plain_size(&self) -> usize {
        self.0.plain().len()
    }

    #[getter]
    fn compressed_bits(&self) -> usize {
        self.0.bits().count()
    }

    #[getter]
    fn last(&self) -> bool {
        self.0.is_last()
    }

    #[pyo3(signature = (config = None, /))]
    fn analyse<'py>(&self, py: Python<'py>, config: Option<&Bound<'py, Config>>) -> Bound<'py, PyBytes> {
        let config = config.map(|config| config.get().0.clone());
        let side = py.detach(|| match config {
            Some(config) => self.0.analyse(&config),
            None => self.0.analyse(&detect::choose(&[&self.0])),
        });
        PyBytes::new(py, &side)
    }
}

/// What a stream's encoder is like.
#[pyclass(frozen, eq, module = "cas._native")]
#[derive(PartialEq, Eq)]
pub struct Config(deflate::config::Config);

#[pymethods]
impl Config {
    #[new]
    #[pyo3(signature = (data, /))]
    fn new(data: &[u8]) -> PyResult<Self> {
        let (config, rest) = deflate::config::Config::decode(data).map_err(value_error)?;
        if rest.is_empty() {
            return Ok(Self(config));
        }
        Err(PyValueError::new_err("bytes follow the configuration"))
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.encode())
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.encode().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// How best to foretell the tokens of a stream that begins with these spans.
#[pyfunction]
#[pyo3(signature = (spans, /))]
#[allow(clippy::needless_pass_by_value)] // that is how a list comes
pub fn choose(py: Python<'_>, spans: Vec<Bound<'_, Span>>) -> Config {
    let spans: Vec<Arc<span::Span>> = spans.iter().map(|span| Arc::clone(&span.get().0)).collect();
    py.detach(|| {
        let spans: Vec<&span::Span> = spans.iter().map(AsRef::as_ref).collect();
        Config(detect::choose(&spans))
    })
}

/// How a span was analysed that has this side information.
#[pyfunction]
#[pyo3(signature = (side, /))]
pub fn config_of(side: &[u8]) -> PyResult<Option<Config>> {
    let maybe_config = span::config_of(side).map_err(value_error)?;
    Ok(maybe_config.map(Config))
}

/// The bits of a span, and how many of the last byte are used.
#[pyfunction]
#[pyo3(signature = (history, plain, side, /))]
pub fn rebuild<'py>(
    py: Python<'py>,
    history: &Bound<'py, PyAny>,
    plain: &Bound<'py, PyAny>,
    side: &[u8],
) -> PyResult<(Bound<'py, PyBytes>, u32)> {
    let (history, plain) = (as_bytes(history)?, as_bytes(plain)?);
    let (history, plain) = (history.as_bytes(), plain.as_bytes());
    let bits = py
        .detach(|| span::rebuild(history, plain, side))
        .map_err(value_error)?;
    Ok((PyBytes::new(py, &bits.bytes), bits.used))
}

fn value_error(error: Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}
