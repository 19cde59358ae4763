"""Searches what to set below a program (docs/models/advice.md); `flashbed advise` prints it.

The search measures on the simulator only. Who calls it runs the cases, and says how many years a
choice lasts: both take time, and a person is told of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from flashbed.answers.advice.front import (
    Row,
    bases,
    combined,
    front,
    gain,
    helping,
    one_at_a_time,
    usable,
)
from flashbed.answers.advice.limits import GOALS, Limit
from flashbed.answers.advice.settings import Combination, Factor, settings_of
from flashbed.answers.advice.words import Durability
from flashbed.answers.analysis.compared_choices import MEASURES
from flashbed.api.comparing import measured_cases
from flashbed.base.errors import InputError, RunError
from flashbed.plan.case import AXES
from flashbed.plan.experiment import Experiment
from flashbed.plan.narrowing import Settings, parse_settings, plan
from flashbed.plan.planned import Plan, Planned, as_plan
from flashbed.running.programs import programs_of
from flashbed.stack.file_systems import FILE_SYSTEMS, USUAL_FIRST
from flashbed.stack.names import DEFAULT_WINDOW

__all__ = ["Advice", "Question", "Search", "question_of"]

_DATABASE = re.compile(r"^open .*-(?:journal|wal)(?: |$)", re.MULTILINE)
"""The line of a program that opens a journal of SQLite."""
_SHOWN = 6
Measure = Callable[[Plan], Mapping[str, str]]
"""Runs cases on the simulator; returns why a case has no row, by its name."""
Years = Callable[[Plan], Mapping[str, tuple[float | None, float | None]]]


@dataclass(frozen=True, kw_only=True)
class Question:
    """A program, what is held, how it is now, what the advice is for.

    `held` are settings of every choice, `tried` those that the user gave several values, `as_is`
    the values of axes in which the experiment has several and none was chosen.
    """

    experiment: Experiment
    held: Mapping[str, str]
    tried: Mapping[str, tuple[str, ...]]
    as_is: Mapping[str, str]
    now: Combination
    file_systems: tuple[str, ...]
    goal: str
    runs: int
    """How many combinations run at most."""
    limits: tuple[Limit, ...] = ()
    apart: bool = True
    """Whether settings are tried that change what a power cut takes."""

    def planned(self, choice: Combination) -> Planned:
        """Its case. Raises `InputError` for one that cannot be."""
        words = {**self.as_is, **self.held, **choice.values}
        settings = parse_settings([f"{key}={value}" for key, value in words.items()])
        (found,) = plan(self.experiment, settings)
        return found


def question_of(
    experiment: Experiment, settings: Sequence[str], now: Sequence[str], **asked: Any
) -> Question:
    """The question that `--set` and `--now` ask; `asked` are further fields of `Question`.

    Raises `InputError` unless it is of one program on one board.
    """
    selected, words, today = parse_settings(settings), _words(settings), _words(now)
    parse_settings(now)
    for key, value in today.items():
        if "," in value:
            raise InputError(f"--now {key}={value}: takes one value; --set tries several")
        if key in words and value not in words[key].split(","):
            raise InputError(f"--now {key}={value}: --set {key}={words[key]} has another")
    held = {key: value for key, value in words.items() if "," not in value}
    tried = {key: tuple(value.split(",")) for key, value in words.items() if "," in value}
    able = _file_systems(experiment, selected)
    first = today.get("fs") or next(fs for fs in USUAL_FIRST if fs in able)
    if first not in able:
        raise InputError(f"--now fs={first}: not one of {', '.join(able)}")
    as_is = _as_is(plan(experiment, {**selected, "fs": (first,)}), taken=[*words])
    start = {key: values[0] for key, values in tried.items()} | today | {"fs": first}
    tried.pop("fs", None)
    held.pop("fs", None)
    start = {key: value for key, value in start.items() if key not in held}
    return Question(
        experiment=experiment, held=held, tried=tried, as_is=as_is,
        now=Combination(()).with_values(start), file_systems=tuple(able), **asked,
    )  # fmt: skip


def _words(settings: Sequence[str]) -> dict[str, str]:
    pairs = (text.partition("=") for text in settings)
    return {name: value for name, _, value in pairs}


def _file_systems(experiment: Experiment, selected: Settings) -> list[str]:
    """The file systems of the experiment that the simulator has with these settings, usual first.

    Raises `InputError` if there are none.
    """
    named = selected.get("fs") or [*USUAL_FIRST, *FILE_SYSTEMS]
    there = {fs for grid in experiment.grid for fs in grid.of("fs")} | set(selected.get("fs", ()))
    able = []
    why: InputError | None = None
    for fs in dict.fromkeys(str(name) for name in named if name in there):
        try:
            cases = plan(experiment, {**selected, "fs": (fs,)})
        except InputError as error:
            why = error
            continue
        able += [fs] if "sim" in cases.targets else []
    if not able:
        raise why or InputError(f"{experiment.id}: none of its cases runs on the simulator")
    return able


def _as_is(whole: Plan, taken: Collection[str]) -> dict[str, str]:
    """The value of each axis in which a plan has several. Raises `InputError` for another program.

    A window that depends on the file system is the kernel's own.
    """
    found = {}
    for axis, about in AXES.items():
        values = list(dict.fromkeys(str(getattr(case, axis)) for case in whole.cases))
        if len(values) == 1 or axis in {key.partition(".")[0] for key in taken}:
            continue
        if axis in ("board", "kernel") or not about.chosen:
            more = ", …" if len(values) > _SHOWN else ""
            there_are = ", ".join(values[:_SHOWN])
            raise InputError(
                f"advise takes one program on one board; --set {axis}= chooses of {there_are}{more}"
            )
        found[axis] = DEFAULT_WINDOW if axis == "read_ahead_kib" else values[0]
    return found


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What a search found; every choice has a row of measures in `rows`."""

    question: Question
    rows: Mapping[Combination, Row]
    front: tuple[Combination, ...]
    """The choices that no other beats, and now, the best by the goal first."""
    advised: Combination
    base: Combination
    """The advised file system as it is."""
    measure: str
    """The measure that stood for the goal."""
    missed: tuple[Limit, ...] = ()
    """Limits that no choice keeps, or whose measure is not known."""
    weaker: tuple[Combination, ...] = ()
    """Better choices of which a power cut takes more than it does now."""
    alone: tuple[Combination, ...] = ()
    """The base with one setting each, in the order of settings."""
    apart: tuple[Combination, ...] = ()
    """The advised choice with one setting each that changes what a power cut takes."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Choices that did not run, by their label, and why."""
    calls: Mapping[str, int] = field(default_factory=dict)
    """How often the program makes each call."""

    @property
    def now(self) -> Combination:
        """How it is now."""
        return self.question.now


