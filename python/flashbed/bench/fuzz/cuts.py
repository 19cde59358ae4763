"""Class `cuts`: programs with power cuts, judged as `flashbed powercut` judges them.

A program has one to three cuts in changes that are drawn from its name. It runs on the simulator
and, if requested, on another target too. The two are not compared, because they tear a change
differently; bench/powercut/judge.py judges each.

Left out of the programs: `append`, whose bytes a survey cannot identify; `remount`, for which a
real kernel must boot; faults other than the cut. There is a `sync` between a rename and the next
open, and before and after a truncation: without it both file systems keep less than the judge
requires (evidence/power-cuts.md, what was found).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from flashbed.bench.fuzz.any_body import AnyBody
from flashbed.bench.fuzz.bench import FuzzVerdict
from flashbed.bench.fuzz.differences import Difference
from flashbed.bench.fuzz.draw import Draw
from flashbed.bench.fuzz.program import FoundCut, FuzzCase
from flashbed.bench.powercut.cutting import NO_CHANGE, Choice, PowerCuts
from flashbed.bench.powercut.judge import RECOVERED
from flashbed.program.operations import Operation
from flashbed.stack.profiles import Board, Kernel
from flashbed.targets.base import Batch, Cut, RunOptions, Target

__all__ = ["CutsBench", "CutsBody"]

CUTS_MAX = 3
_WITHOUT = ("append", "remount", "drop_caches", "fadvise")
_MORE = {"write": 40, "read": 4, "fsync": 10, "fdatasync": 5, "rename": 8}


class CutsBody(AnyBody):
    """Tens of operations that change something, with syncs among them."""

    def __init__(
        self, draw: Draw, prepare: Sequence[Operation], without: Collection[str] = ()
    ) -> None:
        super().__init__(draw, prepare, (*without, *_WITHOUT))
        more = {name: weight for name, weight in _MORE.items() if name not in without}
        self.weights |= {name: w for name, w in more.items() if name in self.weights}
        if "fsync" not in without:
            self.weights["fsync"] = _MORE["fsync"]
        if "sync" in without:
            self.features.discard("trunc")
            self.weights = {
                n: w for n, w in self.weights.items() if n not in ("rename", "truncate")
            }
        self.renamed = self.shortened = False

    def operations(self) -> list[Operation]:
        """The operations without a read-back: a survey reads the files."""
        if "mkdir" in self.weights and self.draw.chance(80):
            self._do("mkdir", "d")
        for _ in range(self.draw.between(5, 50)):
            self._step(self.draw.weighted(self.weights))
        return self.lines

    def _do(self, name: str, *fields: str | int) -> int:
        lagging = (name == "open" and self.renamed) or (name == "write" and self.shortened)
        if lagging or name == "truncate":
            self._do("sync")
        result = super()._do(name, *fields)
        if name == "sync":
            self.renamed = self.shortened = False
        if result == 0:
            self.renamed |= name == "rename"
            emptied = name == "open" and ",trunc" in str(fields[2])
            self.shortened |= emptied or name == "truncate"
        return result


@dataclass(frozen=True, kw_only=True)
class _Drawn(Choice):
    """One to three cuts, drawn from the case's name and its number of changes.

    While a program is shortened, the cut that was found.
    """

    found: Mapping[str, FoundCut] = field(default_factory=dict)
    made: dict[str, dict[int, FoundCut]] = field(default_factory=dict, repr=False)
    """The found cut, by case and change."""

    def cuts_of(self, case_id: str, changes: int) -> tuple[Cut, ...]:
        known = self.found.get(case_id)
        cuts = known.cuts(changes) if known else self._drawn(case_id, changes)
        self.made[case_id] = {cut.change: FoundCut(cut, changes) for cut in cuts}
        return cuts

    def _drawn(self, case_id: str, changes: int) -> tuple[Cut, ...]:
        draw = Draw(f"cuts of {case_id}")
        places = {draw.between(1, changes) for _ in range(draw.between(1, CUTS_MAX))}
        return tuple(Cut(change, draw.between(1, 2**31)) for change in sorted(places))


class CutsBench:
    """The targets on which power is cut; replaces `Bench`."""

    def __init__(self, targets: Sequence[Target], board: Board, kernel: Kernel) -> None:
        self.targets = targets
        self.real = targets[-1]
        self.board = board
        self.kernel = kernel

    def verdicts(
        self, cases: Sequence[FuzzCase], progress: Callable[[str, int], None]
    ) -> Generator[FuzzVerdict, None, None]:
        """A verdict for each program, the worst of its targets."""
        verdicts: dict[str, FuzzVerdict] = {}
        by_id = {case.case_id: case for case in cases}
        found = {case.case_id: case.cut for case in cases if case.cut}
        for target in self.targets:
            choice = _Drawn(every=None, samples=CUTS_MAX, seed=0, found=found)
            cutting = PowerCuts(target, choice, target.name, files=False)
            programs = [
                replace(case.program(self.board, self.kernel), check_contents=False)
                for case in cases
            ]
            said: set[str] = set()
            for batch in cutting.run(programs, RunOptions(progress=progress)):
                for verdict in _verdicts(batch, by_id, target.name, choice.made):
                    name = verdict.case.case_id
                    said.add(name)
                    verdicts[name] = _worse(verdicts.get(name), verdict)
            for name in by_id.keys() - said:
                silent = FuzzVerdict(
                    case=by_id[name], kind="error", message=f"{target.name}: reported nothing"
                )
                verdicts[name] = _worse(verdicts.get(name), silent)
        yield from (verdicts[name] for name in by_id)

    def differences(
        self, cases: Sequence[FuzzCase], progress: Callable[[str, int], None]
    ) -> list[Difference | None]:
        """The cut of each program that did not recover, in order; None for the others."""
        named = [replace(case, case_id=f"candidate-{n}") for n, case in enumerate(cases)]
        return [verdict.difference for verdict in self.verdicts(named, progress)]


_ORDER = ("exact", "refused", "error", "differs")


def _worse(one: FuzzVerdict | None, other: FuzzVerdict) -> FuzzVerdict:
    return other if one is None or _ORDER.index(other.kind) > _ORDER.index(one.kind) else one


def _verdicts(
    batch: Batch,
    by_id: Mapping[str, FuzzCase],
    target: str,
    made: Mapping[str, Mapping[int, FoundCut]],
) -> Generator[FuzzVerdict, None, None]:
    for failure in batch.failures:
        case = by_id[failure.case_id]
        if failure.message.endswith(NO_CHANGE):
            yield FuzzVerdict(case=case, kind="exact")
        elif failure.not_modelled is not None:
            yield FuzzVerdict(case=case, kind="refused", message=failure.not_modelled)
        else:
            yield FuzzVerdict(case=case, kind="error", message=f"{target}: {failure.message}")
    worst: dict[str, Difference | None] = {}
    if batch.power_cuts.height:
        columns = batch.power_cuts.select("case_id", "change", "verdict", "reason")
        for case_id, change, verdict, reason in columns.iter_rows():
            found = None
            if verdict != RECOVERED:
                cut = made[case_id][change]
                found = Difference(
                    kind="cut",
                    between=("judge", target),
                    seq=-1,
                    operation=f"{verdict}, cut in change {change} by seed {cut.cut.seed}",
                    left=RECOVERED,
                    right=f"{verdict}: {reason}",
                    cut=cut,
                )
            worst[case_id] = worst.get(case_id) or found
    for case_id, difference in worst.items():
        yield FuzzVerdict(
            case=by_id[case_id], kind="differs" if difference else "exact", difference=difference
        )
