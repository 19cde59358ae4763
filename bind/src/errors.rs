//! Exceptions with fields. In Python 3.11's stable ABI a class with fields of its own cannot extend
//! a built-in exception, so the fields are attributes of the instance.

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sim::ops::OperationError;
use sim::run::{MountError, RunError};

create_exception!(flashbed._sim, FormatError, PyValueError, "A broken flashbed-ops file.");
create_exception!(flashbed._sim, NotModelled, PyValueError, "The simulator leaves this out.");

/// The first bad line of a flashbed-ops file.
pub fn format_error(py: Python<'_>, error: &OperationError) -> PyErr {
    let raised = FormatError::new_err(error.to_string());
    let value = raised.value(py);
    let set = value
        .setattr("line", error.line)
        .and_then(|()| value.setattr("code", error.code))
        .and_then(|()| value.setattr("detail", &error.detail));
    set.err().unwrap_or(raised)
}

/// `NotModelled` if the model leaves out what the case needs, else a `ValueError`.
pub fn run_error(py: Python<'_>, error: &RunError) -> PyErr {
    let Some(what) = error.not_modelled() else {
        return PyValueError::new_err(error.to_string());
    };
    not_modelled(py, error.to_string(), what)
}

/// The same for a mount.
pub fn mount_error(py: Python<'_>, error: &MountError) -> PyErr {
    match error {
        MountError::NoFileSystem(_) => PyValueError::new_err(error.to_string()),
        MountError::NotModelled { option, fs } => {
            not_modelled(py, error.to_string(), &format!("mount option '{option}' of {fs}"))
        }
    }
}

fn not_modelled(py: Python<'_>, message: String, what: &str) -> PyErr {
    let raised = NotModelled::new_err(message);
    let set = raised.value(py).setattr("what", what);
    set.err().unwrap_or(raised)
}
