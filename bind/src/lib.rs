use pyo3::prelude::*;
#[pymodule]
fn _sim(_m: &Bound<PyModule>) -> PyResult<()> {
    Ok(())
}
