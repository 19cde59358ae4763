"""Records a trace: of a case on a target, or of a command wherever an agent can run.

A `TracingPlace` runs a command under the agent's tracers: this machine, or a board over ssh. While
it is traced, the emulated board's chip waits busily, so that a probe sees a command when the chip
does. If the chip is our own, its log has the
duration of each operation.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import polars as pl

from flashbed.base import paths
from flashbed.base.errors import InputError, RunError
from flashbed.base.files import read_bytes
from flashbed.bench.tracing.flashmon_log import read_log
from flashbed.bench.tracing.trace import LongTrace, Trace, TraceFacts, TracingCost, empty
from flashbed.results.run_directory import conform
from flashbed.targets.base import Batch, Program, RunOptions, Target
from flashbed.targets.guest.agent import agent_file
from flashbed.targets.guest.trace_rows import HEADER, Rows, read_rows, read_stream
from flashbed.targets.long_rows import LongRows

__all__ = [
    "ThisMachine",
    "TraceOptions",
    "TracingPlace",
    "trace_case",
    "trace_command",
    "trace_of_file",
]

STREAM_BYTES_MAX = 2 << 30

CUT_OFF = 255
"""Exit status of a place whose connection dropped (ssh's). What arrived is kept."""
_SAME = ("kind", "block", "page")


@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """What to trace, and how."""

    flash: bool = False
    vfs: bool = False
    functions: tuple[str, ...] = ()
    points: str | None = None
    buffer_kib: int | None = None

    @property
    def words(self) -> str:
        """A job's `trace` line; empty if nothing needs probes."""
        words = ["flash"] if self.flash else []
        words += ["vfs"] if self.vfs else []
        words += [f"func={name}" for name in self.functions]
        words += [f"points={self.points}"] if self.points else []
        words += [f"buffer_kib={self.buffer_kib}"] if self.buffer_kib else []
        return " ".join(words)

    @property
    def arguments(self) -> list[str]:
        """Arguments of `flashbed-agent trace`."""
        arguments = ["--flash"] if self.flash else []
        arguments += ["--vfs"] if self.vfs else []
        arguments += [part for name in self.functions for part in ("--func", name)]
        arguments += ["--points", self.points] if self.points else []
        arguments += ["--buffer-kib", str(self.buffer_kib)] if self.buffer_kib else []
        return arguments


class TracingPlace(Protocol):
    """A machine on which the agent can run."""

    name: str

    def agent(self, arguments: Sequence[str]) -> tuple[str, int]:
        """Runs the agent; returns its standard output, as far as it came, and its exit status.

        Its standard error, which carries the traced command's output, is shown as it arrives.
        Raises `Unavailable` if the agent cannot run at all.
        """
        ...


class ThisMachine:
    """The machine that flashbed runs on."""

    name = "host"

    def __init__(self, program: Path | None = None) -> None:
        self.program = program

    def agent(self, arguments: Sequence[str]) -> tuple[str, int]:
        """See `TracingPlace.agent`."""
        program = self.program or agent_file("host")
        with subprocess.Popen([program, *arguments], stdout=subprocess.PIPE) as child:
            try:
                output = child.communicate()[0]
            except KeyboardInterrupt:
                # The terminal has interrupted the agent too, which finishes its trace.
                output = child.communicate()[0]
        return output.decode("utf-8", "replace"), child.returncode


def trace_command(
    place: TracingPlace, command: Sequence[str], options: TraceOptions, seconds: float | None
) -> Trace:
    """Traces a command, or everything for some seconds. Raises `RunError`, `Unavailable`."""
    limit = ["--seconds", f"{seconds:g}"] if seconds else []
    arguments = ["trace", *options.arguments, *limit, *(["--", *command] if command else [])]
    text, status = place.agent(arguments)
    cut_off = status == CUT_OFF and "\ninfo " in text
    if not text or (status and "\nlost " not in text and not cut_off):
        raise RunError(f"{place.name}: tracing failed (status {status} of the agent)")
    return _trace(read_stream(text), " ".join(command) or "everything", place.name)


def trace_of_file(path: Path) -> Trace:
    """Reads a board's stream, or Flashmon's own log. Raises `InputError`, `RunError`."""
    text = read_bytes(path, STREAM_BYTES_MAX).decode("utf-8", "replace")
    if text.startswith(HEADER):
        try:
            return _trace(read_stream(text), path.name, "board")
        except RunError as why:
            raise InputError(f"{paths.shown(path)}: {why}") from None
    log = read_log(path).with_columns(
        pl.lit(path.name).alias("case_id"), pl.lit("board").alias("target")
    )
    none = {name: empty(name) for name in ("requests", "vfs", "functions")}
    return Trace(facts=TraceFacts(name=path.name, target="board"), flash=log, **none)


def _trace(rows: Rows, name: str, target: str) -> Trace:
    """A trace of a stream's rows."""
    found = {"flash": rows.flash, "vfs": rows.vfs, "functions": rows.functions}
    named = (pl.lit(name).alias("case_id"), pl.lit(target).alias("target"))
    tables = {table: conform(frame.with_columns(named), table) for table, frame in found.items()}
    facts = replace(_facts(rows, name, target), status=rows.status)
    return Trace(facts=facts, requests=empty("requests"), **tables)


def _facts(rows: Rows, name: str, target: str) -> TraceFacts:
    def number(key: str) -> int | None:
        return int(rows.info[key]) if key in rows.info else None

    return TraceFacts(
        name=name,
        target=target,
        kernel=rows.info.get("kernel"),
        page_bytes=number("page_bytes"),
        pages_per_block=number("pages_per_block"),
        lost=rows.lost,
        ecc=rows.ecc,
        info={key: rows.info[key] for key in sorted(rows.info)},
    )


def trace_case(
    target: Target,
    program: Program,
    options: TraceOptions,
    *,
    probes: bool,
    cost: bool,
    progress: Callable[[str, int], None],
) -> Trace:
    """Traces a case, by probes where they work, else by what the chip and the program report.

    With `cost` it runs once more without tracers. Raises `RunError`, `Unavailable`.
    """
    traced = replace(program, tracers=options.words if probes else "")
    programs = [traced]
    if cost and probes:
        programs.append(replace(program, case_id=f"{program.case_id}, untraced"))
    rows_of_long = LongRows(target=target.name)
    run_options = RunOptions(trace_flash=options.flash, progress=progress, long_rows=rows_of_long)
    batches = list(target.run(programs, run_options))
    failures = [failure for batch in batches for failure in batch.failures]
    if failures:
        raise RunError(f"{target.name}: case {failures[0].case_id}: {failures[0].message}")
    measured = {name: batch for batch in batches for name in batch.cases["case_id"]}
    batch = measured[program.case_id]
    rows = read_rows(batch.traced.get(program.case_id, ()))
    facts = _facts(rows, program.case_id, target.name)
    chip = program.stack.board.chip
    case = batch.cases.row(by_predicate=pl.col("case_id") == program.case_id, named=True)
    facts = replace(
        facts,
        kernel=case.get("kernel_release"),
        fs=program.stack.fs,
        page_bytes=chip.page_bytes,
        pages_per_block=chip.pages_per_block,
        lost=rows.lost if probes else 0,
        cost=_cost(measured, programs) if len(programs) > 1 else None,
    )
    log = _of(batch.flash, program)
    if probes and options.flash:
        begun = rows_of_long.rows("flash", program.case_id)
        whole_log = log if begun is None else pl.concat([begun.collect(), conform(log, "flash")])
        flash = _with_durations(rows.flash, whole_log)
        rows_of_long.forget_table("flash", program.case_id)
    else:
        flash = log
    requests = _of(batch.requests, program)
    ends = requests.select(
        (pl.col("start_ns") + pl.coalesce("latency_ns", "flash_time_ns", pl.lit(0))).max()
    ).item()
    # Drops what the agent does after the program's last operation.
    own = pl.col("start_ns") <= (ends or 0)
    tables = {
        "requests": requests,
        "flash": flash,
        "vfs": rows.vfs.filter(own),
        "functions": rows.functions.filter(own),
    }
    named = (pl.lit(program.case_id).alias("case_id"), pl.lit(target.name).alias("target"))
    whole = {name: conform(frame.with_columns(named), name) for name, frame in tables.items()}
    long = {}
    for name in ("requests", "flash"):
        begun = rows_of_long.rows(name, program.case_id)
        if begun is not None:
            long[name] = pl.concat([begun, whole[name].lazy()])
            whole[name] = empty(name)
    if long:
        return LongTrace(facts=facts, **whole, long=long, keeps=rows_of_long)
    return Trace(facts=facts, **whole)


def _of(frame: pl.DataFrame, program: Program) -> pl.DataFrame:
    if not frame.height:
        return frame
    return frame.filter(case_id=program.case_id).sort("seq", maintain_order=True)


def _with_durations(seen: pl.DataFrame, log: pl.DataFrame) -> pl.DataFrame:
    """The probes' rows, with the chip's durations if both saw the same operations."""
    seen = seen.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("seq"))
    if log.height != seen.height or not log.select(_SAME).equals(seen.select(_SAME)):
        return seen
    return seen.with_columns(log["duration_ns"])


def _cost(measured: dict[str, Batch], programs: Sequence[Program]) -> TracingCost:
    def time_ns(program: Program) -> int:
        cases = measured[program.case_id].cases.filter(case_id=program.case_id)
        return int(cases["time_ns"].item())

    return TracingCost(*(time_ns(program) for program in programs))
