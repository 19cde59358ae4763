//! What a preparation leaves, for Python.

use crate::{board, bug, errors, kernel};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sim::run::{prepared, Mount, MountError};
use sim::vfs::What;

/// A folder, file or link that a preparation leaves; see `_sim.pyi`.
#[pyclass(frozen, get_all)]
pub struct PreparedFile {
    path: String,
    number: usize,
    content: Option<Vec<u8>>,
    target: Option<String>,
}

#[pyfunction]
pub fn prepared_files(
    py: Python<'_>,
    board_json: &str,
    kernel_json: &str,
    fs: &str,
    prepare: &str,
) -> PyResult<Vec<PreparedFile>> {
    let kernel = kernel(kernel_json)?;
    let board = board(board_json)?.driven_by(&kernel.kernel);
    let invalid = |error: MountError| PyValueError::new_err(error.to_string());
    let fs: Mount = fs.parse().map_err(invalid)?;
    let left = bug::caught(|| prepared::files_left(&board, &kernel, fs, prepare))?;
    let left = left.map_err(|error| errors::run_error(py, &error))?;
    let found = left.files.into_iter().map(|(path, left)| {
        let number = left.number;
        let (content, target) = match left.what {
            What::Folder => (None, None),
            What::Link(target) => (None, Some(target)),
            What::File(bytes, contents) => {
                let mut content = vec![0; bytes as usize];
                contents.fill(0, &mut content);
                (Some(content), None)
            }
        };
        PreparedFile { path, number, content, target }
    });
    Ok(found.collect())
}
