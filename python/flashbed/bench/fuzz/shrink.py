"""Shortens a program that differs, in few calls of a target.

Booting a kernel takes longer than running a program, so every step tries many candidates in one
call (delta debugging, Zeller and Hildebrandt, IEEE TSE 28(2), 2002, with all subset sizes of a
round at once). A first call tries each edit alone and shows which keep the difference. A second
call combines more and more of those; the smallest program that still differs is kept. Lines are
removed first, then writes are joined and numbers made smaller, until nothing helps or the budget is
spent.

Invariants:
1. A candidate is a valid program, smaller than its origin, and is tried once.
2. Consecutive `drop_caches` are removed together or not at all, and a preparation still writes its
   files in order and pauses: programs that the generator would not make are not compared.
3. The result shows a difference with the original's signature, in a run of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from flashbed.bench.fuzz.differences import Difference
from flashbed.bench.fuzz.program import MARK, FuzzCase, packed, repaired
from flashbed.program.operations import Operation

__all__ = ["Budget", "Probe", "Shrunk", "shrink"]

Probe = Callable[[Sequence[FuzzCase]], list[Difference | None]]
"""Runs programs and returns each one's difference, or None."""

_Lines = list[Operation]
_NUMBERS: dict[str, tuple[tuple[int, int], ...]] = {
    "read": ((1, 0), (2, 1)),
    "write": ((1, 0), (2, 1), (3, 0), (4, 0)),
    "truncate": ((1, 0),),
    "fadvise": ((1, 0), (2, 0)),
}
"""Operation -> its fields that may become smaller, each with its least value.

A pause keeps its length or is removed: a shorter one could end at a kernel timer's expiry."""


@dataclass
class Budget:
    """Limits: calls of the targets, programs in one call, programs in all."""

    calls: int = 40
    per_call: int = 200
    runs: int = 4000
    stopped: Callable[[], bool] = lambda: False

    @property
    def spent(self) -> bool:
        """Whether a limit is reached."""
        return self.calls <= 0 or self.runs <= 0 or self.stopped()


@dataclass(frozen=True)
class Shrunk:
    """The smallest program found, its difference, and the effort."""

    case: FuzzCase
    difference: Difference
    calls: int
    runs: int


@dataclass(frozen=True, kw_only=True)
class _Edit:
    """Removes lines, or changes a field of a line or the read-ahead window.

    Of two edits with the same `place` only one can be applied.
    """

    drop: frozenset[int] = frozenset()
    line: int | None = None
    field: int = 0
    value: int | str = 0
    window: int | None = None

    @property
    def place(self) -> object:
        return self.drop or (self.line, self.field)


def _weight(case: FuzzCase) -> tuple[int, int]:
    """Order of programs: fewer lines, then fewer digits, then smaller numbers, then fewer flags."""
    lines = (*case.prepare, *case.body)
    numbers = sum(
        _size(operation.fields[index]).bit_length() * 2**32 + _size(operation.fields[index])
        for operation in lines
        for index, _least in _NUMBERS.get(operation.name, ())
    )
    flags = sum(len(str(line.fields[2])) for line in lines if line.name == "open")
    return len(lines), numbers + case.read_ahead_kib + flags


def _applied(case: FuzzCase, edits: Sequence[_Edit]) -> FuzzCase:
    lines = [*case.prepare, *case.body]
    cut = len(case.prepare)
    window = case.read_ahead_kib
    dropped: set[int] = set()
    for edit in edits:
        dropped |= edit.drop
        window = window if edit.window is None else edit.window
        if edit.line is not None:
            fields = list(lines[edit.line].fields)
            fields[edit.field] = edit.value
            lines[edit.line] = Operation(lines[edit.line].name, tuple(fields))
    dropped = _with_runs_of_drops(lines, dropped)
    kept = [(at, line) for at, line in enumerate(lines) if at not in dropped or line == MARK]
    rest = cut - _rest_lines(case)
    files = repaired((line for at, line in kept if at < rest), close=True)
    files = files if case.recorded else packed(files)
    prepare = (*files, *(line for at, line in kept if rest <= at < cut))
    body = repaired((line for at, line in kept if at >= cut), close=False)
    return replace(case, prepare=prepare, body=body, read_ahead_kib=window)


