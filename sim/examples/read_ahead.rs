//! A read-ahead of one's own, against the kernel's: `cargo run --example read_ahead`.
//!
//! It reads what the call wants, and twice the last window where a file is read in order.

#[path = "../tests/support/mod.rs"]
mod support;

use sim::run::{run_cases, CaseInput, FsKind, Policies, Setting};
use sim::vfs::readahead::{Asked, ReadAhead, Window};

#[derive(Clone, Debug)]
struct Doubling;

impl ReadAhead for Doubling {
    fn on_miss(&mut self, asked: Asked<'_>) -> Option<Window> {
        let (page, last) = (asked.page, &mut *asked.state);
        let in_order = page == last.start + last.size;
        let doubled = if in_order { 2 * last.size } else { 0 };
        let pages = asked.wanted.max(doubled).min(last.max_pages);
        (last.start, last.size) = (page, pages);
        Some(Window { start: page, pages, marker: None })
    }
}

/// Pages of the flash that 256 reads of 4 KiB take, on JFFS2 with a window of 128 KiB.
fn flash_reads(policies: &Policies, pages: &[u64]) -> u64 {
    let (board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    let prepare = support::written_file(5 << 20);
    let setting = support::setting(&board, &kernel, FsKind::Jffs2, &prepare);
    let setting = Setting { policies, ..setting };
    let body = support::page_reads(pages);
    let case = CaseInput { read_ahead_kib: 128, body: &body, cuts: &[], gc_choices: &[] };
    run_cases(&setting, &[case]).remove(0).expect("it runs").flash_reads
}

fn main() {
    let own = Policies { read_ahead: Some(Box::new(Doubling)), ..Policies::default() };
    let in_order: Vec<u64> = (0..256).collect();
    let apart: Vec<u64> = (0..256).map(|number| number * 389 % 1280).collect();
    println!("{:<10} {:>8} {:>9}", "pages", "kernel's", "Doubling");
    for (name, pages) in [("in order", &in_order), ("apart", &apart)] {
        let (kernels, doubling) = (flash_reads(Policies::KERNELS, pages), flash_reads(&own, pages));
        println!("{name:<10} {kernels:>8} {doubling:>9}");
    }
}

#[test]
fn it_reads_less_than_the_kernels_where_pages_are_apart() {
    let own = Policies { read_ahead: Some(Box::new(Doubling)), ..Policies::default() };
    let apart: Vec<u64> = (0..64).map(|number| number * 389 % 1280).collect();
    assert!(flash_reads(&own, &apart) < flash_reads(Policies::KERNELS, &apart));
}
