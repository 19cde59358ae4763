//! The rules of lifetimes, as `common` has them.

use common::lifetime;
use pyo3::prelude::*;

#[pyfunction]
pub fn is_steady(erases: f64, programmed_blocks: f64) -> bool {
    lifetime::is_steady(erases, programmed_blocks)
}

#[pyfunction]
pub fn lasting_erases(erases: f64, programmed_blocks: f64) -> f64 {
    lifetime::lasting(erases, programmed_blocks)
}

#[pyfunction]
pub fn years(erases: f64, per_second: f64) -> Option<f64> {
    lifetime::years(erases, per_second)
}

#[pyfunction]
pub fn own_pace(seconds: f64, busy_s: f64) -> Option<f64> {
    lifetime::own_pace(seconds, busy_s)
}
