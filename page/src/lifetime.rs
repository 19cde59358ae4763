//! How long the flash lasts under rounds of the program, by the rules that the package has too.

use crate::request::Request;
use common::lifetime::{is_steady, lasting, own_pace, years, DAY_S, FEW_ERASES};
use serde_json::{json, Value};
use sim::run::Measured;

const NS_PER_S: f64 = 1e9;

/// Years of rounds without a break, and what the program does to a flash that it shares.
pub fn of(request: &Request<'_>, measured: &Measured) -> Value {
    let asked = &request.lifetime;
    let (all, worst) = erases(measured);
    let flush = measured.flush.as_ref().map_or(0, |flush| flush.programs);
    let programs = (measured.flash_programs + flush) as f64;
    let programmed = programs / f64::from(request.board.chip.pages_per_block);
    let long_run = lasting(all, programmed);
    let steady = is_steady(all, programmed);
    let (seconds, busy_s) =
        (measured.elapsed.0 as f64 / NS_PER_S, measured.time.0 as f64 / NS_PER_S);
    let is_timed = measured.unpriced.is_none();
    let lasts = asked.endurance.filter(|_| is_timed && measured.failed.total() == 0);
    let wears = (all > 0.0 || long_run > 0.0) && seconds > 0.0;
    let blocks = f64::from(request.board.partition.blocks);
    let alone = lasts.filter(|_| wears).map(|endurance| {
        let is_seen = steady && worst >= FEW_ERASES;
        json!({
            "levelled": years(endurance * blocks, long_run / seconds),
            "as_seen": is_seen.then(|| years(endurance, worst / seconds)),
        })
    });
    let pace = if is_timed { own_pace(seconds, busy_s) } else { None };
    let runs_per_day = asked.runs_per_day.or(pace);
    let erases_per_day =
        runs_per_day.filter(|_| measured.failed.total() == 0).map(|often| often * long_run);
    let together = asked.others.iter().copied().chain([erases_per_day]).sum::<Option<f64>>();
    json!({
        "steady": steady,
        "alone": alone,
        "programs_per_run": programs,
        "runs_per_day": runs_per_day,
        "erases_per_day": erases_per_day,
        "together_years": together
            .zip(asked.endurance)
            .and_then(|(a_day, endurance)| years(endurance * blocks, a_day / DAY_S)),
    })
}

/// Erases of a round, its flush included: of all blocks, and of the worst.
fn erases(measured: &Measured) -> (f64, f64) {
    let (mut all, mut worst) = (0.0, 0.0_f64);
    for worn in &measured.wear {
        let erases = f64::from(worn.erases_measured + worn.erases_flush.unwrap_or_default());
        all += erases;
        worst = worst.max(erases);
    }
    (all, worst)
}
