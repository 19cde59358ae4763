//! The kernels' compressors on given bytes.

use crate::bug;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sim::compress::{Compressors, UbifsCompressor, PAGE_BYTES_MAX, UBIFS_BYTES_MIN};

#[pyfunction]
pub fn compressed_size(compressor: &str, data: &[u8]) -> PyResult<usize> {
    let chosen = match compressor {
        "lzo" => UbifsCompressor::Lzo,
        "zlib" => UbifsCompressor::Zlib,
        "zstd" => UbifsCompressor::Zstd,
        _ => return Err(PyValueError::new_err("lzo, zlib or zstd")),
    };
    if data.len() > PAGE_BYTES_MAX {
        return Err(PyValueError::new_err(format!("{PAGE_BYTES_MAX} bytes at most")));
    }
    if compressor == "zstd" && data.len() < UBIFS_BYTES_MIN as usize {
        return Err(PyValueError::new_err(format!("{UBIFS_BYTES_MIN} bytes at least")));
    }
    let size = bug::caught(|| Compressors::new().size(chosen, data))?;
    Ok(size.unwrap_or(data.len()))
}
