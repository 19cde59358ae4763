"""Prints what a program did to the flash, as text or JSON, with the lifetime that follows."""

from __future__ import annotations

import signal
from typing import Any

from flashbed.answers.lifetimes.estimate_text import years_text
from flashbed.stack.names import escaped
from flashbed.targets.exec.lasting import lasting_of
from flashbed.targets.exec.outcome import ChipCounts, ExecOutcome, FileUse, NotRunError
from flashbed.targets.exec.request import ExecRequest
from flashbed.targets.recorder.summary_lines import in_brief

__all__ = ["as_json", "text"]

_WHERE = {
    "uml": "user-mode Linux, virtual time",
    "emulator": "emulated board, time by instructions",
    "board": "the board's own time",
}
_NAMED = ("fs", "board", "kernel")
"""What an account always names."""
CALLS_SHOWN = 8
FILES_SHOWN = 6


def _ratio(outcome: ExecOutcome) -> float | None:
    return outcome.bytes_programmed / outcome.bytes_written if outcome.bytes_written else None


def text(request: ExecRequest, outcome: ExecOutcome, rounds: float | None) -> str:
    """The report for a person, on several lines."""
    others = [f"{name} {value}" for name, value in request.changes if name not in _NAMED]
    on = ", ".join([request.fs, f"board {request.board.name}", *others, f"Linux {request.kernel}"])
    lines = [f"{escaped(request.words[0])} on {on} ({_WHERE[request.where]})"]

    def fact(name: str, value: str) -> None:
        lines.append(f"  {name:<14} {value}")

    if request.dump is not None:
        fact("began with", escaped(request.dump.told))
    if outcome.until is not None:
        fact("ended", f"after {request.until_s:g} s, by --until: {_told(outcome)}")
    elif outcome.signal is not None:
        fact("ended", f"by signal {outcome.signal}")
    else:
        fact("exit status", str(outcome.exit_status))
    if outcome.spun:
        fact("", f"{outcome.failure}: {request.spin_s:g} s without a system call (--spin)")
    fact("elapsed", _time_said(request, outcome))
    shown = request.stack.layout is not None or request.dump is not None
    for number, line in enumerate(_steps(outcome) if shown else ()):
        fact("mounted before" if number == 0 else "", line)
    if outcome.unseen is None:
        fact("flash", _counts(outcome.ran))
        fact("left in cache", f"{_counts(outcome.flushed)}, by a sync at exit")
    else:
        fact("flash", f"not seen: {outcome.unseen}")
    if outcome.missed:
        fact("", f"WARNING: {outcome.missed:,} operations were not recorded")
    if request.where == "uml":
        _say_written(fact, outcome)
    else:
        fact("to the flash", f"{_bytes(outcome.bytes_programmed)}")
    _say_lifetime(fact, request, outcome, rounds)
    for number, line in enumerate(_calls(outcome)):
        fact("calls" if number == 0 else "", line)
    for number, line in enumerate(_failed(outcome)):
        fact("failed calls" if number == 0 else "", line)
    for number, line in enumerate(_files(outcome)):
        fact("files" if number == 0 else "", line)
    if outcome.kept is not None:
        kept = outcome.kept
        fact("kept", f"{kept.files:,} files, {_bytes(kept.bytes)}, in {escaped(str(request.keep))}")
        for path, why in kept.left_out:
            fact("", f"not {escaped(path)}: {escaped(why)}")
    if outcome.recorded is not None:
        for number, line in enumerate(in_brief(outcome.recorded)):
            fact("recorded" if number == 0 else "", line)
    return "\n".join(lines)


def _time_said(request: ExecRequest, outcome: ExecOutcome) -> str:
    said = _time(outcome.time_ns)
    if outcome.ran.busy_ns >= 0 and outcome.unseen is None:
        said += f", chip busy {_time(outcome.ran.busy_ns)}"
    if request.where != "uml":
        return f"{said}; CPU time is in it"
    calls = sum(call.calls for call in outcome.calls)
    return f"{said}; {calls:,} system calls, {request.costs.description()}"


def _say_written(fact: Any, outcome: ExecOutcome) -> None:
    mapped = f", {_bytes(outcome.bytes_mapped)} of it mapped" if outcome.bytes_mapped else ""
    fact("written", f"{_bytes(outcome.bytes_written)} by the program{mapped},"
                    f" {_bytes(outcome.bytes_programmed)} to the flash")  # fmt: skip
    ratio = _ratio(outcome)
    fact("WAF", "none: nothing was written" if ratio is None else f"{ratio:.2f}")


def _say_lifetime(
    fact: Any, request: ExecRequest, outcome: ExecOutcome, rounds: float | None
) -> None:
    known = lasting_of(request, outcome, rounds)
    found, runs = known.found, known.runs_per_day
    if found is None:
        fact("lifetime", known.why)
        return
    how = "" if runs is None else f", {_rate(runs)} runs a day"
    fact("lifetime", f"{years_text(found.low, found.high)}{how}")
    for number, note in enumerate(known.notes or []):
        fact("assumes" if number == 0 else "", note)


def _rate(a_day: float) -> str:
    return f"{a_day:,.0f}" if a_day >= 100 else f"{a_day:.3g}"


def _counts(counts: ChipCounts) -> str:
    return (
        f"{counts.reads:,} page reads, {counts.programs:,} page writes, {counts.erases:,} erases"
        f"{f' in {_time(counts.busy_ns)}' if counts.busy_ns >= 0 else ''}"
    )


