//! Bit errors that follow the chip: how many, which, and that the kernel module's are the same.

use crate::support;
use sim::flash::errors::wrong_bits;
use sim::flash::{
    Chip, ErrorCurve, Failed, Fault, Faults, Faulty, Flash, Moves, Span, Term, WrongStep,
};
use sim::mtd::{Mtd, RawNand};
use sim::profile::{BoardProfile, EccKind};
use sim::sched::Task;
use sim::units::{BlockNo, Ns, PageNo};

const ONE: f64 = 4_294_967_296.0;
const HOUR: Ns = Ns(3_600_000_000_000);
const NEVER: Term = Term { log2: i32::MIN, erases_power: 0, power: 0 };

fn term(errors: f64, erases_power: f64, power: f64) -> Term {
    let fixed = |value: f64| (value * 65_536.0).round() as u32;
    let log2 = (errors.log2() * 16_777_216.0).round() as i32;
    Term { log2, erases_power: fixed(erases_power), power: fixed(power) }
}

fn none() -> ErrorCurve {
    let (age_hours, reads) = (0, 0);
    ErrorCurve { fresh: NEVER, wear: NEVER, retention: NEVER, disturb: NEVER, age_hours, reads }
}

/// Rows of a file that tests/layers/kernel/test_bit_errors.py holds the module to.
fn rows(file: &str) -> impl Iterator<Item = Vec<&str>> {
    file.lines().skip(1).map(|line| line.split(',').collect())
}

#[test]
fn rates_are_those_of_the_kernel_module() {
    for row in rows(include_str!("../../../tests/corpus/errors/expected.csv")) {
        let number = |at: usize| row[at].parse::<i64>().expect("a number");
        let term = |at: usize| Term {
            log2: number(at) as i32,
            erases_power: number(at + 1) as u32,
            power: number(at + 2) as u32,
        };
        let curve = ErrorCurve {
            fresh: term(0),
            wear: term(3),
            retention: term(6),
            disturb: term(9),
            ..none()
        };
        let found = curve.expected(number(12) as u32, number(13) as u32, number(14) as u32);
        assert_eq!(found, number(15) as u64, "{row:?}");
    }
}

#[test]
fn wrong_bits_are_those_of_the_kernel_module() {
    for row in rows(include_str!("../../../tests/corpus/errors/bits.csv")) {
        let number = |at: usize| row[at].parse::<u64>().expect("a number");
        let (erases, step, bits) = (number(1) as u32, number(2) as u32, number(3) as u32);
        let found = wrong_bits(number(0), erases, step, bits, number(4));
        let words: Vec<String> = found.iter().map(u32::to_string).collect();
        assert_eq!(words.join(" "), row[5], "{row:?}");
    }
}

#[test]
fn a_rate_is_the_sum_of_its_powers() {
    let curve = ErrorCurve {
        fresh: term(1e-6, 0.0, 0.0),
        wear: term(3e-12, 2.05, 0.0),
        retention: term(2e-9, 0.14, 0.54),
        disturb: term(4e-10, 0.33, 1.0),
        ..none()
    };
    for (erases, hours, reads) in [(0, 0, 0), (1, 1, 1), (30_000, 0, 0), (100_000, 8_760, 90_000)] {
        let (c, h, r) = (f64::from(erases.max(1)), f64::from(hours), f64::from(reads));
        let kept = if hours > 0 { 2e-9 * c.powf(0.14) * h.powf(0.54) } else { 0.0 };
        let read = if reads > 0 { 4e-10 * c.powf(0.33) * r } else { 0.0 };
        let sum = 1e-6 + 3e-12 * c.powf(2.05) + kept + read;
        let found = curve.expected(erases, hours, reads) as f64 / ONE;
        assert!((found / sum - 1.0).abs() < 1e-3, "{found} is not {sum}");
    }
}

