//! Checks flashbed-ops files with the simulator's reader.

use crate::{bug, errors};
use common::layout;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use sim::ops;

#[pyfunction]
pub fn check_operations(py: Python<'_>, text: &str) -> PyResult<String> {
    let canonical = || {
        let version = ops::operations(text)?.version();
        ops::parse(text).map(|operations| ops::canonical(version, &operations))
    };
    let parsed = bug::caught(canonical)?;
    parsed.map_err(|error| errors::format_error(py, &error))
}

#[pyfunction]
pub fn body_offset(py: Python<'_>, text: PyBackedStr) -> PyResult<usize> {
    let found = bug::caught(|| layout::body_offset(&text))?;
    found.map_err(|error| errors::format_error(py, &error))
}
