"""Recovers a database with SQLite from the files that the simulator has after a power cut.

The simulator knows which write each byte of a file comes from (`Survey`), and a recording has the
bytes that SQLite wrote (`Recording`, `written`); together they give the files. SQLite opens them
here, rolls back a hot journal and checks the database. An unreadable byte becomes 0xff: it was
never acknowledged, and SQLite's own checksums must detect it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import apsw

from flashbed.plan.sqlite.call_tables import checked, tables_of
from flashbed.plan.sqlite.recorder import DATABASE_PATH
from flashbed.plan.sqlite.vfs import Files, RecordingVfs
from flashbed.targets.base import Run, SurveyedDatabase, SurveyedFile

__all__ = ["recovered", "restored"]

UNREADABLE = 0xFF


def restored(found: Sequence[SurveyedFile], written: Mapping[int, tuple[int, bytes]]) -> Files:
    """The files that were found, with the bytes that SQLite wrote into them."""
    files: Files = {}
    for file in found:
        data = bytearray(file.size_bytes)
        for run in file.runs:
            end = run.offset_bytes + run.length_bytes
            data[run.offset_bytes : end] = _bytes_of(run, written)
        files[file.path] = data
    return files


def recovered(files: Files) -> SurveyedDatabase:
    """The database among the files, opened, recovered and checked; this changes the files."""
    vfs = RecordingVfs(files, "fsync", 0, measured=False)
    connection = None
    try:
        connection = apsw.Connection(
            f"/{DATABASE_PATH}", apsw.SQLITE_OPEN_READWRITE, vfs=vfs.vfs_name
        )
        list(connection.execute("PRAGMA locking_mode = EXCLUSIVE"))
        words = checked(connection)
        return SurveyedDatabase(DATABASE_PATH, 0, words, tables_of(connection))
    except apsw.Error as why:
        code = getattr(why, "result", apsw.SQLITE_ERROR)
        return SurveyedDatabase(DATABASE_PATH, -code, str(why), {})
    finally:
        if connection is not None:
            connection.close()
        vfs.unregister()


def _bytes_of(run: Run, written: Mapping[int, tuple[int, bytes]]) -> bytes:
    if run.what == "zero":
        return bytes(run.length_bytes)
    if not isinstance(run.what, tuple):
        return bytes([UNREADABLE]) * run.length_bytes
    offset, data = written[run.what[0]]
    start = run.offset_bytes - offset
    return data[start : start + run.length_bytes]
