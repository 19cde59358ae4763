//! A victim policy of one's own for the flash translation layer, against greedy collection:
//! `cargo run --release --example translation_layer`.
//!
//! A disk of pages is overwritten at random, four fifths of the writes in a fifth of it. Printed is
//! how many pages are programmed for each that is written.

#[path = "../tests/support/mod.rs"]
mod support;

use sim::run::{run_cases, CaseInput, Mount, Policies, Setting};
use sim::units::Ns;
use sim::victim::{Candidate, Greedy, Victim, Why};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The best of a window of blocks that were written first, which time has emptied most: d-choices
/// among the oldest. A block's age is when this policy saw it first since it was erased.
#[derive(Clone, Debug, Default)]
struct OldAndEmpty {
    seen: BTreeMap<(u32, Option<u32>), u64>,
    next: u64,
}

/// One in so many candidates is looked at.
const WINDOW_DIVISOR: usize = 4;

impl Victim for OldAndEmpty {
    fn choose(&mut self, _: Ns, _: Why, blocks: &[Candidate]) -> Option<Candidate> {
        for block in blocks {
            self.seen.entry((block.block, block.erases)).or_insert_with(|| {
                self.next += 1;
                self.next
            });
        }
        let mut by_age: Vec<&Candidate> = blocks.iter().collect();
        by_age.sort_by_key(|block| self.seen[&(block.block, block.erases)]);
        let window = blocks.len().div_ceil(WINDOW_DIVISOR);
        by_age.into_iter().take(window).min_by_key(|block| block.live_bytes).copied()
    }
}

const PAGE_BYTES: u64 = 2048;
const BLOCKS: u32 = 128;
const SPARE_PERMILLE: u64 = 200;

/// The disk's pages; two blocks are in reserve.
fn shown_pages(block_pages: u64) -> u64 {
    (u64::from(BLOCKS) - 2) * block_pages * (1000 - SPARE_PERMILLE) / 1000
}

/// Pages programmed for a written page.
fn amplification(victim: Box<dyn Victim>, writes: u64) -> f64 {
    let (mut board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    board.partition.blocks = BLOCKS;
    let pages = shown_pages(u64::from(board.chip.pages_per_block));
    let begin = "flashbed-ops 1\nopen 0 partition rw,direct\n";
    let mut prepare = String::from(begin);
    for page in 0..pages {
        writeln!(prepare, "write 0 {} {PAGE_BYTES} 1 0", page * PAGE_BYTES).expect("a String");
    }
    prepare += "close 0\nprepared\n";
    let (mut body, mut state) = (String::from(begin) + "mark\n", 1_u64);
    for _ in 0..writes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
        let (draw, place) = (state >> 40, (state >> 20) % pages);
        let page = if draw % 5 < 4 { place / 5 } else { place };
        writeln!(body, "write 0 {} {PAGE_BYTES} 2 0", page * PAGE_BYTES).expect("a String");
    }
    let mount: Mount = format!("ftl,spare_permille={SPARE_PERMILLE}").parse().expect("a disk");
    let policies = Policies { victim: Some(victim), ..Policies::default() };
    let setting = support::setting(&board, &kernel, mount, &prepare);
    let setting = Setting { policies: &policies, ..setting };
    let case = CaseInput { read_ahead_kib: 0, body: &body, cuts: &[], gc_choices: &[] };
    let measured = run_cases(&setting, &[case]).remove(0).expect("it runs");
    measured.flash_programs as f64 / writes as f64
}

fn main() {
    println!("greedy         {:.2}", amplification(Box::new(Greedy), 60_000));
    println!("old-and-empty {:.2}", amplification(Box::<OldAndEmpty>::default(), 60_000));
}

#[test]
fn it_programs_no_less_than_it_is_given() {
    let own = amplification(Box::<OldAndEmpty>::default(), 20_000);
    assert!(own >= 1.0, "{own}");
}
