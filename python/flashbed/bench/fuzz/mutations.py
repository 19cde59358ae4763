"""Programs that are a recording but for a few changes, `flashbed fuzz --from`.

A recording is translated as a replay translates it, for each file system. Seed 0 is the recording
itself. Any other seed makes one to six changes among the measured operations: some are left out,
done twice or exchanged, a read or write gets another place or length, the program syncs, pauses,
drops caches or remounts in between. `repaired` then takes out what may not stand where it stands.

What a mutated program answers is the kernel's to say: the oracle does not have all operations.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from flashbed.base.errors import InputError
from flashbed.bench.fuzz.draw import Draw
from flashbed.bench.fuzz.program import MARK, FuzzCase, repaired
from flashbed.plan.workloads.recorded_program import as_recorded
from flashbed.program.operations import Operation, parse
from flashbed.program.recording.recognised import is_recording

__all__ = ["RecordedSource"]

READ_AHEAD_KIB = (0, 16, 128, 512)
CHANGES_MAX = 6
RUN_MAX = 20
"""Operations that are left out or done twice at a time."""
LENGTH_MAX = 65_536
_PAUSES_NS = (1_000_000, 40_000_000, 6_000_000_000)
_BETWEEN = (
    Operation("sync"),
    Operation("remount"),
    Operation("drop_caches"),
    *(Operation("pause", (duration_ns,)) for duration_ns in _PAUSES_NS),
)
_PLACED = frozenset({"read", "write"})

_Lines = list[Operation]


class RecordedSource:
    """A recording that programs are made of, for one kernel."""

    def __init__(self, path: Path, kernel: str) -> None:
        if not is_recording(path):
            raise InputError(f"{path}: no recording; make one with flashbed record")
        self.path = path
        self.kernel = kernel

    def program(self, fs: str, seed: int) -> FuzzCase:
        """The one of a seed. Raises `RecordingError`."""
        prepare, body = _translated(self.path, self.kernel, fs)
        draw = Draw(f"{self.path.stem} {fs} {seed}")
        return FuzzCase(
            case_id=f"fuzz-from-{fs}-{seed}",
            fs=fs,
            read_ahead_kib=draw.pick(READ_AHEAD_KIB),
            prepare=prepare,
            body=_mutated(draw, body) if seed else body,
            recorded=True,
        )


@cache
def _translated(
    path: Path, kernel: str, fs: str
) -> tuple[tuple[Operation, ...], tuple[Operation, ...]]:
    """Preparation without `prepared`, and body; a mark begins it where it has none."""
    ((_, prepare, body),) = as_recorded(path, kernel, (fs,))
    prepared = tuple(each for each in parse(prepare) if each.name != "prepared")
    measured = tuple(parse(body))
    return prepared, measured if MARK in measured else (MARK, *measured)


def _mutated(draw: Draw, body: tuple[Operation, ...]) -> tuple[Operation, ...]:
    at = body.index(MARK) + 1
    lines = list(body[at:])
    for _ in range(draw.between(1, CHANGES_MAX)):
        if lines:
            draw.pick(_CHANGES)(draw, lines)
    return repaired((*body[:at], *lines), close=False)


def _run(draw: Draw, lines: _Lines) -> slice:
    """A few operations in a row."""
    first = draw.between(0, len(lines) - 1)
    return slice(first, first + draw.between(1, RUN_MAX))


def _leave_out(draw: Draw, lines: _Lines) -> None:
    del lines[_run(draw, lines)]


def _do_twice(draw: Draw, lines: _Lines) -> None:
    run = _run(draw, lines)
    lines[run.stop : run.stop] = lines[run]


def _exchange(draw: Draw, lines: _Lines) -> None:
    one, other = (draw.between(0, len(lines) - 1) for _ in range(2))
    lines[one], lines[other] = lines[other], lines[one]


def _insert(draw: Draw, lines: _Lines) -> None:
    lines.insert(draw.between(0, len(lines)), draw.pick(_BETWEEN))


def _place_elsewhere(draw: Draw, lines: _Lines) -> None:
    """A read or write begins elsewhere, or is of another length."""
    places = [at for at, line in enumerate(lines) if line.name in _PLACED]
    if not places:
        return
    at = draw.pick(places)
    fields = list(lines[at].fields)
    if draw.chance(50):
        fields[1] = max(0, int(fields[1]) + draw.between(-LENGTH_MAX, LENGTH_MAX))
    else:
        fields[2] = draw.between(1, LENGTH_MAX)
    lines[at] = Operation(lines[at].name, tuple(fields))


_CHANGES: tuple[Callable[[Draw, _Lines], None], ...] = (
    _leave_out,
    _do_twice,
    _exchange,
    _insert,
    _place_elsewhere,
)
