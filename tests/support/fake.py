"""A target that measures nothing: numbers follow from the operations by simple rules.

A page is read from the chip the first time it is requested, read-ahead brings 31 more; a flash read
takes 200 us and a request 10 us. The tests of everything above a target run on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import polars as pl

from flashbed.program.operations import parse
from flashbed.targets.base import (
    PLAIN,
    Apart,
    Batch,
    Failure,
    Program,
    Run,
    RunOptions,
    Survey,
    SurveyedFile,
)
from flashbed.targets.unavailable import Unavailable

READ_NS = 200_000
REQUEST_NS = 10_000


@dataclass
class FakeTarget:
    """Made-up numbers; `fails`, `unavailable` and `interrupt_after` play what can go wrong."""

    name: str
    software_time: bool = field(default=True, init=False)
    apart: Apart = field(default=Apart(), init=False)
    fails: set[str] = field(default_factory=set)
    unavailable: str = ""
    interrupt_after: int | None = None
    batch_cases: int = 3
    changes: int = 0
    """To the chip, when the last operation has returned."""
    bad_change: int | None = None
    """After a cut in it the file system does not mount."""
    ran: list[str] = field(default_factory=list)

    made: ClassVar[dict[str, FakeTarget]] = {}

    def prepare(self, say: Callable[[str], None]) -> None:
        if self.unavailable:
            raise Unavailable(self.unavailable)
        say("nothing to fetch")

    def run(self, programs: Sequence[Program], options: RunOptions = PLAIN) -> Iterator[Batch]:
        if self.unavailable:
            raise Unavailable(self.unavailable)
        for start in range(0, len(programs), self.batch_cases):
            if self.interrupt_after is not None and start >= self.interrupt_after:
                raise KeyboardInterrupt
            some = programs[start : start + self.batch_cases]
            self.ran += [program.case_id for program in some]
            yield self._batch(some, options.trace_flash)
            options.progress("measuring", start + len(some))

    def _batch(self, programs: Sequence[Program], trace_flash: bool) -> Batch:
        good = [program for program in programs if program.case_id not in self.fails]
        requests = pl.concat([_requests(program) for program in good]) if good else pl.DataFrame()
        cases = pl.DataFrame()
        if good:
            cases = requests.group_by("case_id", maintain_order=True).agg(
                pl.col("latency_ns").sum().alias("time_ns"),
                pl.col("length_bytes").sum().alias("bytes"),
                pl.col("_flash_reads").sum().alias("flash_reads"),
                pl.lit(0, pl.Int64).alias("flash_programs"),
                pl.lit(0, pl.Int64).alias("flash_erases"),
            )
            windows = {program.case_id: program.stack.modelled_kib for program in good}
            window = pl.col("case_id").replace_strict(windows, return_dtype=pl.Int64)
            cases = cases.with_columns(window.alias("read_ahead_kib"))
            requests = requests.drop("_flash_reads")
        flash = _flash(cases) if trace_flash and good else pl.DataFrame()
        failed = [program.case_id for program in programs if program.case_id in self.fails]
        failures = tuple(
            Failure(case_id=case_id, message="no space left on device") for case_id in failed
        )
        surveys = tuple(
            Survey(
                case_id=program.case_id,
                change=cut.change,
                mount_result=-117,
                mount_time_ns=1000,
                files=(),
                probe_result=None,
            )
            if cut.change == self.bad_change
            else Survey(
                case_id=program.case_id,
                change=cut.change,
                mount_result=0,
                mount_time_ns=1000,
                files=_prepared_file(program),
                probe_result=0,
            )
            for program in good
            for cut in program.cuts
        )
        if any(program.record_changes for program in good):
            requests = requests.with_columns(changes=pl.lit(self.changes, pl.Int64))
        return Batch(
            cases=cases,
            requests=requests,
            flash=flash,
            failures=failures,
            surveys=surveys,
            wear=_wear(good),
        )


def _wear(programs: Sequence[Program]) -> pl.DataFrame:
    """Block n was erased n + 1 times, n of them while measuring."""
    rows = [
        (program.case_id, block, block + 1, block, "good")
        for program in programs
        if program.record_wear
        for block in range(program.stack.board.partition.blocks)
    ]
    columns = ["case_id", "block", "erases", "erases_measured", "state"]
    return pl.DataFrame(rows, schema=columns, orient="row") if rows else pl.DataFrame()


def _prepared_file(program: Program) -> tuple[SurveyedFile, ...]:
    """What the preparation wrote."""
    writes = [op.fields for op in parse(program.prepare) if op.name == "write"]
    length_bytes = sum(int(fields[2]) for fields in writes)
    content = (int(writes[0][3]), int(writes[0][4]))
    return (SurveyedFile("file.bin", length_bytes, (Run(0, length_bytes, content),)),)


def _requests(program: Program) -> pl.DataFrame:
    cached: set[int] = set()
    rows: list[tuple[str | int, ...]] = []
    now_ns = 0
    for operation in parse(program.body):
        if operation.name != "read":
            continue
        _, offset_bytes, length_bytes = map(int, operation.fields)
        page = offset_bytes // 4096
        reads = 0
        if page not in cached:
            window = range(page, page + max(1, program.stack.modelled_kib // 4))
            reads = 2 * len(set(window) - cached)
            cached |= set(window)
        latency_ns = REQUEST_NS + reads * READ_NS
        rows.append((program.case_id, len(rows), "read", "file.bin", offset_bytes, length_bytes,
                     now_ns, latency_ns, length_bytes, reads))  # fmt: skip
        now_ns += latency_ns
    names = ["case_id", "seq", "op", "file", "offset_bytes", "length_bytes", "start_ns",
             "latency_ns", "result", "_flash_reads"]  # fmt: skip
    return pl.DataFrame(rows, schema=names, orient="row")


def _flash(cases: pl.DataFrame) -> pl.DataFrame:
    return cases.select(
        "case_id",
        pl.lit(0, pl.Int64).alias("seq"),
        pl.lit(0, pl.Int64).alias("start_ns"),
        pl.lit("read").alias("kind"),
        pl.lit(0, pl.Int64).alias("block"),
        pl.lit(0, pl.Int64).alias("page"),
        pl.lit(0, pl.Int64).alias("offset_bytes"),
        pl.lit(2048, pl.Int64).alias("length_bytes"),
        pl.lit("agent").alias("task"),
    )


def make_sim() -> FakeTarget:
    """The fake in place of `sim`."""
    return FakeTarget.made["sim"]


def make_emulator() -> FakeTarget:
    """The fake in place of `emulator`."""
    return FakeTarget.made["emulator"]