/// Of a Poisson distribution mean and variance are the expected number, and the share of steps
/// without an error is e to its negative power. Each within five standard errors.
#[test]
fn errors_of_many_steps_are_a_poisson_distribution() {
    for mean in [0.001, 0.02, 0.3, 1.0, 4.0, 20.0] {
        let steps = 60_000;
        let counts = (0..steps).map(|step| {
            let expected = (mean * ONE) as u64;
            wrong_bits(9, step % 7, step, 4_096, expected).len() as f64
        });
        let counts: Vec<f64> = counts.collect();
        let n = f64::from(steps);
        let found = counts.iter().sum::<f64>() / n;
        let variance = counts.iter().map(|count| (count - found).powi(2)).sum::<f64>() / (n - 1.0);
        let none = counts.iter().filter(|&&count| count == 0.0).count() as f64 / n;
        let empty = (-mean).exp();
        assert!((found - mean).abs() < 5.0 * (mean / n).sqrt(), "{mean}: mean {found}");
        let spread = ((mean + 2.0 * mean * mean) / n).sqrt();
        assert!((variance - mean).abs() < 5.0 * spread, "{mean}: variance {variance}");
        assert!((none - empty).abs() < 5.0 * (empty * (1.0 - empty) / n).sqrt() + 1e-9, "{mean}");
    }
}

#[test]
fn bits_are_spread_evenly_and_no_two_are_the_same() {
    let mut eighths = [0_u32; 8];
    for step in 0..20_000 {
        let mut bits = wrong_bits(3, 100, step, 4_096, 2 << 32);
        bits.iter().for_each(|bit| eighths[(bit / 512) as usize] += 1);
        let count = bits.len();
        bits.sort_unstable();
        bits.dedup();
        assert_eq!(bits.len(), count);
    }
    let mean = f64::from(eighths.iter().sum::<u32>()) / 8.0;
    for count in eighths {
        assert!((f64::from(count) - mean).abs() < 5.0 * mean.sqrt(), "{eighths:?}");
    }
}

#[test]
fn an_error_stays_as_more_join_it() {
    for step in 0..200 {
        let mut before = Vec::new();
        for errors in 1..40_u64 {
            let bits = wrong_bits(1, 5, step, 2_048, errors << 30);
            assert!(bits.starts_with(&before));
            before = bits;
        }
        assert!(!before.is_empty());
    }
    assert_ne!(wrong_bits(1, 5, 0, 2_048, 8 << 32), wrong_bits(1, 6, 0, 2_048, 8 << 32));
}

fn board(strength_bits: u32) -> BoardProfile {
    let mut board = support::board("emulated");
    board.software = support::free_software();
    (board.ecc.kind, board.ecc.step_bytes) = (EccKind::HardwarePage, 512);
    board.ecc.strength_bits = strength_bits;
    board
}

fn ageing(board: &BoardProfile, curve: ErrorCurve) -> Faulty<Chip> {
    let faults = Faults { seed: 5, errors: Some(curve), ..Faults::default() };
    Faulty::new(Chip::new(board.chip), faults, board.ecc.step_bytes)
}

fn program(chip: &mut Faulty<Chip>, now: Ns, page: u32) -> Result<Ns, Failed> {
    let bytes = chip.profile().page_bytes;
    let span = Span { column: 0, length: bytes };
    chip.program(now, Task::Program, PageNo(page), Moves::one(0, bytes), span)
}

/// The wrong bits of a page's steps.
fn read(chip: &mut Faulty<Chip>, now: Ns, page: u32) -> Vec<usize> {
    let moves = Moves::one(0, chip.profile().page_bytes);
    chip.read(now, Task::Program, PageNo(page), moves).expect("read");
    let count = |step: &WrongStep| step.bits.as_ref().map_or(0, Vec::len);
    chip.wrong_bits().map_or(Vec::new(), |wrong| wrong.0.iter().map(count).collect())
}

