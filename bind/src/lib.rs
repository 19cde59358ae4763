//! The Python module `flashbed._sim`: the only code that knows both Rust and Python.
//!
//! `_sim.pyi` documents its interface for Python. `case.rs` has the inputs, `results.rs` and
//! `columns.rs` the outputs, `errors.rs` the exceptions, `operations.rs` the functions on
//! flashbed-ops files, `space.rs` those on a partition's space, `compressors.rs` and `pieces.rs`
//! those on bytes, `boot.rs` boots, `dump.rs` what a device's flash held. `workloads.rs`,
//! `energy.rs` and `lifetime.rs` hand on what `common` works out, `images.rs` what `image` reads.
//! `policies.rs` asks the user's policies, and `decisions.rs` ends those that do not return.
//! `wait.rs` releases the interpreter lock, waits for the simulator's threads and checks for
//! Ctrl-C. `bug.rs` turns a panic into one line.

mod boot;
mod bug;
mod case;
mod columns;
mod compressors;
mod decisions;
mod dump;
mod energy;
mod errors;
mod images;
mod lifetime;
mod operations;
mod pieces;
mod policies;
mod prepared;
mod results;
mod space;
mod wait;
mod workloads;

use case::{Case, Recorded};
use dump::Dump;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use results::Results;
use sim::profile::{BoardProfile, BusPhase, SpiBus};
use sim::run::parallel::{self, Job};
use sim::run::{KernelProfile, Root};
use sim::units::Ns;
use std::sync::Arc;

fn board(json: &str) -> PyResult<BoardProfile> {
    let refused = |why: String| PyValueError::new_err(format!("board profile: {why}"));
    let board: BoardProfile = serde_json::from_str(json).map_err(|why| refused(why.to_string()))?;
    board.check().map_err(refused)?;
    Ok(board)
}

fn kernel(json: &str) -> PyResult<KernelProfile> {
    serde_json::from_str(json)
        .map_err(|error| PyValueError::new_err(format!("kernel profile: {error}")))
}

#[pyfunction]
fn check_board(board_json: &str) -> PyResult<()> {
    let invalid = |why: String| PyValueError::new_err(why);
    let board: BoardProfile =
        serde_json::from_str(board_json).map_err(|why| invalid(why.to_string()))?;
    board.check().map_err(invalid)
}

/// Of the array's phase: the wait before the first poll, that before others, and how many polls.
type Polls = Option<(u64, u64, u64)>;

#[pyfunction]
fn spi_phases(
    spi_json: &str,
    kind: &str,
    array_ns: u64,
    data_bytes: u32,
) -> PyResult<Vec<(&'static str, u64, u64, Polls)>> {
    let invalid = |why: String| PyValueError::new_err(why);
    let spi: SpiBus = serde_json::from_str(spi_json).map_err(|why| invalid(why.to_string()))?;
    let phases = match kind {
        "read" => spi.read_phases(Ns(array_ns), data_bytes),
        "program" => spi.program_phases(Ns(array_ns), data_bytes),
        "erase" => spi.erase_phases(Ns(array_ns)),
        _ => return Err(invalid(format!("no operation {kind}"))),
    };
    let row = |phase: BusPhase| {
        let polls = phase.polls.map(|(initial, between, count)| (initial.0, between.0, count));
        (phase.name, phase.cycles, phase.time.0, polls)
    };
    Ok(phases.into_iter().map(row).collect())
}

#[pyfunction]
#[pyo3(signature = (
    board_json, kernel_json, cases, recorded, threads, sink=None, root=None, dump=None,
))]
#[allow(clippy::too_many_arguments, reason = "Python names them")]
fn run_cases(
    py: Python<'_>,
    board_json: &str,
    kernel_json: &str,
    cases: Vec<Py<Case>>,
    recorded: Py<Recorded>,
    threads: usize,
    sink: Option<Py<PyAny>>,
    root: Option<(usize, Vec<u8>)>,
    dump: Option<Py<Dump>>,
) -> PyResult<Results> {
    let mut kernel = kernel(kernel_json)?;
    kernel.dump = dump.map(|dump| dump.get().0.clone());
    if let Some((volume, image)) = root {
        kernel.root = Some(Root { volume, stored: Arc::new(boot::stored(&image)?) });
    }
    let board = board(board_json)?.driven_by(&kernel.kernel);
    let cases: Vec<parallel::Case<'_>> = cases.iter().map(|case| case.get().borrowed()).collect();
    let job = Job {
        board: &board,
        kernel: &kernel,
        cases: &cases,
        recorded: recorded.get().0,
        in_pieces: sink.is_some(),
        catch_panic: |work| bug::or_line(work),
    };
    let waited = py.detach(|| wait::run(&job, threads, sink.as_ref()));
    Results::new(py, &board, waited)
}

/// The simulator; see `_sim.pyi`.
#[pymodule]
mod _sim {
    #[pymodule_export]
    use super::{
        boot::{boot_layout, BootStep},
        case::{Case, Chip, ErrorCurve, Faults, Recorded},
        check_board,
        compressors::compressed_size,
        dump::Dump,
        energy::{activity, EnergyConstants, Stretches},
        errors::{FormatError, NotModelled},
        images::{Image, ImageFile},
        lifetime::{is_steady, lasting_erases, own_pace, years},
        operations::{body_offset, check_operations},
        pieces::PieceSizer,
        policies::{Candidates, Pages, Policies, ReadRequest},
        prepared::{prepared_files, PreparedFile},
        results::{Failure, Piece, Results, Run, Survey, SurveyedFile},
        run_cases,
        space::{fresh_space, SpaceRow, SpaceTable},
        spi_phases,
        workloads::{micro_prepare, micro_reads, micro_writes, parted, settled, written_file},
    };
    use pyo3::prelude::*;
    use pyo3::types::{IntoPyDict, PyTuple};
    use sim::run::Policies as BuiltIn;

    #[pymodule_export]
    const NULL: i64 = super::columns::NULL;

    #[pymodule_export]
    const DAY_S: f64 = common::lifetime::DAY_S;

    #[pymodule_export]
    const YEAR_S: f64 = common::lifetime::YEAR_S;

    #[pymodule_export]
    const FEW_ERASES: f64 = common::lifetime::FEW_ERASES;

    #[pymodule_init]
    fn add_names(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        module.add("OP_NAMES", PyTuple::new(py, sim::ops::NAMES)?)?;
        module.add("KIND_NAMES", PyTuple::new(py, super::columns::KIND_NAMES)?)?;
        module.add("READ_AHEADS", BuiltIn::READ_AHEADS.iter().copied().into_py_dict(py)?)?;
        module.add("RECLAIMS", BuiltIn::RECLAIMS.iter().copied().into_py_dict(py)?)?;
        module.add("VICTIMS", BuiltIn::VICTIMS.iter().copied().into_py_dict(py)?)?;
        module.add("TASK_NAMES", PyTuple::new(py, sim::sched::TASK_NAMES)?)
    }
}