class Search:
    """Runs the steps of a search. Rows of what has run are kept."""

    def __init__(
        self, question: Question, directory: Path, measure: Measure, years: Years | None
    ) -> None:
        self.question = question
        self.rows: dict[Combination, Row] = {}
        self.left_out: dict[str, str] = {}
        self._directory, self._measure, self._years = directory, measure, years
        self._planned: dict[Combination, Planned] = {}
        self._run: set[Combination] = set()

    def run(self, choices: Sequence[Combination]) -> None:
        """Measures the choices that were not run yet."""
        new = [choice for choice in dict.fromkeys(choices) if choice not in self._run]
        self._run |= set(new)
        by_case: dict[str, list[Combination]] = {}
        chosen = []
        for choice in new:
            try:
                planned = self.question.planned(choice)
            except InputError as why:
                self.left_out[choice.label] = str(why)
                continue
            name = planned.case.case_id
            if name not in by_case:
                chosen.append(planned)
            by_case.setdefault(name, []).append(choice)
            self._planned[choice] = planned
        if not chosen:
            return
        failed = self._measure(as_plan(chosen))
        found = measured_cases(self._directory, by_case, target="sim", ours=True)
        rows = {row["case_id"]: row for row in found.to_dicts()}
        for name, those in by_case.items():
            for choice in those:
                if name in rows:
                    self.rows[choice] = rows[name]
                else:
                    self.left_out[choice.label] = failed.get(name, "was not measured")

    def first(self) -> list[Combination]:
        """Now, and each file system with nothing set. Raises `RunError` if now did not run."""
        starts = bases(self.question.now, self.question.file_systems)
        self.run(starts)
        if starts[0] not in self.rows:
            raise RunError(f"{starts[0].label}: {self.left_out[starts[0].label]}")
        return [choice for choice in starts if choice in self.rows]

    @cached_property
    def _settings(self) -> list[Factor]:
        """The settings that are tried."""
        question = self.question
        found = settings_of(
            self._planned[question.now].case, question.experiment.workload.kind, self.calls,
            question.file_systems, keeps_database=bool(_DATABASE.search(self._body)),
            taken=question.held,
        )  # fmt: skip
        own = [Factor(key=key, values=values) for key, values in question.tried.items()]
        kept = [each for each in found if each.key not in question.tried]
        return [each for each in [*own, *kept] if question.apart or not each.apart]

    @cached_property
    def _body(self) -> str:
        """The operations that are measured, now."""
        case = self._planned[self.question.now].case
        (program,) = programs_of(self.question.experiment, [case])
        return program.body.rpartition("\nmark")[2]

    @cached_property
    def calls(self) -> dict[str, int]:
        """How often the program makes each call."""
        return dict(Counter(line.partition(" ")[0] for line in self._body.splitlines() if line))

    def best(self, told: Callable[[str], None]) -> list[Combination]:
        """The front of each file system and now, the best by the goal first.

        `told` takes what is done next.
        """
        starts = self.first()
        alone = [each for base in starts for each in self._alone(base)]
        told(f"{len(alone)} settings, each alone")
        self.run(alone)
        measures = self._objectives()
        goal = self._goal(measures)
        share = max(1, self.question.runs // len(starts))
        together: list[Combination] = []
        for base in starts:
            levels = helping(base, self.rows, measures)
            together += combined(base, self.rows, levels, goal=goal, most=share)
        new = [choice for choice in dict.fromkeys(together) if choice not in self.rows]
        if new:
            told(f"{len(new)} combinations of what helps")
            self.run(new)
        found = [
            choice
            for base in starts
            for choice in front(self._rows_of([base.fs]), measures)
        ]  # fmt: skip
        if not found:
            raise RunError("calls of the program failed with every configuration")
        found += [] if self.question.now in found else [self.question.now]
        self._with_years(found)
        return self._sorted(found, goal)

    def to_cut(self, best: Sequence[Combination]) -> list[Combination]:
        """Those of the best that stand for the others of their file system, and now."""
        chosen = [self.question.now]
        for fs in self.question.file_systems:
            chosen += [choice for choice in best if choice.fs == fs][:1]
        return list(dict.fromkeys(chosen))

    def not_cut(self, found: Advice, taken: Collection[Combination]) -> list[Combination]:
        """What the advice names and was not cut: the advised choice, weaker ones, those apart.

        Where the flash does exactly what it does without a setting, a cut finds the same.
        """
        base = self.rows[found.advised]
        new = [choice for choice in found.apart if not _same_work(self.rows[choice], base)]
        named = [found.advised, *found.weaker, *new]
        return [choice for choice in named if choice not in taken]

    def _rows_of(self, file_systems: Collection[str]) -> dict[Combination, Row]:
        return {choice: row for choice, row in self.rows.items() if choice.fs in file_systems}

    def advice(
        self, best: Sequence[Combination], taken: Mapping[Combination, Durability],
        told: Callable[[str], None],
    ) -> Advice:  # fmt: skip
        """The advice: the best of which a power cut takes no more than now, and what is apart.

        `taken` is what cuts found. A choice that was not cut is as the best one of its file system.
        """
        now, measures = self.question.now, self._objectives()
        goal = self._goal(measures)
        worse = _worse(best, taken, now)
        able = [each for each in best if usable(self.rows[each]) and each not in worse]
        whole = front({each: self.rows[each] for each in able}, measures)
        shown = self._sorted(dict.fromkeys([*whole, now]), goal)
        able = [each for each in shown if each in whole]
        able, missed = self._within(able or [now])
        advised = able[0]
        apart = one_at_a_time(advised, self._settings, apart=True)
        if apart:
            told(f"{len(apart)} settings that change what a power cut takes")
        self.run(apart)
        base = next(each for each in self.first() if each.fs == advised.fs)
        unbeaten = front({each: self.rows[each] for each in [*worse, advised]}, measures)
        better = [
            each for each in unbeaten if self._better(self.rows[each], self.rows[advised], goal)
        ]
        return Advice(
            question=self.question, rows=self.rows, front=tuple(shown), advised=advised, base=base,
            measure=self._goal_column(goal), missed=tuple(missed), weaker=tuple(better),
            alone=tuple(each for each in self._alone(base) if each in self.rows),
            apart=tuple(each for each in apart if each in self.rows),
            left_out=self.left_out, calls=self.calls,
        )  # fmt: skip

    def _alone(self, base: Combination) -> list[Combination]:
        return one_at_a_time(base, self._settings, apart=False)

    def _objectives(self) -> list[str]:
        """The measures of the front: those that are known of every choice."""
        space = ["left_bytes"] if self.question.goal == "space" else []
        known = [
            name
            for name in ("time_ns", "p99_ns", "page_writes", "energy_nj", *space)
            if all(row[name] is not None for row in self.rows.values())
        ]
        return known if "time_ns" in known else ["flash_time_ns", *known]

    def _goal(self, measures: Sequence[str]) -> str:
        """The measure that the search goes by. Raises `InputError` if none is known."""
        for name in GOALS[self.question.goal]:
            if name in measures:
                return name
        raise InputError(f"--goal {self.question.goal}: is not known on this board")

    def _goal_column(self, goal: str) -> str:
        return "years_low" if self._years is not None and self.question.goal == "lifetime" else goal

    def _with_years(self, choices: Sequence[Combination]) -> None:
        """Adds years to the rows of these choices."""
        if self._years is None:
            return
        found = self._years(as_plan([self._planned[choice] for choice in choices]))
        for choice in choices:
            row = self.rows[choice]
            low, high = found.get(row["case_id"], (None, None))
            self.rows[choice] = {**row, "years_low": low, "years_high": high}

    def _within(self, able: Sequence[Combination]) -> tuple[list[Combination], list[Limit]]:
        """The choices that keep every limit, and the limits that none keeps."""
        kept, missed = list(able), []
        for limit in self.question.limits:
            within = [choice for choice in kept if limit.holds(self.rows[choice])]
            if within:
                kept = within
            else:
                missed.append(limit)
        return kept, missed

    def _sorted(self, choices: Collection[Combination], goal: str) -> list[Combination]:
        """The best by the goal first; of those equal in it, the best of the rest of the front."""

        def beaten_by(choice: Combination) -> int:
            row = self.rows[choice]
            return sum(self._better(self.rows[other], row, goal) for other in choices)

        now = self.question.now
        return sorted(
            choices, key=lambda choice: (beaten_by(choice), choice != now, len(choice.sets))
        )

    def _better(self, one: Row, two: Row, goal: str) -> bool:
        if not usable(two):
            return usable(one)
        if self._goal_column(goal) == "years_low" and one["years_low"] != two["years_low"]:
            longer = (one["years_low"] or 0.0, two["years_low"] or 0.0)
            return gain({goal: longer[1]}, {goal: longer[0]}, goal) > 1
        return gain(one, two, goal) > 1


def _worse(
    best: Sequence[Combination], taken: Mapping[Combination, Durability], now: Combination
) -> set[Combination]:
    """The choices of which a power cut takes more than now, as far as that is known."""
    today = taken.get(now)
    if today is None:
        return set()
    of_fs = {choice.fs: taken[choice] for choice in reversed(best) if choice in taken}
    return {
        choice
        for choice in best
        if (found := taken.get(choice, of_fs.get(choice.fs))) and found.takes_more_than(today)
    }


def _same_work(one: Row, two: Row) -> bool:
    """Whether the flash did the same in both, to the nanosecond."""
    return all(one[name] == two[name] for name in MEASURES)
