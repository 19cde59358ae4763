"""What each column of each table holds, a sentence each; docs/reference/tables.md is made of it.

columns.py has the types. A unit is the end of a column's name. Null is not known, in every column.
"""

from __future__ import annotations

from collections.abc import Mapping

from flashbed.plan.case import AXES

__all__ = ["COLUMN_MEANINGS", "ROWS"]

ROWS: Mapping[str, str] = {
    "cases": "one case on one target",
    "requests": "one measured operation",
    "flash": "one flash operation, with `--trace flash`",
    "vfs": "one event at the VFS, of a trace",
    "functions": "one call of a traced kernel function",
    "wear": "one block of the partition, with `--trace wear`",
    "not_measured": "one case for which a target lacks something",
    "power_cuts": "one power cut",
    "cut_files": "one file of the program after one power cut, of those that some cut changed",
}
"""Table -> what a row of it is."""

_KEY = {
    "case_id": "Name of the case, the same on every target.",
    "target": "Target that measured it: `sim`, `uml`, `emulator`, `ssh://…`.",
}
_AXES = {axis: f"Axis: {about.means}." for axis, about in AXES.items()}
_ONLY_SIM = "In the simulator only."
_WHY = {
    "bytes_data": "Bytes to the flash of what programs wrote, as it is stored",
    "bytes_metadata": "The same of headers, inodes, names, index, logs, summaries, UBI's headers",
    "bytes_padding": "The same of the rest of pages that could not wait",
    "bytes_collection": "The same of what garbage collection moved",
    "bytes_wear_levelling": "The same of what UBI's thread moved",
}
_OPERATIONS = {
    "reads": "Page reads",
    "programs": "Page writes",
    "erases": "Erases of blocks",
}

