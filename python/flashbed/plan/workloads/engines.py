"""The SQLite paper's four requests through an engine's own interface: the workload `engines`.

An engine is a library with a C interface: SQLite, Berkeley DB or LMDB. `ENGINE-REQUEST` is a
pattern. A case replays the recording `PATTERN-REQUESTS-BYTES.parquet` of a folder; the program
behind it makes `requests` requests on records of `request_bytes`, all in one transaction
(experiments/engines/record).

Caches are dropped before the mark while another descriptor holds the database's inode, and the
program opens the database behind it. The processor's time between calls is replayed, from the first
call on. Waits are left out: no engine sleeps, so they are those of the machine that recorded.
"""

from __future__ import annotations

import itertools
from pathlib import Path

from flashbed.base.errors import InputError
from flashbed.base.paths import shown
from flashbed.plan.case import Case
from flashbed.plan.workloads.recorded_program import compressor_of, second_of, translated_for

__all__ = ["operations"]

FILE_OF = {"sqlite": "requests.sqlite", "berkeleydb": "requests.bdb", "lmdb": "requests.mdb"}
HOLDING_SLOT = 1023
"""The engines' files take the lowest."""
WAIT, WORK = "pause ", "compute "


def operations(case: Case, settle_ns: int, recordings: str) -> tuple[str, str]:
    """The case as (prepare, body), two flashbed-ops files. Raises `InputError`."""
    path = Path(recordings) / f"{case.pattern}-{case.requests}-{case.request_bytes}.parquet"
    if not path.is_file():
        raise InputError(
            f"{case.case_id}: no recording of {case.requests} requests of {case.request_bytes}"
            f" bytes, {shown(path)}"
        )
    compressors = compressor_of(case), second_of(case)
    prepare, body = translated_for(path, compressors, settle_ns, case.fs)
    header, *lines = body.splitlines()
    calls = itertools.dropwhile(lambda line: line.startswith((WAIT, WORK)), lines)
    held = FILE_OF[case.pattern.partition("-")[0]]
    replayed = (
        header, f"open {HOLDING_SLOT} {held} ro", "drop_caches", "mark",
        *(line for line in calls if not line.startswith(WAIT)), f"close {HOLDING_SLOT}",
    )  # fmt: skip
    return prepare, "".join(f"{line}\n" for line in replayed)
