//! Operations that the playground has as well, made by `common`: layouts and micro-benchmarks.

use crate::errors;
use common::layout;
use common::micro::{self, Between, Requests, Unfit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::borrow::Cow;

#[pyfunction]
pub fn written_file(
    path: &str,
    length_bytes: u64,
    request_bytes: u64,
    seed: u64,
) -> PyResult<Vec<String>> {
    if request_bytes == 0 {
        return Err(unfit(Unfit::Empty));
    }
    let text = layout::written_file(path, length_bytes, request_bytes, seed);
    Ok(text.lines().map(str::to_owned).collect())
}

#[pyfunction]
pub fn settled(text: String, settle_ns: u64) -> String {
    layout::settled(text, settle_ns)
}

#[pyfunction]
pub fn parted<'a>(
    py: Python<'_>,
    text: &'a str,
    settle_ns: u64,
) -> PyResult<(String, Cow<'a, str>)> {
    layout::parted(text, settle_ns).map_err(|error| errors::format_error(py, &error))
}

#[pyfunction]
pub fn micro_prepare(file_bytes: u64, settle_ns: u64) -> String {
    micro::prepare(file_bytes, settle_ns)
}

#[pyfunction]
#[pyo3(signature = (*, pattern, requests, request_bytes, file_bytes, seed, pause_ns, advice))]
pub fn micro_reads(
    pattern: &str,
    requests: u64,
    request_bytes: u64,
    file_bytes: u64,
    seed: u64,
    pause_ns: u64,
    advice: Option<&str>,
) -> PyResult<String> {
    let of = Requests { count: requests, bytes: request_bytes, file_bytes, seed };
    micro::reads(pattern, of, Between { pause_ns, advice }).map_err(unfit)
}

#[pyfunction]
#[pyo3(signature = (*, pattern, requests, request_bytes, file_bytes, seed, settle_ns))]
pub fn micro_writes(
    pattern: &str,
    requests: u64,
    request_bytes: u64,
    file_bytes: u64,
    seed: u64,
    settle_ns: u64,
) -> PyResult<(String, String)> {
    let of = Requests { count: requests, bytes: request_bytes, file_bytes, seed };
    micro::writes(pattern, of, settle_ns).map_err(unfit)
}

fn unfit(why: Unfit) -> PyErr {
    PyValueError::new_err(why.to_string())
}