COLUMN_MEANINGS: Mapping[str, Mapping[str, str]] = {
    "cases": {
        **_KEY,
        "experiment": "The experiment, STUDY/NAME.",
        **_AXES,
        "read_ahead_kib": "Axis: window of read-ahead, KiB; 0 is off.",
        "window": "Who chose the read-ahead window: `forced`, or the kernel by `default`.",
        "state_valid": "Share of the partition that files used after the preparation, by `df`.",
        "state_invalid": "Share of the partition that obsolete data used after the preparation.",
        "time_ns": "Time in calls: latencies of the measured operations, without `pause`.",
        "time_unknown": "Why the time is not known: a compressor without a price.",
        "flash_time_ns": "Chip busy: time of the chip's array and bus in measured operations.",
        "elapsed_ns": "Elapsed: from the start of measuring to the end, pauses included.",
        "bytes": "Bytes that reads, writes, copies, sends and stores moved.",
        "bytes_written": "Bytes that writes and copies moved, and of pages that became dirty"
        " through a mapping. This and `bytes`: null where SQLite ran on a board.",
        "failed": "Calls that failed: a negative result that is no answer, or a short write.",
        "failed_errno": "How many by errno: `ENOSPC 11257, short 2`.",
        **{f"flash_{name}": f"{what}, until the end of the case."
           for name, what in _OPERATIONS.items()},
        **{name: f"{what}. {_ONLY_SIM}" for name, what in _WHY.items()},
        **{f"flush_{name}": f"{what} for what was left in cache, by a sync after the end."
           for name, what in _OPERATIONS.items()},
        **{f"flush_{name}": f"`{name}` of what was left in cache." for name in _WHY},
        "left_bytes": f"Bytes that `df` calls available after that sync. {_ONLY_SIM}",
        "cache_hits": "Pages read that were in the page cache.",
        "cache_misses": "Pages read that were not.",
        "cache_adds": "Pages brought into the page cache, requested by a call or not.",
        "energy_convention": "What the next three columns are of: `paper` or `supply`.",
        "energy_nj": "Energy above idle of the case, by that convention.",
        "energy_cpu_nj": "Its part on the CPU's rail; null with `supply`.",
        "energy_mem_nj": "Its part on the rail of RAM and flash; null with `supply`.",
        "component_cpu_busy_nj": "Energy of the CPU outside the driver.",
        "component_cpu_driver_nj": "The CPU within the driver.",
        "component_memory_nj": "Memory, for the bytes that programs moved.",
        "component_flash_read_nj": "The chip's array, for page reads.",
        "component_flash_program_nj": "The same, for page writes.",
        "component_flash_erase_nj": "The same, for erases.",
        "component_bus_nj": "Moving pages between chip and controller.",
        "erase_count_max": "Most erases of a block so far; of real kernels with `--trace wear`.",
        "erase_count_mean": "The mean, likewise.",
        "bad_blocks": "Bad blocks of the partition in the end.",
        "ecc_corrected": "Bits that ECC corrected while measuring.",
        "ecc_failed": "ECC steps that could not be corrected.",
        "flashbed_version": "Version of flashbed.",
        "commit": "Commit of flashbed's tree, where it is a checkout.",
        "board_sha256": "Hash of the board's profile, with this case's overrides.",
        "kernel_sha256": "Hash of the kernel's profile.",
        "experiment_sha256": "Hash of the experiment's file.",
        "kernel_release": "`uname -r` of the kernel that ran.",
    },
    "requests": {
        **_KEY,
        "seq": "Its number among the measured ones, from 0.",
        "op": "Name of the operation.",
        "file": "File that it is of.",
        "offset_bytes": "Where in the file it begins.",
        "length_bytes": "How many bytes it requested.",
        "start_ns": "When it began, since measuring started.",
        "latency_ns": "How long it took; null on `uml`, where code takes no time.",
        "flash_time_ns": "Time that the chip's array and bus were busy in it.",
        "result": "What it returned: bytes, rows, or -errno; of `sql` SQLite's code, negative.",
        "content_crc32": "CRC-32 (IEEE 802.3) of the bytes that a read returned, if requested.",
        "changes": "Page writes and erases until it had returned, if recorded.",
        "statement_kind": "First word of an SQL statement.",
        "error": "SQLite's message, where a statement failed.",
        "own_flash_ns": "How long the chip was busy with its own page reads and page writes. This"
        " and what follows: with `--trace waits`, in the simulator.",
        "write_back_ns": "How long it waited for write-back.",
        "read_ahead_ns": "For pages that no call had requested yet.",
        "commit_ns": "For a commit of UBIFS or a checkpoint of YAFFS2.",
        "collection_ns": "For garbage collection.",
        "wear_levelling_ns": "For blocks that UBI moved.",
        "erase_ns": "For erases.",
    },
    "flash": {
        **_KEY,
        "seq": "Number of the flash operation, from 0.",
        "start_ns": "When it began, since measuring started.",
        "kind": "`read`, `program` or `erase`.",
        "block": "Block, counted from the start of the chip.",
        "page": "Page, counted from the start of the chip.",
        "offset_bytes": "Column of the command's first data move; 0 for a whole page.",
        "length_bytes": "Bytes of the first data move, without an OOB that follows; of an erase the"
        " block.",
        "task": "Task of the kernel that did it.",
        "duration_ns": "How long the chip was busy; null where only kprobes see the flash.",
    },
    "vfs": {
        **_KEY,
        "start_ns": "When it began, since the trace began.",
        "duration_ns": "How long it took; null for `cache-add` and `cache-delete`.",
        "kind": "`read`, `write`, `fsync`, `fdatasync`, `readahead`, `writeback`, `cache-add`,"
        " `cache-delete`.",
        "file": "Last part of the file's name, where the tracer can read it.",
        "inode": "Number of the inode.",
        "offset_bytes": "Where in the file it begins.",
        "length_bytes": "How many bytes were requested.",
        "result": "What the call returned.",
        "task": "Task that did it.",
    },
    "functions": {
        **_KEY,
        "function": "Name of the kernel function.",
        "start_ns": "When the call began, since the trace began.",
        "duration_ns": "How long it took, with what it called and what probes cost.",
        "result": "What it returned.",
        "task": "Task that called it.",
    },
    "wear": {
        **_KEY,
        "block": "Block, counted from the start of the chip.",
        "erases": "Erases so far, with those that the state set; making the file system has none.",
        "erases_measured": "Erases since measuring started.",
        "state": "`good`, `bad` or `worn`.",
        "erases_flush": "Erases by the sync after the last operation.",
    },
    "not_measured": {
        **_KEY,
        "reason": "What the target lacks.",
    },
    "power_cuts": {
        **_KEY,
        "change": "Change to the chip, counted from the start of measuring, in which power failed.",
        "acknowledged_files": "Names that a sync that had returned had acknowledged.",
        "kept_files": "Acknowledged names with nothing wrong; null where it was not mounted.",
        "lost_files": "Acknowledged names that are lost; null where it was not mounted.",
        "mounted": "Whether the file system could be mounted.",
        "mount_time_ns": "How long mounting took, with attaching UBI.",
        "verdict": "`recovered`, `not mounted`, `lost`, `corrupt` or `unusable`.",
        "reason": "The first path of that kind, and what is wrong with it.",
        "lost_transactions": "Of a database: transactions that had returned and are gone.",
        "program_files": "Files that the program had changed and finished before the cut.",
        "damaged_files": "Of these, those that are `empty`, `mixed` or `missing`.",
    },
    "cut_files": {
        **_KEY,
        "change": "Change to the chip, counted from the start of measuring, in which power failed.",
        "file": "Path of the file.",
        "state": "`new`, `old`, `empty`, `mixed` or `missing`, compared with what the program had"
        " finished; `not judged` of SQLite's.",
        "lost_ns": "Time of work on the file that is gone at most; null where it is no time.",
        "kept_by": "The call that would have kept it.",
    },
}  # fmt: skip
"""Table -> column -> what it holds; columns in the order of columns.py."""