#[test]
fn a_page_has_the_errors_of_its_age_until_its_block_is_erased() {
    let curve = ErrorCurve { retention: term(0.5, 0.0, 1.0), age_hours: 10, ..none() };
    let mut chip = ageing(&board(4), curve);
    program(&mut chip, Ns::ZERO, 0).expect("programmed");
    assert_eq!(read(&mut chip, HOUR * 5, 0), [0; 0], "before faults begin");
    chip.begin_faults(HOUR * 5);
    program(&mut chip, HOUR * 5, 1).expect("programmed");
    let old = read(&mut chip, HOUR * 5, 0);
    assert!(old.iter().sum::<usize>() > 5, "ten hours old: {old:?}");
    assert_eq!(read(&mut chip, HOUR * 5, 1), [0; 0], "just programmed");
    assert_eq!(read(&mut chip, HOUR * 5, 2), [0; 0], "erased");
    assert_eq!(read(&mut chip, HOUR * 5, 0), old, "they stay");
    let later = read(&mut chip, HOUR * 15, 0);
    assert!(later.iter().sum::<usize>() > old.iter().sum::<usize>());
    assert!(!read(&mut chip, HOUR * 15, 1).is_empty());
    chip.erase(HOUR * 15, Task::Program, BlockNo(0)).expect("erased");
    program(&mut chip, HOUR * 15, 0).expect("programmed");
    assert_eq!(read(&mut chip, HOUR * 15, 0), [0; 0]);
}

#[test]
fn reads_of_a_block_disturb_all_of_its_pages() {
    let curve = ErrorCurve { disturb: term(0.01, 0.0, 1.0), reads: 100, ..none() };
    let mut chip = ageing(&board(4), curve);
    program(&mut chip, Ns::ZERO, 0).expect("programmed");
    program(&mut chip, Ns::ZERO, 64).expect("in another block");
    chip.begin_faults(Ns::ZERO);
    let old = read(&mut chip, Ns::ZERO, 0).iter().sum::<usize>();
    for _ in 0..1_000 {
        read(&mut chip, Ns::ZERO, 64);
    }
    assert_eq!(read(&mut chip, Ns::ZERO, 0).iter().sum::<usize>(), old, "not of another block");
    for _ in 0..1_000 {
        read(&mut chip, Ns::ZERO, 5);
    }
    program(&mut chip, Ns::ZERO, 1).expect("programmed");
    assert!(read(&mut chip, Ns::ZERO, 0).iter().sum::<usize>() > old + 20);
    assert_eq!(read(&mut chip, Ns::ZERO, 1), [0; 0], "reads before its program do not count");
}

#[test]
fn each_step_of_a_page_is_corrected_by_itself() {
    let curve = ErrorCurve { fresh: term(2.0, 0.0, 0.0), ..none() };
    let (mut corrected, mut failed) = (0, 0);
    let board = board(3);
    let mut chip = ageing(&board, curve);
    for page in 0..64 {
        program(&mut chip, Ns::ZERO, page).expect("programmed");
    }
    chip.begin_faults(Ns::ZERO);
    let counts: Vec<Vec<usize>> = (0..64).map(|page| read(&mut chip, Ns::ZERO, page)).collect();
    let mut mtd: Mtd<RawNand<Faulty<Chip>>> = Mtd::new(chip, &board);
    for (page, counts) in counts.iter().enumerate() {
        let done = mtd.read(Ns::ZERO, page as u64 * 2_048, 2_048);
        let lost = counts.iter().filter(|&&count| count > 3).count() as u64;
        corrected += counts.iter().filter(|&&count| count <= 3).sum::<usize>() as u64;
        failed += lost;
        let fault = done.err().map(|failed| failed.fault);
        assert_eq!(fault, (lost > 0).then_some(Fault::Uncorrectable));
    }
    assert!(failed > 10 && corrected > 200);
    assert_eq!((mtd.ecc_stats().corrected, mtd.ecc_stats().failed), (corrected, failed));
}

#[test]
fn what_a_hamming_code_takes_for_one_bit_is_refused_by_name() {
    let mut board = board(1);
    (board.ecc.kind, board.ecc.step_bytes) = (EccKind::SoftwareSubpage, 256);
    let curve = ErrorCurve { fresh: term(3.0, 0.0, 0.0), ..none() };
    let mut chip = ageing(&board, curve);
    program(&mut chip, Ns::ZERO, 0).expect("programmed");
    chip.begin_faults(Ns::ZERO);
    let counts = read(&mut chip, Ns::ZERO, 0);
    assert!(counts.iter().any(|&count| count == 3 || count == 5), "{counts:?}");
    let mut mtd = Mtd::new(chip, &board);
    let failed = mtd.read(Ns::ZERO, 0, 2_048).expect_err("three bits");
    assert_eq!(failed.fault, Fault::Miscorrected);
}