def _steps(outcome: ExecOutcome) -> list[str]:
    """What each step of the mount took."""
    width = max((len(step.name) for step in outcome.steps), default=0)
    return [
        f"{step.name:<{width}}  {_time(step.ns)}"
        + ("" if step.chip is None else f"; {_counts(step.chip)}")
        for step in outcome.steps
    ]


def _calls(outcome: ExecOutcome) -> list[str]:
    """The kinds of system calls that took longest."""
    most = sorted(outcome.calls, key=lambda call: (-call.ns, -call.calls, call.name))
    lines = []
    for call in most[:CALLS_SHOWN]:
        written = f", {_bytes(call.bytes_written)} to flash" if call.bytes_written else ""
        lines.append(f"{call.name:<16} {call.calls:>7,} in {_time(call.ns)}{written}")
    left = len(most) - len(lines)
    return [*lines, f"and {left} other kinds"] if left > 0 else lines


def _failed(outcome: ExecOutcome) -> list[str]:
    """The calls that failed on flash, the most frequent first."""
    most = sorted(outcome.failed, key=lambda failed: (-failed.calls, failed.name, failed.why))
    lines = [f"{failed.name:<16} {failed.calls:>7,} {failed.why}" for failed in most[:CALLS_SHOWN]]
    left = len(most) - len(lines)
    return [*lines, f"and {left} other kinds"] if left > 0 else lines


def _told(outcome: ExecOutcome) -> str:
    """How the program ended after `--until` told it to."""
    if outcome.until == signal.SIGKILL:
        return "SIGTERM did not end it, SIGKILL did a second later"
    if outcome.signal is not None:
        return f"by signal {outcome.signal}"
    return f"SIGTERM, exit status {outcome.exit_status}"


def _files(outcome: ExecOutcome) -> list[str]:
    """The files on flash with most bytes read and written."""

    def moved(file: FileUse) -> int:
        return file.bytes_read + file.bytes_written + file.bytes_mapped

    most = sorted(outcome.files, key=lambda file: (-moved(file), file.path))
    lines = []
    for file in most[:FILES_SHOWN]:
        parts = [
            f"{name} {_bytes(count)}"
            for name, count in (
                ("read", file.bytes_read),
                ("written", file.bytes_written),
                ("mapped", file.bytes_mapped),
            )
            if count
        ]
        if file.syncs:
            parts.append(f"{file.syncs:,} syncs")
        lines.append(f"{escaped(file.path.lstrip('/') or '.'):<24} {', '.join(parts) or 'nothing'}")
    left = len(most) - len(lines)
    return [*lines, f"and {left:,} others"] if left > 0 else lines


def _time(ns: int) -> str:
    if ns >= 10**9:
        return f"{ns / 1e9:,.3f} s"
    return f"{ns / 1e6:,.3f} ms"


def _bytes(count: int) -> str:
    if count < 10_240:
        return f"{count:,} bytes"
    return f"{count / 1024:,.1f} KiB" if count < 10 << 20 else f"{count / 2**20:,.1f} MiB"


def _named(request: ExecRequest) -> dict[str, Any]:
    return {
        "command": list(request.words),
        "fs": request.fs,
        "board": request.board.name,
        "kernel": request.kernel,
        "settings": dict(request.changes),
        "on": request.address or request.where,
    }


def as_json(
    request: ExecRequest, outcome: ExecOutcome | NotRunError, rounds: float | None
) -> dict[str, Any]:
    """All results; unknown is null. Of a system that could not run it, the reason."""
    if isinstance(outcome, NotRunError):
        return {**_named(request), "exit_status": None, "failure": str(outcome)}
    known = lasting_of(request, outcome, rounds)
    found = known.found
    seen, counted = outcome.unseen is None, request.where == "uml"
    return {
        **_named(request),
        "dump": None if request.dump is None else request.dump.told,
        "exit_status": outcome.exit_status,
        "signal": outcome.signal,
        "time_ns": outcome.time_ns,
        "mount": [
            {**vars(step), "chip": None if step.chip is None else vars(step.chip)}
            for step in outcome.steps
        ],
        "run": vars(outcome.ran) if seen else None,
        "flush": vars(outcome.flushed) if seen else None,
        "unseen": outcome.unseen,
        "bytes_written": outcome.bytes_written if counted else None,
        "bytes_programmed": outcome.bytes_programmed,
        "amplification": _ratio(outcome) if counted else None,
        "erases_by_block": outcome.wear,
        "bytes_mapped": outcome.bytes_mapped if counted else None,
        "software": {
            "how": request.costs.how,
            "syscall_ns": request.costs.each_ns,
            "kinds": {
                cost.name: {"ns": cost.ns, "byte_ps": cost.byte_ps} for cost in request.costs.kinds
            },
        },
        "until_signal": outcome.until,
        "spun": outcome.spun,
        "system_calls": [vars(call) for call in outcome.calls],
        "failed_calls": [vars(failed) for failed in outcome.failed] if counted else None,
        "failure": outcome.failure,
        "files": [vars(file) for file in outcome.files],
        "kept": None
        if outcome.kept is None
        else {
            "files": outcome.kept.files,
            "bytes": outcome.kept.bytes,
            "left_out": [list(pair) for pair in outcome.kept.left_out],
        },
        "recorded": None
        if outcome.recorded is None
        else {
            "file": str(outcome.recorded.path),
            "calls": sum(outcome.recorded.calls.values()),
            "not_followed": outcome.recorded.about.not_followed,
        },
        "years": {"low": found.low, "high": found.high} if found else None,
        "assumes": known.notes,
    }
