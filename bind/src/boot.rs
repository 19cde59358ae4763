//! A boot, for Python.

use crate::case::Chip;
use crate::dump::Dump;
use crate::{board, bug, errors, kernel};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sim::run::boot::{self, Boot, Holds, Part};
use sim::squashfs::Stored;

/// A part of a boot; see `_sim.pyi`.
#[pyclass(frozen, get_all)]
pub struct BootStep {
    part: &'static str,
    volume: Option<usize>,
    size_bytes: Option<u64>,
    errno: Option<i64>,
    time_ns: u64,
    reads: u64,
    programs: u64,
    erases: u64,
    busy_ns: u64,
}

fn step(step: &boot::Step) -> BootStep {
    let (part, volume, file) = match step.part {
        Part::Attach => ("attach", None, None),
        Part::Volume(volume) => ("volume", Some(volume), None),
        Part::Layer => ("layer", None, None),
        Part::File(read) => ("file", None, Some(read)),
    };
    BootStep {
        part,
        volume,
        size_bytes: file.and_then(Result::ok),
        errno: file.and_then(Result::err).map(|errno| -errno),
        time_ns: step.took.0,
        reads: step.counts.reads,
        programs: step.counts.programs,
        erases: step.counts.erases,
        busy_ns: step.counts.busy.0,
    }
}

/// What an image of squashfs stores.
pub fn stored(image: &[u8]) -> PyResult<Stored> {
    let broken = |why| PyValueError::new_err(format!("squashfs: {why}"));
    bug::caught(|| image::stored_squashfs(image))?.map_err(broken)
}

fn holds((what, image): (String, Option<Vec<u8>>)) -> PyResult<Holds> {
    match (what.as_str(), image) {
        ("squashfs", Some(image)) => Ok(Holds::Squashfs(Box::new(stored(&image)?))),
        ("program", None) => Ok(Holds::Program),
        ("nothing", None) => Ok(Holds::Nothing),
        _ => Err(PyValueError::new_err(format!("a volume that holds {what}"))),
    }
}

#[pyfunction]
#[pyo3(signature = (
    board_json, kernel_json, *, chip, volumes, partitions, root, files, read_ahead_kib, dump=None,
))]
#[allow(clippy::too_many_arguments, reason = "Python names them")]
pub fn boot_layout(
    py: Python<'_>,
    board_json: &str,
    kernel_json: &str,
    chip: Py<Chip>,
    volumes: Vec<(String, Option<Vec<u8>>)>,
    partitions: Vec<u32>,
    root: usize,
    files: Vec<String>,
    read_ahead_kib: u32,
    dump: Option<Py<Dump>>,
) -> PyResult<Vec<BootStep>> {
    let mut kernel = kernel(kernel_json)?;
    kernel.dump = dump.map(|dump| dump.get().0.clone());
    let board = board(board_json)?.driven_by(&kernel.kernel);
    let volumes = volumes.into_iter().map(holds).collect::<PyResult<_>>()?;
    let (kernel, state) = (&kernel, chip.get().state());
    let files = &files;
    let boot =
        Boot { board: &board, kernel, state, volumes, partitions, root, files, read_ahead_kib };
    let booted = py.detach(|| bug::caught(|| boot::boot(&boot)))?;
    let steps = booted.map_err(|error| errors::run_error(py, &error))?;
    Ok(steps.iter().map(step).collect())
}
