"""Prints a run of the fuzzer: what was run, and each difference as a block."""

from __future__ import annotations

from collections.abc import Iterator

from flashbed.bench.fuzz.campaign import NEAR, READS_NEAR, FoundDifference, Report
from flashbed.bench.fuzz.differences import Difference
from flashbed.bench.fuzz.program import FuzzCase
from flashbed.stack.conditions import NONE

__all__ = ["block", "summary"]

ERRORS_SHOWN = 5
_WHAT = {
    "flash": "flash operations",
    "result": "result",
    "contents": "CRC-32 of the bytes read",
    "cut": "what a cut may leave",
}


def summary(report: Report) -> str:
    """The number of programs, and their results."""
    plan = report.plan
    refused = sum(report.refused.values())
    lines = [
        f"{report.programs:,} {plan.what} on {', '.join(plan.file_systems)},"
        f" seeds from {plan.seed}: {report.exact:,} exact, {len(report.found)} differing,"
        f" {refused:,} refused by the simulator, {len(report.errors)} that did not run"
    ]
    if report.compared:
        lines.append(
            f"  page writes and erases: as many in {report.changes_equal:,} of {report.compared:,},"
            f" within {NEAR:.0%} in {report.changes_near:,};"
            f" page reads: within {READS_NEAR:.0%} in {report.reads_near:,}"
        )
    for what, times in sorted(report.refused.items(), key=lambda item: (-item[1], item[0])):
        lines.append(f"  refused: {what}: {times:,}")
    for case_id, message in report.errors[:ERRORS_SHOWN]:
        lines.append(f"  did not run: {case_id}: {message}")
    if len(report.errors) > ERRORS_SHOWN:
        lines.append(f"  and {len(report.errors) - ERRORS_SHOWN} more that did not run")
    return "\n".join(lines)


def block(found: FoundDifference, report: Report, where: str) -> str:
    """One difference: what, where, both sides, the shortest program and how to repeat it.

    `where` has the options that name the machine.
    """
    shown = found.shrunk
    difference = shown.difference if shown else found.difference
    lines = [*_head(found.case.case_id, difference), *_sides(difference)]
    if difference.around:
        lines += ["  flash operations around it:", *(f"  {line}" for line in difference.around)]
    if shown:
        lines += _program(shown.case, found.case, f"{shown.calls} calls, {shown.runs:,} programs")
    else:
        lines.append(f"  not shortened{f': {found.note}' if found.note else ''}; as it is:")
        lines += _text(found.case)
    return "\n".join([*lines, f"  again: {_again(found.case, report, where)}"])


def _head(case_id: str, difference: Difference) -> list[str]:
    first, second = difference.between
    where = f"operation {difference.seq}, `{difference.operation}`"
    if difference.seq < 0:
        where = difference.operation
    return [f"{case_id}: {first} and {second} differ in {_WHAT[difference.kind]}", f"  at {where}"]


def _sides(difference: Difference) -> list[str]:
    width = max(len(name) for name in difference.between)
    sides = zip(difference.between, (difference.left, difference.right), strict=True)
    return [f"    {name:{width}}  {value}" for name, value in sides]


def _program(shortest: FuzzCase, whole: FuzzCase, took: str) -> Iterator[str]:
    lines, of = shortest.text.count("\n"), whole.text.count("\n")
    yield f"  the shortest program that shows it, {lines} of {of} lines ({took}):"
    yield from _text(shortest)


def _text(case: FuzzCase) -> list[str]:
    """The program, its measured operations numbered."""
    failing = f", faults {case.faults}" if case.faults != NONE else ""
    bulk = ", bulk_read" if case.bulk_read else ""
    head = [
        f"    # {case.fs}, read_ahead_kib {case.read_ahead_kib}{bulk}{failing};"
        " measured operations: number"
    ]
    lines = case.text.splitlines()
    first = len(lines) - len(case.measured)
    return head + [
        f"    {line}" if at < first else f"    {line:40} # {at - first}"
        for at, line in enumerate(lines)
    ]


def _again(case: FuzzCase, report: Report, where: str) -> str:
    plan = report.plan
    seed = case.case_id.rpartition("-")[2]
    without = f" --without {','.join(plan.without)}" if plan.without else ""
    return (
        f"flashbed fuzz {plan.option} --set fs={case.fs} --seed {seed} --cases 1 {where}{without}"
    )
