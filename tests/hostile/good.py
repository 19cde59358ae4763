"""Good files of every format, whose values are bent, and how files are made of values."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, settings

from tests.hostile.calls import Call, Worker
from tests.hostile.toml_text import toml

EXAMPLES = int(os.environ.get("FLASHBED_FUZZ_EXAMPLES", "40"))
few = settings(
    max_examples=EXAMPLES,
    derandomize="FLASHBED_FUZZ_EXAMPLES" not in os.environ,
    database=None,
    deadline=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)

fewer = settings(few, max_examples=(EXAMPLES + 1) // 2)
"""Of calls that take longer."""

EXPERIMENT: dict[str, Any] = {
    "experiment": {"id": "t/x", "title": "t", "question": "q", "source": "s"},
    "workload": {
        "kind": "micro-read", "request_bytes": 4096, "file_bytes": 65_536, "settle_ns": 1_000_000,
    },
    "grid": [{
        "targets": ["sim"], "board": ["emulated-small"], "kernel": ["6.1"], "fs": ["jffs2"],
        "read_ahead_kib": [0, 128], "pattern": ["random"], "requests": [4], "seed": [1],
        "state": [{"valid": 0.2, "obsolete": 0.05, "worn": {"mean": 100, "spread": 10}}],
        "faults": [{"bad_blocks": [1]}], "advice": ["none"], "pause_ns": [0],
    }],
}  # fmt: skip
SQL: dict[str, Any] = {
    **EXPERIMENT,
    "workload": {"kind": "sqlite", "request_bytes": 100, "settle_ns": 1_000_000},
    "grid": [{
        "targets": ["sim"], "board": ["emulated"], "kernel": ["6.1"], "fs": ["ubifs"],
        "read_ahead_kib": [0], "pattern": ["script"], "requests": [1], "seed": [1],
        "database": [{"name": "mine", "script": "my.sql", "records": 10, "page_bytes": 1024}],
    }],
}  # fmt: skip
POSTMARK: dict[str, Any] = {
    **EXPERIMENT,
    "workload": {
        "kind": "postmark", "request_bytes": 512, "file_bytes": 5000, "settle_ns": 1_000_000,
        "script": "set number 5",
    },
    "grid": [{**EXPERIMENT["grid"][0], "pattern": ["all"], "requests": [5]}],
}  # fmt: skip
OPERATIONS = (
    "flashbed-ops 1", "mkdir d", "open 0 d/a rw,create", "write 0 0 4096 1 50", "fsync 0",
    "truncate 0 100", "close 0", "sync", "prepared", "drop_caches", "open 1 d/a rw", "mark",
    "read 1 0 100", "write 1 4096 8192 2 0", "fdatasync 1", "fadvise 1 0 0 random", "pause 1000000",
    "compute 100", "close 1", "rename d/a d/b", "unlink d/b", "rmdir d", "remount",
)  # fmt: skip
OPERATION_WORDS = tuple({word for line in OPERATIONS for word in line.split(" ")})
SCRIPT = (
    "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT) ;", "INSERT INTO t VALUES (1, 'x') ;",
    "-- measured", "SELECT * FROM t WHERE a = 1 ;", "UPDATE t SET b = 'y' ;", "DROP TABLE t ;",
)  # fmt: skip
SCRIPT_WORDS = (
    "ATTACH", "'/tmp/x'", "AS", "PRAGMA", "journal_mode", "=", "WAL", "VACUUM", "BEGIN", "COMMIT",
    "load_extension('x')", "zeroblob(1000000000)", "randomblob(-1)", "randomblob(10)", ";", "'",
    "WITH", "RECURSIVE", "writefile('x','y')", "(SELECT", "1)", "mmap_size", "CREATE", "t",
)  # fmt: skip
COUNTERS = (
    "ubi0: max/mean erase counter: 431/213, WL threshold: 4096",
    "Current maximum erase counter value: 500", "Total amount of logical eraseblocks: 2000",
    "physical_block_number erase_count", "0 10", "1 20", "2 30 good", "3 -1 bad",
)  # fmt: skip
STREAM = (
    "flashbed-trace 1", "info kernel 6.1", "flash 100 read 1 2 0 2048 7 cat",
    "vfs 100 20 read 5 0 4096 4096 7 cat file.bin", "func 100 20 jffs2_read 0 7 cat",
    "ecc 0 0 0", "lost 0", "end 0",
)  # fmt: skip
STREAM_WORDS = ("read", "erase", "vfs", "flash", "R;1;a", ";", "0.1;R;1;x", "-")
FLASHMON = ("0.100000;R;100;cat", "0.200000;W;101;cat", "0.300000;E;1;gc", "# comment")
LOAD = range(41, 60)
RECORDING = (
    "time_s,cpu_W,D0",
    *(
        f"{n / 100},{1 if 40 < n < 60 else 0.1 + n % 3 / 100},{int(40 < n < 60)}"
        for n in range(100)
    ),
)


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def toml_of(values: dict[str, Any]) -> bytes:
    return toml(values).encode()


def session(metadata: bytes, samples: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("version", "2")
        archive.writestr("metadata", metadata)
        archive.writestr("analog-1-3-1", samples)
        archive.writestr("logic-1-1", bytes(len(samples) // 4))
    return packed.getvalue()


METADATA = (
    "[device 1]", "samplerate=1 kHz", "total probes=2", "probe1=D0", "probe2=D1",
    "total analog=1", "analog3=A0", "unitsize=1",
)  # fmt: skip
LEVEL = np.where(np.arange(100) % 50 > 30, 1.0, 0.1).astype("<f4").tobytes()
"""A load of twenty samples, twice."""


def lines_of(lines: Sequence[str]) -> bytes:
    return "\n".join((*lines, "")).encode()


def check(worker: Worker, call: Call) -> None:
    finding = worker.finding(call)
    if finding is not None and "FLASHBED_FUZZ_LOG" in os.environ:
        with Path(os.environ["FLASHBED_FUZZ_LOG"]).open("a", encoding="utf-8") as log:
            print(f"finding: {call.arguments}: {finding!r}", file=log)
    assert finding is None, finding
