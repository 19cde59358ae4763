"""A process that reads foreign Parquet files and writes their contents as files of its own.

Polars' reader can abort: a damaged size of 2^61 bytes ends the process, which Python cannot catch.
Here it ends a process that does nothing else. `copies.py` starts it and sends it files.
"""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import select
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from flashbed.base.files import refusal

__all__ = ["MEMORY_BYTES", "PLAIN", "ROW_GROUP_ROWS", "main", "sink"]

ROW_GROUP_ROWS = 1 << 16
MEMORY_BYTES = 8 << 30
"""Limits of a table: 4 GiB of numbers, and 4 GiB of text."""
PLAIN = frozenset(
    (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32,
     pl.Float64, pl.Boolean, pl.String, pl.Binary, pl.Null)
)  # fmt: skip
"""Types of columns that are copied. No table of flashbed's has another."""
_NOT_OF_THE_FILE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOMEM)
_POLLRDHUP = 0x2000
_REASON_CHARACTERS = 1000


def sink(rows: pl.LazyFrame, file: str | os.PathLike[str]) -> None:
    """Writes Parquet. Equal rows give equal bytes, whatever their pieces."""
    rows.sink_parquet(
        os.fspath(file), compression="zstd", compression_level=1, row_group_size=ROW_GROUP_ROWS
    )


def _copied(source: int, new: int) -> Mapping[str, str]:
    """Copies one file. The answer is empty, or has a reason under `damaged` or `system`."""
    try:
        rows = pl.scan_parquet(f"/proc/self/fd/{source}", glob=False)
        odd = [name for name, kind in rows.collect_schema().items() if kind not in PLAIN]
        if odd:
            return {"damaged": f"{odd[0]}: a column of another kind"}
        sink(rows, f"/proc/self/fd/{new}")
    except BaseException as why:  # a panic of Polars is no `Exception`
        found = re.search(r"\(os error (\d+)\)", str(why))
        if found and int(found[1]) in _NOT_OF_THE_FILE:
            return {"system": os.strerror(int(found[1]))}
        refused = refusal(Path(f"/proc/self/fd/{new}"))
        if refused:
            return {"system": refused}
        if not isinstance(why, Exception):
            # Its text is about code: "internal error: entered unreachable code".
            return {"damaged": "Polars gave up in the middle of it"}
        return {"damaged": str(why)[:_REASON_CHARACTERS]}
    return {}


def _end_with(asker: socket.socket) -> None:
    """Ends this process when the other one has ended, also during a copy."""
    waiting = select.poll()
    waiting.register(asker, _POLLRDHUP)
    waiting.poll()
    os._exit(0)


def main() -> None:
    """Receives two files with each byte, and copies the first to the second."""
    asker = socket.socket(fileno=int(sys.argv[1]))
    threading.Thread(target=_end_with, args=(asker,), daemon=True).start()
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    asker.sendall(b"{}\n")
    while True:
        _, files, _, _ = socket.recv_fds(asker, 1, 2)
        if len(files) != 2:
            return
        answer = _copied(*files)
        for file in files:
            os.close(file)
        asker.sendall(json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
