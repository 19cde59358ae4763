"""A target whose answers are the oracle's and whose flash operations follow a simple rule.

A read or write of a file is one flash operation for each of its pages. `Bug` changes that for
operations it picks, as a wrong model would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from flashbed.bench.fuzz.oracle import Expected, MemoryFs
from flashbed.program.operations import Operation, parse
from flashbed.targets.base import PLAIN, Apart, Batch, Failure, Program, RunOptions

Answer = tuple[Expected, list[int]]
"""What an operation answers, and the pages it touches."""
Bug = Callable[[Operation, Expected, list[int]], Answer]


def no_bug(_operation: Operation, expected: Expected, pages: list[int]) -> Answer:
    return expected, pages


def misreads_above(length: int) -> Bug:
    """A read longer than this touches one page too many."""

    def bug(operation: Operation, expected: Expected, pages: list[int]) -> Answer:
        if operation.name == "read" and expected.result > length:
            pages = [*pages, 999]
        return expected, pages

    return bug


def wrong_bytes(_operation: Operation, expected: Expected, pages: list[int]) -> Answer:
    """A read of more than one page gives other bytes than were written."""
    if expected.content_crc32 is not None and expected.result > 4096:
        expected = replace(expected, content_crc32=expected.content_crc32 ^ 1)
    return expected, pages


def wrong_result(operation: Operation, expected: Expected, pages: list[int]) -> Answer:
    """A write says it wrote a byte less."""
    if operation.name == "write" and expected.result > 100:
        expected = Expected(expected.result - 1)
    return expected, pages


@dataclass
class OracleTarget:
    """Plays a simulator or a kernel."""

    name: str
    software_time: bool = field(default=True, init=False)
    apart: Apart = field(default=Apart(), init=False)
    bug: Bug = no_bug
    refuses: frozenset[str] = frozenset()
    fails: frozenset[str] = frozenset()
    contents: bool = True
    batch_cases: int = 7
    interrupt_after: int | None = None
    calls: list[int] = field(default_factory=list)

    def prepare(self, say: Callable[[str], None]) -> None:
        say("nothing to fetch")

    def run(self, programs: Sequence[Program], options: RunOptions = PLAIN) -> Iterator[Batch]:
        assert options.trace_flash
        self.calls.append(len(programs))
        for start in range(0, len(programs), self.batch_cases):
            if self.interrupt_after is not None and start >= self.interrupt_after:
                raise KeyboardInterrupt
            yield self._batch(programs[start : start + self.batch_cases])
            options.progress("running", start + self.batch_cases)

    def _batch(self, programs: Sequence[Program]) -> Batch:
        failures: list[Failure] = []
        cases: list[str] = []
        requests: list[tuple[object, ...]] = []
        flash: list[tuple[object, ...]] = []
        for program in programs:
            assert program.check_contents
            operations = parse(program.body)
            refused = [op for op in operations if op.name in self.refuses]
            if program.case_id in self.fails:
                failures.append(Failure(case_id=program.case_id, message="the guest died"))
            elif refused:
                what = refused[0].name
                message = f"line {refused[0].line}: x: {what} is not modelled"
                failures.append(
                    Failure(case_id=program.case_id, message=message, not_modelled=what)
                )
            else:
                cases.append(program.case_id)
                self._run(program, operations, requests, flash)
        return Batch(
            cases=pl.DataFrame({"case_id": cases}, schema={"case_id": pl.String}),
            requests=pl.DataFrame(requests, schema=_REQUESTS, orient="row"),
            flash=pl.DataFrame(flash, schema=_FLASH, orient="row") if flash else pl.DataFrame(),
            failures=tuple(failures),
        )

    def _run(
        self,
        program: Program,
        operations: list[Operation],
        requests: list[tuple[object, ...]],
        flash: list[tuple[object, ...]],
    ) -> None:
        fs = MemoryFs()
        for operation in parse(program.prepare):
            fs.execute(operation)
        mark = next(i for i, operation in enumerate(operations) if operation.name == "mark")
        for operation in operations[:mark]:
            fs.execute(operation)
        first = len(flash)
        for seq, operation in enumerate(operations[mark + 1 :]):
            expected = fs.execute(operation)
            pages: list[int] = []
            if operation.name in ("read", "write") and expected.result > 0:
                offset = int(operation.fields[1])
                end = offset + expected.result
                pages = list(range(offset // 2048, -(-end // 2048)))
            expected, pages = self.bug(operation, expected, pages)
            crc = expected.content_crc32 if self.contents else None
            requests.append(
                (program.case_id, seq, operation.name, 1000 * seq, expected.result, crc)
            )
            kind = "program" if operation.name == "write" else "read"
            for page in pages:
                row = (len(flash) - first, 1000 * seq + 1, kind, page, 0, 2048, "task")
                flash.append((program.case_id, *row))


_REQUESTS = {
    "case_id": pl.String,
    "seq": pl.Int64,
    "op": pl.String,
    "start_ns": pl.Int64,
    "result": pl.Int64,
    "content_crc32": pl.Int64,
}
_FLASH = {
    "case_id": pl.String,
    "seq": pl.Int64,
    "start_ns": pl.Int64,
    "kind": pl.String,
    "page": pl.Int64,
    "offset_bytes": pl.Int64,
    "length_bytes": pl.Int64,
    "task": pl.String,
}
