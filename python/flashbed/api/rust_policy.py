"""A policy in Rust: a program of the user's own that links the simulator (policies/README.md).

`begin` writes a folder with a policy that works, the programs of `policy check`, and a stack's
profiles as the simulator reads them. `cargo run` in it compares the policy with the kernel's rule.
"""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

from flashbed.api.policy_check import WINDOW_KIB, check_program, settings_of
from flashbed.base import paths
from flashbed.base.errors import InputError
from flashbed.base.files import begin_file
from flashbed.plan.stacks import one_stack
from flashbed.stack.file_systems import FILE_SYSTEMS

__all__ = ["begin"]

_SEED = 1
_POLICIES = {
    "victim": (
        "use sim::units::Ns;\nuse sim::victim::{Candidate, Victim, Why};",
        """
        /// Takes the block with the least to move.
        #[derive(Clone, Debug)]
        struct Own;

        impl Victim for Own {
            fn choose(&mut self, _: Ns, _: Why, blocks: &[Candidate]) -> Option<Candidate> {
                let dirty = blocks.iter().filter(|block| block.dirty_bytes > 0);
                dirty.min_by_key(|block| block.live_bytes).copied()
            }
        }
        """,
    ),
    "read_ahead": (
        "use sim::vfs::readahead::{Asked, ReadAhead, Window};",
        """
        /// Reads what the call wants, and nothing else.
        #[derive(Clone, Debug)]
        struct Own;

        impl ReadAhead for Own {
            fn on_miss(&mut self, asked: Asked<'_>) -> Option<Window> {
                Some(Window { start: asked.page, pages: asked.wanted, marker: None })
            }
        }
        """,
    ),
    "reclaim": (
        "use sim::vfs::reclaim::{CachedPages, Reclaim, Reclaimed, Shortage};",
        """
        /// Frees the pages whose last use is the oldest.
        #[derive(Clone, Debug)]
        struct Own;

        impl Reclaim for Own {
            fn choose(&mut self, short: Shortage, pages: &CachedPages<'_>) -> Reclaimed {
                let free = pages.oldest_first().take(short.wanted).collect();
                Reclaimed { free, ..Reclaimed::default() }
            }
        }
        """,
    ),
}
_MAIN = """\
//! A policy of your own against the kernel's rule, on each file system: `cargo run --release`.

{uses}
use sim::run::{{run_cases, CaseInput, Measured, Policies, Recorded, Setting}};
{policy}
const BOARD: &str = include_str!("../stack/board.json");
const KERNEL: &str = include_str!("../stack/kernel.json");
const PREPARE: &str = include_str!("../stack/prepare.ops");
const BODY: &str = include_str!("../stack/body.ops");

fn run(fs: &str, policies: &Policies) -> Measured {{
    let board = serde_json::from_str(BOARD).expect("a board");
    let kernel = serde_json::from_str(KERNEL).expect("a kernel");
    let fs = fs.parse().expect("a file system");
    let recorded = Recorded::default();
    let setting =
        Setting {{ board: &board, kernel: &kernel, fs, policies, prepare: PREPARE, recorded }};
    let case = CaseInput {{ read_ahead_kib: {window_kib}, body: BODY, cuts: &[], gc_choices: &[] }};
    run_cases(&setting, &[case]).remove(0).unwrap_or_else(|error| panic!("{{error}}"))
}}

fn main() {{
    let own = Policies {{ {decision}: Some(Box::new(Own)), ..Policies::default() }};
    println!("{{:8}} {{:>8}} {{:>8}} {{:>8}}", "", "reads", "writes", "erases");
    for fs in {file_systems} {{
        for (name, policies) in [("kernel", Policies::KERNELS), ("own", &own)] {{
            let Measured {{ flash_reads: reads, flash_programs: writes, flash_erases, .. }} =
                run(fs, policies);
            println!("{{fs:8}} {{reads:>8}} {{writes:>8}} {{flash_erases:>8}}  {{name}}");
        }}
    }}
}}
"""
_CARGO = """\
[package]
name = {name}
version = "0.1.0"
edition = "2021"

[dependencies]
serde_json = "1"
sim = {{ package = "flashbed-sim", path = {sim} }}

[workspace]
"""


def begin(folder: Path, decision: str) -> None:
    """Writes the folder. Raises `InputError` if it has such files, or without a checkout."""
    simulator = paths.root() / "sim"
    if not (simulator / "Cargo.toml").is_file():
        raise InputError("--rust: needs a checkout of flashbed, whose folder sim/ it links")
    uses, policy = _POLICIES[decision]
    stack = one_stack(settings_of(decision))
    prepare, body = check_program(decision, _SEED)
    files = {
        "Cargo.toml": _CARGO.format(
            name=json.dumps(folder.name.replace("_", "-")), sim=json.dumps(str(simulator))
        ),
        "src/main.rs": _MAIN.format(
            uses=uses,
            policy=dedent(policy),
            decision=decision,
            window_kib=WINDOW_KIB,
            file_systems=json.dumps(list(FILE_SYSTEMS)),
        ),
        "stack/board.json": stack.board.sim_json,
        "stack/kernel.json": stack.kernel.sim_json,
        "stack/prepare.ops": prepare,
        "stack/body.ops": body,
    }
    for name, text in files.items():
        begin_file(folder / name, text)
