//! The answer: JSON, and columns of numbers.
//!
//! The JSON names the columns with their kind, where they stand in memory, and how many numbers
//! they have. JavaScript takes them from there: a million calls have 100 MB of them, and a module's
//! memory never shrinks.

use crate::columns::{Numbers, Rows};
use crate::lifetime;
use crate::request::Request;
use crate::Refused;
use common::energy::{activity, Condition, Work, COLUMNS};
use serde_json::{json, Map, Value};
use sim::causes::{Cause, Causes};
use sim::profile::BoardProfile;
use sim::run::Measured;
use sim::sched::TASK_NAMES;

/// What a case gave, for as long as JavaScript reads it.
#[derive(Default)]
pub struct Answer {
    /// Facts, and the places of the columns.
    pub json: Vec<u8>,
    /// What the JSON points to.
    _columns: Vec<(&'static str, Numbers)>,
}

/// Why a case gave nothing.
pub fn refused(why: &Refused) -> Answer {
    let (message, not_modelled) = match why {
        Refused::Request(message) => (message.clone(), None),
        Refused::Run(error) => (error.to_string(), error.not_modelled()),
    };
    with_columns(json!({ "error": message, "not_modelled": not_modelled }), Vec::new())
}

/// What a case gave.
pub fn measured(request: &Request<'_>, measured: &Measured, rows: Rows) -> Answer {
    let mut json = json!({
        "counts": counts(&request.board, measured),
        "energies": energies(request, measured, &rows),
        "lifetime": lifetime::of(request, measured),
        "unpriced": measured.unpriced.map(|packing| packing.name()),
        "files": measured.files,
        "op_names": sim::ops::NAMES.as_slice(),
        "task_names": TASK_NAMES.as_slice(),
        "requests_left_out": rows.requests_left_out,
        "flash_left_out": rows.flash_left_out,
        "gc_choices": measured.gc_choices,
    });
    json["flush"] = match &measured.flush {
        None => Value::Null,
        Some(flush) => json!({
            "flash_reads": flush.reads,
            "flash_programs": flush.programs,
            "flash_erases": flush.erases,
            "causes": causes(&flush.causes),
        }),
    };
    let mut columns = rows.into_columns();
    let at = measured.live.iter().map(|look| look.at.0 as f64).collect();
    columns.push(("live_at", Numbers::F64(at)));
    let live = measured.live.iter().flat_map(|look| look.live.iter().copied()).collect();
    columns.push(("live", Numbers::U8(live)));
    let programmed = measured.live.iter().flat_map(|look| look.programmed.iter().copied());
    columns.push(("programmed", Numbers::U8(programmed.collect())));
    let erases = |of: fn(&sim::run::BlockWear) -> u32| measured.wear.iter().map(of).collect();
    columns.push(("wear_erases", Numbers::U32(erases(|worn| worn.erases))));
    columns.push(("wear_measured", Numbers::U32(erases(|worn| worn.erases_measured))));
    columns
        .push(("wear_flush", Numbers::U32(erases(|worn| worn.erases_flush.unwrap_or_default()))));
    with_columns(json, columns)
}

/// The columns of the table `cases` that the simulator measures, by their names there.
fn counts(board: &BoardProfile, measured: &Measured) -> Value {
    let blocks = u64::from(board.partition.blocks);
    json!({
        "time_ns": measured.time.0,
        "flash_time_ns": measured.flash_time.0,
        "elapsed_ns": measured.elapsed.0,
        "bytes": measured.bytes,
        "bytes_written": measured.bytes_written,
        "failed": measured.failed.total(),
        "flash_reads": measured.flash_reads,
        "flash_programs": measured.flash_programs,
        "flash_erases": measured.flash_erases,
        "causes": causes(&measured.causes),
        "cache_hits": measured.cache_hits,
        "cache_misses": measured.cache_misses,
        "cache_adds": measured.cache_adds,
        "erase_count_max": measured.erase_count_max,
        "erase_count_mean_milli": measured.erase_count_sum * 1000 / blocks,
        "bad_blocks": measured.bad_blocks,
        "ecc_corrected": measured.ecc_corrected,
        "ecc_failed": measured.ecc_failed,
        "fresh_bytes": measured.fresh.bytes,
        "free_bytes": measured.prepared.bytes,
        "fresh_pages": measured.fresh.pages,
        "pages": measured.prepared.pages,
    })
}

/// Energies as decimal numbers, because they may have more digits than a number of JavaScript's;
/// null is unknown. Without rows nothing says what the program did.
fn energies(request: &Request<'_>, measured: &Measured, rows: &Rows) -> Value {
    let Some(asked) = request.energy.as_ref().filter(|_| request.with_rows) else {
        return COLUMNS.iter().map(|&name| (name.to_owned(), Value::Null)).collect();
    };
    let of = Condition {
        activity: activity(rows.ops()),
        fs: &request.fs_name,
        pattern: &asked.pattern,
        read_ahead_kib: request.read_ahead_kib,
    };
    let done = [measured.flash_reads, measured.flash_programs, measured.flash_erases];
    let work = Work {
        time_ns: measured.unpriced.is_none().then_some(measured.time.0 as i64),
        bytes: Some(measured.bytes as i64),
        done: done.map(|count| Some(count as i64)),
        in_pauses: rows.in_pauses(),
    };
    let found = asked.constants.energies(of, work).columns;
    let named = COLUMNS.iter().zip(found);
    named.map(|(&name, nj)| (name.to_owned(), json!(nj.map(|nj| nj.to_string())))).collect()
}

fn causes(causes: &Causes) -> Value {
    json!({
        "data": causes.bytes(Cause::Data),
        "metadata": causes.bytes(Cause::Metadata),
        "padding": causes.bytes(Cause::Padding),
        "collection": causes.bytes(Cause::Collection),
        "wear_levelling": causes.bytes(Cause::WearLevelling),
    })
}

fn with_columns(mut json: Value, columns: Vec<(&'static str, Numbers)>) -> Answer {
    let mut index = Map::new();
    for (name, numbers) in &columns {
        let (kind, address, count) = numbers.place();
        index.insert((*name).to_owned(), json!([kind, address, count]));
    }
    json["columns"] = Value::Object(index);
    Answer { json: json.to_string().into_bytes(), _columns: columns }
}
