"""Says what a file looks like that an import cannot take."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from flashbed.base.paths import shown
from flashbed.program.imports.lines import ImportedError, lines_of

__all__ = ["looks_like", "refuse_foreign"]

_LINES = 60
_LINE_BYTES = 2000
_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "compressed by gzip; decompress it first"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd; decompress it first"),
    (b"\xfd7zXZ", "compressed by xz; decompress it first"),
    (b"BZh", "compressed by bzip2; decompress it first"),
    (b"PK\x03\x04", "a zip archive; unpack it first"),
    (b"\xff\xfe", "text in UTF-16; convert it to UTF-8 first"),
    (b"\xfe\xff", "text in UTF-16; convert it to UTF-8 first"),
    (b"\x7fELF", "a program, not a trace of one"),
    (b"PERFILE2", "a file of perf record; perf sees no names of files"),
    (b"tracing", "a file of trace-cmd; it has no names of files"),
    (b"\x17\x08\x44tracing", "a file of trace-cmd; it has no names of files"),
    (b"SQLite format 3", "a database of SQLite"),
    (b"PAR1", "a Parquet file; a recording needs no import"),
    (b"flashbed-ops", "a file of operations; flashbed run takes it as it is"),
    (b"\x0a\x0d\x0d\x0a", "a capture of packets (pcapng) or of sysdig"),
    (b"\xd4\xc3\xb2\xa1", "a capture of packets (pcap)"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a picture"),
    (b"%!PS", "a PostScript file"),
)
_CALLS_OF_C = (
    rb"__libc_start_main|malloc|calloc|realloc|free|strlen|strcmp|strcpy|memcpy|memset|printf|puts|"
    rb"fprintf|fopen|fclose|fread|fwrite|fgets|setlocale|getenv|SYS_\w+|\w+\.so[.\d]*->\w+|"
    rb"\w+->__libc_start_main"
)
_PATTERNS: tuple[tuple[str, str, re.Pattern[bytes], int], ...] = (
    # kind of import or empty, what it looks like, a line of it, how many of the first are needed
    ("", "an ltrace, which has calls of libraries and not of the kernel; use strace",
     re.compile(rb"(?:\[pid \d+\] |\d+ +)?(?:[\d:.]+ +)?(?:" + _CALLS_OF_C + rb")\("), 2),
    ("", "a perf trace, which does not name the files of all calls; use strace",
     re.compile(rb" *\d+\.\d+ \( *(?:\d+\.\d+ ms|[? ]*) *\): "), 2),
    ("", "the output of perf script, which has no names of files; use strace",
     re.compile(rb" *\S.{0,30}? +\d+(?:/\d+)? +(?:\[\d+\] +)?\d+\.\d+: +(?:\d+ +)?\w+[:\w-]*:"), 2),
    ("", "a trace of ftrace, which has no names of files; use strace",
     re.compile(rb"# tracer: |# +TASK-PID|"
                rb".{0,40}-\d+ +(?:\(.{0,8}\) +)?\[\d{3}\] .{4,5} +\d+\.\d+: "), 1),
    ("", "a trace of dtruss or truss, whose calls are another kernel's",
     re.compile(rb"(?:PID/THRD +)?SYSCALL\(args\)|.*= \d+ \(0x[0-9a-f]+\)\s*\Z|.*\bErr#\d+ "
                rb"|.*\)\t\t = -?\d+ "), 1),
    ("", "a dump of ktrace, whose calls are another kernel's",
     re.compile(rb" *\d+ +\S+ +(?:CALL|NAMI|RET) "), 2),
    ("", "the output of sysdig; use strace", re.compile(rb"\d+ [\d:.]+ \d+ \S+ \(\d+\) [<>] "), 2),
    ("", "a summary of strace -c, without the calls",
     re.compile(rb"% time +seconds +usecs/call"), 1),
    ("", "a log of latencies, rates or bandwidths of fio, not of requests",
     re.compile(rb"\d+, *\d+, *[012], *\d+(?:, *\w+)*\s*\Z"), 2),
    ("", "the results of fio, not its job file",
     re.compile(rb"fio-\d+\.\d|.*\bIOPS=\d|\S+: \(g=\d+\): rw="), 1),
    ("fio-iolog", "a log of fio", re.compile(rb"fio version \d+ iolog"), 1),
    ("", "a trace in the format of the SPC, without names of files",
     re.compile(rb"\d+,\d+,\d+,[rRwW],\d+(?:\.\d+)?"), 2),
    ("", "a trace of blocks as CSV (MSR Cambridge), without names of files",
     re.compile(rb"\d{17,19},\w+,\d+,(?:Read|Write),\d+,\d+,\d+"), 2),
    ("", "a log of audit; use strace", re.compile(rb"(?:node=\S+ )?type=[A-Z_]+ msg=audit\("), 1),
    ("", "a log of Android",
     re.compile(rb"\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} +\d+ +\d+ [VDIWEF] "), 2),
    ("", "the output of iostat",
     re.compile(rb"Device:? +(?:tps|r/s|rrqm/s)|avg-cpu: +%user"), 1),
    ("strace", "a trace of strace",
     re.compile(rb"(?:\[pid +\d+\] |\d+ +)?(?:[\d:.]+ +)?[a-z_]\w+\(.*\) += (?:-?\d|0x|\?)"), 2),
    ("blktrace", "the text of blkparse",
     re.compile(rb"\s*\d+,\d+\s+\d+\s+\d+\s+\d+\.\d+\s+\d+\s+[A-Z]+\s+[A-Z]+"), 2),
    ("", "a summary of blktrace or blkparse, without the requests",
     re.compile(rb"=+ All Devices =+|CPU ?\d+ \(.+\):|Total \(.+\):| *CPU +\d+: +\d+ events"), 1),
    ("", "a workload of filebench", re.compile(rb"define (?:file|fileset|process|thread)\b"), 1),
    ("", "a parameter file of vdbench", re.compile(rb"(?:sd|wd|rd|fsd|fwd)=\w+,"), 2),
    ("", "a command line of fio; write its options into a job file, a line each",
     re.compile(rb"\s*(?:\$ *|sudo +)*(?:\S*/)?fio +-"), 1),
    ("fio-job", "a job file of fio",
     re.compile(rb"\[[^\]]+\]\s*\Z|(?:rw|readwrite|ioengine|iodepth|bs|numjobs)=\w"), 2),
    ("", "a page of HTML; save the text alone",
     re.compile(rb"\s*<(?:!DOCTYPE|html|\?xml)", re.I), 1),
    ("", "JSON", re.compile(rb"\s*[\[{]\s*(?:\"|\Z|[{\[])"), 1),
    ("", "a shell script", re.compile(rb"#!"), 1),
    ("", "CSV", re.compile(rb"[^,;\t]*(?:[,;\t][^,;\t]*){3,}\Z"), 5),
)  # fmt: skip
_SURE = 8
"""Patterns that no line of an import matches by accident."""


def _first(path: Path) -> list[bytes]:
    return [text[:_LINE_BYTES] for _, text in islice(lines_of(path), _LINES)]


def looks_like(path: Path, *, sure: bool = False) -> tuple[str, str] | None:
    """The kind of import that takes a file, or an empty text, and what it looks like."""
    lines = _first(path)
    if not lines or not any(lines):
        return "", "empty"
    for beginning, what in _BEGINNINGS:
        if lines[0].startswith(beginning):
            return "", what
    if lines[0].startswith(_BLKTRACE):
        return "blktrace", "a binary blktrace"
    for kind, what, pattern, needed in _PATTERNS[: _SURE if sure else None]:
        if sum(bool(pattern.match(line)) for line in lines) >= needed:
            return kind, what
    return next(_other(lines), None) if not sure else None


_BLKTRACE = (*(bytes((version,)) + b"tae" for version in range(1, 16)), b"eat")


def _other(lines: list[bytes]) -> Iterator[tuple[str, str]]:
    text = b"\n".join(lines)
    if b"\0" in text:
        yield "", "a binary file of an unknown kind"


def refuse_foreign(path: Path, kind: str, *, sure: bool = False) -> None:
    """Raises `ImportedError` if a file looks like something else than this kind of import takes."""
    found = looks_like(path, sure=sure)
    if found is None or found[0] == kind:
        return
    other, what = found
    hint = f"; flashbed import {other} takes it" if other else ""
    raise ImportedError(f"{shown(path)}: {what}{hint}")