def _rest_lines(case: FuzzCase) -> int:
    """Lines at the end of the preparation that pause."""
    names = [operation.name for operation in case.prepare[-2:]]
    return 2 if names == ["sync", "pause"] else 0


def _with_runs_of_drops(lines: _Lines, dropped: set[int]) -> set[int]:
    """Adds to a removed `drop_caches` its neighbours of the same name."""
    whole = set(dropped)
    for at in dropped:
        for step in (-1, 1):
            near = at
            while 0 <= near < len(lines) and lines[near].name == "drop_caches":
                whole.add(near)
                near += step
    return whole


def _line_edits(first: int, count: int) -> Iterator[_Edit]:
    """Removes runs of lines, from all of them down to single ones."""
    size = count
    while size >= 1:
        for start in range(first, first + count, size):
            yield _Edit(drop=frozenset(range(start, min(start + size, first + count))))
        size //= 2


def _merge_edits(case: FuzzCase) -> Iterator[_Edit]:
    """Joins consecutive writes, all of a run and parts of it."""
    lines = (*case.prepare, *case.body)
    start = 0
    while start < len(lines):
        end = start + 1
        while end < len(lines) and _follows(lines[end - 1], lines[end]):
            end += 1
        size = end - start
        while size >= 2:
            for first in range(start, end - 1, size):
                last = min(first + size, end)
                length = sum(int(line.fields[2]) for line in lines[first:last])
                dropped = frozenset(range(first + 1, last))
                yield _Edit(drop=dropped, line=first, field=2, value=length)
            size //= 2
        start = end


def _follows(line: Operation, after: Operation) -> bool:
    """Whether both are writes, and the second begins where the first ends."""
    if line.name != "write" or after.name != "write" or line.fields[0] != after.fields[0]:
        return False
    return int(line.fields[1]) + int(line.fields[2]) == int(after.fields[1])


def _tail_edit(case: FuzzCase, difference: Difference) -> Iterator[_Edit]:
    """Removes everything after the operation that differs."""
    lines = len(case.prepare) + len(case.body)
    after = lines - len(case.measured) + max(difference.seq, 0) + 1
    if after < lines:
        yield _Edit(drop=frozenset(range(after, lines)))


def _size(field: str | int) -> int:
    """A number; a FILL of pieces counts as more than any compressibility."""
    return field if isinstance(field, int) else 101


def _smaller(value: int, least: int) -> list[int]:
    """Smaller numbers: the least, ever closer ones, and round ones."""
    closer = [value - ((value - least) >> shift) for shift in range(1, 32)]
    rounded = [value - value % unit for unit in (4096, 512)]
    return sorted({number for number in (least, *closer, *rounded) if least <= number < value})


def _number_edits(case: FuzzCase) -> Iterator[_Edit]:
    for window in (0, 4, 16, 128):
        if window < case.read_ahead_kib:
            yield _Edit(window=window)
    for at, operation in enumerate((*case.prepare, *case.body)):
        for index, least in _NUMBERS.get(operation.name, ()):
            for number in _smaller(_size(operation.fields[index]), least):
                yield _Edit(line=at, field=index, value=number)
        if operation.name == "open":
            access, *flags = str(operation.fields[2]).split(",")
            for flag in flags:
                fewer = ",".join((access, *(other for other in flags if other != flag)))
                yield _Edit(line=at, field=2, value=fewer)


