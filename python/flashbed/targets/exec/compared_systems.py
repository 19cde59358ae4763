"""One table of a program that ran on several systems."""

from __future__ import annotations

from collections.abc import Sequence

from flashbed.answers.lifetimes.estimate_text import years_text
from flashbed.base.human import UNKNOWN, aligned, bytes_text, count_text, ratio_text, time_text
from flashbed.stack.names import escaped
from flashbed.targets.exec.lasting import lasting_of
from flashbed.targets.exec.outcome import ExecOutcome, NotRunError
from flashbed.targets.exec.request import ExecRequest

__all__ = ["Ran", "compared"]

Ran = tuple[ExecRequest, ExecOutcome | NotRunError]
"""A program on one system; an error where that cannot mount or run it."""

_HEADS = (
    "elapsed", "chip busy", "page reads", "page writes", "erases", "left in cache", "written",
    "WAF", "lifetime",
)  # fmt: skip


_NOT_RUN = "not run"


def compared(ran: Sequence[Ran], rounds: float | None) -> list[str]:
    """A line for each system, with what differs between them, in the columns of `run`.

    Times and counts are those of the run; `left in cache` is what a sync then writes.
    Below the table are the reasons of those that could not run.
    """
    names = [name for name, _ in ran[0][0].changes]
    varying = [
        name for name in names if len({dict(request.changes)[name] for request, _ in ran}) > 1
    ]
    heads = [*varying, *_HEADS]
    failed = any(isinstance(each, ExecOutcome) and each.exit_status for _, each in ran)
    if failed:
        heads.append("exit status")
    rows, reasons = [], []
    for request, outcome in ran:
        changes = dict(request.changes)
        named = [changes[name] for name in varying]
        if isinstance(outcome, NotRunError):
            rows.append([*named, _NOT_RUN, *[UNKNOWN] * (len(heads) - len(named) - 1)])
            reasons.append(f"{_NOT_RUN} on {' '.join(named)}: {escaped(str(outcome))}")
            continue
        row = [*named, *_cells(request, outcome, rounds)]
        rows.append([*row, str(outcome.exit_status)] if failed else row)
    table = aligned([heads, *rows], left=len(varying))
    return [
        "",
        f"{escaped(ran[0][0].words[0])} on {len(ran)} systems, each from a new file system",
        *table,
        *reasons,
    ]


def _cells(request: ExecRequest, outcome: ExecOutcome, rounds: float | None) -> list[str]:
    seen = outcome.unseen is None
    ran = outcome.ran
    counts = (ran.reads, ran.programs, ran.erases, outcome.flushed.programs)
    written = outcome.bytes_written if request.where == "uml" else None
    ratio = outcome.bytes_programmed / written if written else None
    return [
        time_text(outcome.time_ns),
        time_text(ran.busy_ns if seen and ran.busy_ns >= 0 else None),
        *(count_text(count if seen else None) for count in counts),
        bytes_text(written),
        ratio_text(ratio),
        _lifetime(request, outcome, rounds),
    ]


def _lifetime(request: ExecRequest, outcome: ExecOutcome, rounds: float | None) -> str:
    found = lasting_of(request, outcome, rounds).found
    return UNKNOWN if found is None else years_text(found.low, found.high)
