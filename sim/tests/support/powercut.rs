//! Random programs of writes, truncations and syncs, and the states that a power cut may leave.

use proptest::prelude::*;
use sim::run::survey::{Held, Run, Survey};
use sim::run::{run_cases, CaseInput, FsKind, Measured};
use sim::ubi::Volumes;
use std::fmt::Write;

const FILES: [&str; 3] = ["a", "b", "c"];
const BYTES: u64 = 24_000;
/// The distance between bytes that are compared, a prime number.
const STEP: usize = 61;

/// An operation.
#[derive(Clone, Debug)]
pub enum Step {
    Write { file: usize, offset: u64, length: u64 },
    Truncate { file: usize, size: u64 },
    Fsync { file: usize },
    Sync,
}

/// Any operation.
pub fn step() -> impl Strategy<Value = Step> {
    let file = 0..FILES.len();
    prop_oneof![
        6 => (file.clone(), 0..BYTES / 2, 1..BYTES / 2)
            .prop_map(|(file, offset, length)| Step::Write { file, offset, length }),
        1 => (file.clone(), 0..BYTES).prop_map(|(file, size)| Step::Truncate { file, size }),
        2 => file.prop_map(|file| Step::Fsync { file }),
        1 => Just(Step::Sync),
    ]
}

/// The content of a file at every compared offset, up to its end; zero is source 0.
type State = Vec<Option<u64>>;

/// The states of each file after each operation; the first is before any.
fn states(steps: &[Step]) -> Vec<[State; FILES.len()]> {
    let mut now: [State; FILES.len()] = Default::default();
    let places = |size: u64| (size as usize).div_ceil(STEP);
    let mut all = vec![now.clone()];
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Write { file, offset, length } => {
                let end = places(offset + length);
                let state = &mut now[file];
                state.resize(state.len().max(end), Some(0));
                state[places(offset)..end].fill(Some(number as u64 + 1));
            }
            Step::Truncate { file, size } => now[file].resize(places(size), Some(0)),
            Step::Fsync { .. } | Step::Sync => {}
        }
        all.push(now.clone());
    }
    all
}

fn text(steps: &[Step]) -> String {
    let mut text = String::from("flashbed-ops 1\n");
    for (slot, name) in FILES.iter().enumerate() {
        writeln!(text, "open {slot} {name} rw,create\nfsync {slot}").expect("a String");
    }
    text += "mark\n";
    for (number, step) in steps.iter().enumerate() {
        let seed = number + 1;
        match step {
            Step::Write { file, offset, length } => {
                writeln!(text, "write {file} {offset} {length} {seed} {}", seed % 2 * 40)
            }
            Step::Truncate { file, size } => writeln!(text, "truncate {file} {size}"),
            Step::Fsync { file } => writeln!(text, "fsync {file}"),
            Step::Sync => writeln!(text, "sync"),
        }
        .expect("a String");
    }
    text
}

fn measure(fs: FsKind, volumes: &Volumes, steps: &[Step], cuts: &[u64]) -> Measured {
    let mut board = super::board("emulated");
    board.partition.blocks = if fs == FsKind::Jffs2 { 40 } else { 96 };
    let mut kernel = super::kernel("6.1");
    kernel.volumes.clone_from(volumes);
    let prepare = "flashbed-ops 1\nprepared\n";
    let setting = super::setting(&board, &kernel, fs, prepare);
    let case = CaseInput { read_ahead_kib: 0, body: &text(steps), cuts, gc_choices: &[] };
    run_cases(&setting, &[case]).remove(0).unwrap_or_else(|error| panic!("{error}"))
}

/// The seed of a run's source, 0 for zeroes; none if it cannot be read.
pub fn seed_of(run: &Run) -> Option<u64> {
    match &run.held {
        Held::Zero => Some(0),
        Held::Generated(source) => Some(source.seed),
        Held::Bytes(_) | Held::Unreadable(_) => None,
    }
}

/// The content of a file in the survey.
fn found(survey: &Survey, name: &str) -> Option<State> {
    let file = survey.files.iter().find(|file| file.path == name)?;
    let mut state = Vec::new();
    for place in (0..file.size_bytes).step_by(STEP) {
        let run = file.runs.iter().find(|run| place < run.offset_bytes + run.length_bytes)?;
        state.push(Some(seed_of(run)?));
    }
    Some(state)
}

fn check(steps: &[Step], measured: &Measured, survey: &Survey) -> Result<(), TestCaseError> {
    let over = measured.requests.iter().take_while(|request| request.changes < survey.change);
    let over = over.count();
    let states = states(steps);
    prop_assert_eq!(survey.mount_result, 0);
    prop_assert_eq!(survey.probe_result, Some(0));
    for (file, name) in FILES.iter().enumerate() {
        let syncs = |step: &Step| {
            matches!(step, Step::Sync)
                || matches!(step, Step::Fsync { file: synced } if *synced == file)
        };
        let synced = steps[..over].iter().rposition(syncs).map_or(0, |last| last + 1);
        let possible = &states[synced..=(over + 1).min(steps.len())];
        let Some(state) = found(survey, name) else {
            return Err(TestCaseError::fail(format!("cut {}: {name} is gone", survey.change)));
        };
        let sizes = possible.iter().map(|states| states[file].len());
        let (min, max) = (sizes.clone().min().expect("one"), sizes.max().expect("one"));
        prop_assert!((min..=max).contains(&state.len()), "{} of {min}..{max}", state.len());
        for (place, byte) in state.iter().enumerate() {
            let was =
                |states: &[State; FILES.len()]| states[file].get(place).copied().flatten() == *byte;
            let grown =
                *byte == Some(0) && possible.iter().any(|states| states[file].len() <= place);
            let known = grown || possible.iter().any(was);
            prop_assert!(known, "cut {}: {name} at {}: {byte:?}", survey.change, place * STEP);
        }
    }
    Ok(())
}

/// Runs the program with cuts at these fractions of its changes; every surveyed state has to be
/// allowed.
pub fn survives(fs: FsKind, steps: &[Step], at: &[f64]) -> Result<(), TestCaseError> {
    survives_on(fs, &Volumes::default(), steps, at)
}

/// The same on volumes.
pub fn survives_on(
    fs: FsKind,
    volumes: &Volumes,
    steps: &[Step],
    at: &[f64],
) -> Result<(), TestCaseError> {
    let changes = measure(fs, volumes, steps, &[]).requests.last().expect("a step").changes;
    if changes == 0 {
        return Ok(());
    }
    let cuts: Vec<u64> = at.iter().map(|at| 1 + (at * changes as f64) as u64).collect();
    let measured = measure(fs, volumes, steps, &cuts);
    measured.surveys.iter().try_for_each(|survey| check(steps, &measured, survey))
}