class _Shrinker:
    """The smallest program so far, and the candidates tried."""

    def __init__(
        self, case: FuzzCase, difference: Difference, probe: Probe, budget: Budget
    ) -> None:
        self.case = case
        self.difference = difference
        self.probe = probe
        self.budget = budget
        self.tried: set[str] = set()
        self.calls = self.runs = 0

    def _try(self, candidates: Sequence[tuple[tuple[_Edit, ...], FuzzCase]]) -> list[_Success]:
        """The candidates that differ in the same way, within the budget."""
        weight, fresh = _weight(self.case), []
        for edits, candidate in candidates:
            text = f"{candidate.read_ahead_kib} {candidate.text}"
            if _weight(candidate) < weight and text not in self.tried:
                self.tried.add(text)
                fresh.append((edits, candidate))
        successes: list[_Success] = []
        while fresh and not self.budget.spent:
            part = fresh[: min(self.budget.per_call, self.budget.runs)]
            fresh = fresh[len(part) :]
            self.calls, self.runs = self.calls + 1, self.runs + len(part)
            self.budget.calls -= 1
            self.budget.runs -= len(part)
            found = self.probe([candidate for _, candidate in part])
            for (edits, candidate), difference in zip(part, found, strict=True):
                if difference and difference.signature == self.difference.signature:
                    successes.append(_Success(edits, candidate, difference))
        return sorted(successes, key=lambda success: _weight(success.case))

    def round(self, edits: Iterator[_Edit]) -> bool:
        """Tries each edit, then combinations of those that kept the difference; True if any did."""
        case = self.case
        alone = self._try([((edit,), _applied(case, [edit])) for edit in edits])
        if not alone:
            return False
        by_place: dict[object, _Edit] = {}
        for success in alone:
            by_place.setdefault(success.edits[0].place, success.edits[0])
        good = list(by_place.values())
        counts = range(2, len(good) + 1)
        together = [(tuple(good[:count]), _applied(case, good[:count])) for count in counts]
        # Fits into one call: of many combinations that differ by one edit, some are skipped.
        step = -(-len(together) // self.budget.per_call) or 1
        best = min(
            (*alone[:1], *self._try(together[::-1][::step])),
            key=lambda success: _weight(success.case),
        )
        self.case = replace(best.case, cut=best.difference.cut)
        self.difference = best.difference
        return True

    def run(self) -> None:
        """Runs rounds until none helps or the budget is spent."""
        self.round(_tail_edit(self.case, self.difference))
        helped = True
        while helped and not self.budget.spent:
            helped = False
            for edits in (self._body_edits, self._prepare_edits, self._merges, self._numbers):
                while not self.budget.spent and self.round(edits()):
                    helped = True

    def _body_edits(self) -> Iterator[_Edit]:
        return _line_edits(len(self.case.prepare), len(self.case.body))

    def _prepare_edits(self) -> Iterator[_Edit]:
        lines = len(self.case.prepare)
        yield _Edit(drop=frozenset(range(lines)))
        yield from _line_edits(0, lines - _rest_lines(self.case))

    def _merges(self) -> Iterator[_Edit]:
        return _merge_edits(self.case)

    def _numbers(self) -> Iterator[_Edit]:
        return _number_edits(self.case)


@dataclass(frozen=True)
class _Success:
    edits: tuple[_Edit, ...]
    case: FuzzCase
    difference: Difference


def shrink(
    case: FuzzCase, difference: Difference, probe: Probe, budget: Budget | None = None
) -> Shrunk | None:
    """The smallest program found that differs as `case` does; None if `case` alone does not.

    `difference` is what `case` showed when it ran among others.
    """
    budget = budget or Budget()
    case = replace(case, cut=difference.cut)
    (alone,) = probe([case])
    budget.calls -= 1
    if alone is None or alone.signature != difference.signature:
        return None
    shrinker = _Shrinker(case, alone, probe, budget)
    shrinker.run()
    return Shrunk(shrinker.case, shrinker.difference, shrinker.calls + 1, shrinker.runs + 1)
