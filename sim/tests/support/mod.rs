//! Shared by tests and benches: the repository's profiles, and the read benchmark's programs.

#![allow(dead_code)]

pub mod powercut;
pub mod writes;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use sim::content::{Contents, Source};
use sim::fs::{Grabbed, Ino, PageCache};
use sim::profile::{BoardProfile, KernelFacts, SoftwareCosts};
use sim::run::{run_cases, CaseInput, KernelProfile, Measured, Mount, Policies, Recorded, Setting};
use sim::units::Ns;
use std::fmt::Write;
use std::sync::OnceLock;

/// A table of a profile without its fields for people.
fn table(profile: &toml::Table, name: &str) -> Value {
    let mut value = serde_json::to_value(&profile[name]).expect("TOML is JSON");
    let entries = value.as_object_mut().expect("a table");
    for text in ["source", "name", "title", "targets"] {
        entries.remove(text);
    }
    // the choices of a mount, which python/flashbed/stack/profiles.py applies, and what it refuses
    for key in ["compr_option", "mlc_refused_by"] {
        entries.remove(key);
    }
    if name == "kernel" {
        entries.remove("slc_mode");
    }
    if let Some(compressors) = entries.get_mut("compressors").and_then(Value::as_object_mut) {
        compressors.remove("included"); // likewise
    }
    if let Some(Value::Array(names)) = entries.remove("not_known") {
        for name in names.iter().filter_map(Value::as_str) {
            let (folders, key) = name.rsplit_once('.').unwrap_or(("", name));
            let mut inner = &mut *entries;
            for folder in folders.split('.').filter(|folder| !folder.is_empty()) {
                inner = inner[folder].as_object_mut().expect("a table");
            }
            inner.insert(key.to_owned(), Value::from(0));
        }
    }
    value
}

fn read(path: &str) -> toml::Table {
    let path = format!("{}/../boards/{path}.toml", env!("CARGO_MANIFEST_DIR"));
    #[allow(clippy::disallowed_methods, clippy::disallowed_types)]
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.parse().expect("TOML")
}

/// The tables of a board's file that the simulator reads.
pub const OF_BOARD: [&str; 5] = ["chip", "ecc", "partition", "memory", "software"];
/// The tables of a kernel's file that it reads.
pub const OF_KERNEL: [&str; 4] = ["kernel", "readahead", "jffs2", "ubifs"];

/// The tables of boards/PATH.toml as Python passes them.
pub fn values(path: &str, tables: &[&str]) -> Value {
    let profile = read(path);
    let tables = tables.iter().map(|&name| (name.to_owned(), table(&profile, name)));
    Value::Object(tables.collect::<Map<_, _>>())
}

fn load<T: DeserializeOwned>(path: &str, tables: &[&str]) -> T {
    serde_json::from_value(values(path, tables)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// boards/NAME.toml.
pub fn board(name: &str) -> BoardProfile {
    load(name, &OF_BOARD)
}

/// The emulated board with a chip of 512-byte pages: 16 KiB blocks, software ECC.
pub fn small_pages() -> BoardProfile {
    let mut board = board("emulated");
    (board.chip.page_bytes, board.chip.oob_bytes) = (512, 16);
    board.chip.pages_per_block = 32;
    board
}

fn set_to_zero(costs: &mut Value) {
    match costs.as_object_mut() {
        Some(table) => table.values_mut().for_each(set_to_zero),
        None => *costs = Value::from(0),
    }
}

/// Software that costs nothing.
pub fn free_software() -> SoftwareCosts {
    let mut costs = table(&read("emulated"), "software");
    set_to_zero(&mut costs);
    serde_json::from_value(costs).expect("the same table")
}

/// boards/kernels/NAME.toml.
pub fn kernel(name: &str) -> KernelProfile {
    load(&format!("kernels/{name}"), &OF_KERNEL)
}

/// The configuration of Debian's 6.1.
pub fn facts() -> KernelFacts {
    kernel("6.1").kernel
}

/// The content of a file of random bytes.
pub fn random() -> &'static Contents {
    static RANDOM: OnceLock<Contents> = OnceLock::new();
    RANDOM.get_or_init(|| {
        let mut contents = Contents::default();
        contents.write(0, 1 << 30, Source { seed: 1, compressibility: 0 });
        contents
    })
}

/// A page cache without pages, of files of random bytes.
pub struct NoPages;

impl PageCache for NoPages {
    fn read_cache_page(&mut self, _ino: Ino, _page: u32) -> bool {
        true
    }

    fn grab_page(&mut self, _ino: Ino, _page: u32) -> Grabbed {
        Grabbed::Empty
    }

    fn clear_uptodate(&mut self, _ino: Ino, _page: u32) {}

    fn find_page(&self, _ino: Ino, _page: u32) -> Option<bool> {
        None
    }

    fn clear_dirty(&mut self, _ino: Ino, _page: u32) {}

    fn truncate_setsize(&mut self, _ino: Ino, _size_bytes: u64) {}

    fn mark_inode_dirty(&mut self, _now: Ns, _ino: Ino, _size: bool) {}

    /// Random bytes everywhere.
    fn contents(&self, _ino: Ino) -> &Contents {
        random()
    }
}

/// A file written in order by 4 KiB writes, synced, and ten seconds of idling.
pub fn written_file(file_bytes: u64) -> String {
    let mut text = String::from("flashbed-ops 1\nopen 0 file.bin rw,create\n");
    for offset in (0..file_bytes).step_by(4096) {
        writeln!(text, "write 0 {offset} 4096 1 0").expect("a String");
    }
    text + "fsync 0\nclose 0\nsync\npause 10000000000\nprepared\n"
}

/// 4 KiB reads of these pages after dropping caches.
pub fn page_reads(pages: &[u64]) -> String {
    let mut text = String::from("flashbed-ops 1\ndrop_caches\nopen 0 file.bin ro\nmark\n");
    for page in pages {
        writeln!(text, "read 0 {} 4096", page * 4096).expect("a String");
    }
    text
}

/// Records requests, and nothing of the flash.
pub const REQUESTS: Recorded = Recorded {
    requests: true,
    flash: false,
    wear: false,
    flush: false,
    live: false,
    layers: false,
    waits: false,
};
/// Also records flash operations.
pub const TRACED: Recorded = Recorded { flash: true, ..REQUESTS };

/// Cases after one preparation, with recorded operations.
pub fn setting<'a>(
    board: &'a BoardProfile,
    kernel: &'a KernelProfile,
    fs: impl Into<Mount>,
    prepare: &'a str,
) -> Setting<'a> {
    Setting {
        board,
        kernel,
        fs: fs.into(),
        policies: Policies::KERNELS,
        prepare,
        recorded: REQUESTS,
    }
}

/// Runs one body after one preparation.
pub fn run(
    board: &BoardProfile,
    kernel: &KernelProfile,
    fs: impl Into<Mount>,
    prepare: &str,
    read_ahead_kib: u32,
    body: &str,
) -> Measured {
    let setting = setting(board, kernel, fs, prepare);
    let case = CaseInput { read_ahead_kib, body, cuts: &[], gc_choices: &[] };
    let result = run_cases(&setting, &[case]).remove(0);
    result.unwrap_or_else(|error| panic!("{error}"))
}
