"""Experiments: a TOML file of axes whose product is the cases, with figures and claims.

Reads and checks experiments/STUDY/NAME.toml (docs/experiments.md) and expands its grids. What the
claims come to is analysis/verdicts.py's, what a figure looks like report/figures.py's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from flashbed import paths
from flashbed.errors import InputError
from flashbed.formats.energy import Activity
from flashbed.formats.names import SHIPPED, ExperimentId, Name, Text
from flashbed.formats.postmark_script import read_script
from flashbed.formats.profiles import COMPR_OPTIONS, USUAL_COMPRESSOR, load_board, load_kernel
from flashbed.formats.toml import FromFile, Strict, read_model, read_toml
from flashbed.plan.case import NO_ADVICE, Case, ReadAhead
from flashbed.plan.claims import Claim
from flashbed.plan.conditions import NEW, NONE, Condition, Faults, State
from flashbed.plan.database import PACKAGED, PAPERS, Database
from flashbed.plan.patterns import WORKLOADS
from flashbed.plan.quantities import (
    LIST,
    READ_AHEAD_KIB_MAX,
    AgedMetric,
    Count,
    Counts,
    Figure,
    FileBytes,
    FileSystems,
    Names,
    Numbers,
    Patterns,
    Positive,
    RateMetric,
    RequestBytes,
    RequestExtreme,
    RequestMetric,
    Requests,
    SavingMetric,
    StatementMetric,
    TargetNames,
)

__all__ = [
    "Claim",
    "Compared",
    "Experiment",
    "ExperimentError",
    "Figure",
    "Planned",
    "Settings",
    "experiment_names",
    "load_experiment",
    "parse_settings",
    "plan",
    "read_experiment",
    "study_experiments",
    "study_names",
]

SCRIPT_CHARACTERS = 65_536
CASES_MAX = 100_000
WindowKib = Annotated[int, Field(ge=0, le=READ_AHEAD_KIB_MAX)]
Booleans = Annotated[tuple[bool, ...], LIST]
ReadAheads = Annotated[tuple[WindowKib | Literal["shipped"], ...], LIST]


class ExperimentError(InputError):
    """An experiment or a setting that cannot be meant; names the file and the key."""


class Facts(Strict):
    """`[experiment]`: what is asked, where it comes from, and what every run of it records.

    `trace` is recorded besides the usual, `omit` is not kept of it. `activity` is what its programs
    do, where the operations alone do not say it (docs/energy.md).
    """

    id: ExperimentId
    title: Text
    question: Text
    source: Text
    open_measured: bool | None = None
    trace: Annotated[tuple[Literal["flash", "wear"], ...], Field(strict=False)] = ()
    omit: Annotated[tuple[Literal["requests"], ...], Field(strict=False)] = ()
    activity: Activity | None = None


class WorkloadTable(Strict):
    """`[workload]`: which program, and what does not vary. `settle_ns` is the pause before.

    `script` is Postmark's.
    """

    kind: Name
    request_bytes: RequestBytes
    file_bytes: Annotated[int, Field(ge=0, le=1 << 33)] = 0
    settle_ns: Count
    script: Annotated[str, Field(min_length=1, max_length=SCRIPT_CHARACTERS)] | None = None

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.kind not in WORKLOADS:
            raise ValueError(f"kind = {self.kind!r} is no workload: {', '.join(WORKLOADS)}")
        if (self.file_bytes == 0) != (self.kind == "sqlite"):
            raise ValueError("file_bytes: goes with every workload but sqlite")
        if self.script is not None:
            if self.kind != "postmark":
                raise ValueError("script: only postmark has one")
            read_script(self.script)
        return self


def _one_or_more(given: Any) -> Any:
    """A table where a list of tables may be."""
    return [given] if isinstance(given, dict) else given


Advice = Literal["none", "normal", "random", "sequential"]
Compressor = Literal["default", "none", "lzo", "zlib", "zstd"]


class Grid(Strict):
    """`[[grid]]`: lists whose product are cases, and the targets that run them.

    `state` and `faults` are tables or lists of them.
    """

    targets: TargetNames
    board: Names
    kernel: Names
    fs: FileSystems
    read_ahead_kib: ReadAheads
    pattern: Patterns
    requests: Annotated[tuple[Requests, ...], LIST]
    seed: Counts
    state: Annotated[tuple[State, ...], LIST, BeforeValidator(_one_or_more)] = (NEW,)
    faults: Annotated[tuple[Faults, ...], LIST, BeforeValidator(_one_or_more)] = (NONE,)
    database: Annotated[tuple[Database, ...], LIST, BeforeValidator(_one_or_more)] = (PAPERS,)
    bulk_read: Booleans = (False,)
    compressor: Annotated[tuple[Compressor, ...], LIST] = ("default",)
    request_bytes: Annotated[tuple[RequestBytes, ...], LIST] | None = None
    file_bytes: Annotated[tuple[FileBytes, ...], LIST] | None = None
    """Those of `[workload]` where they are missing."""
    pause_ns: Counts = (0,)
    advice: Annotated[tuple[Advice, ...], LIST] = ("none",)

    @model_validator(mode="after")
    def _mountable(self) -> Self:
        others = [fs for fs in self.fs if fs != "ubifs"]
        if others and any(self.bulk_read):
            raise ValueError(f"bulk_read: a mount option of ubifs; {others[0]} has none")
        for fs, compressor in itertools.product(self.fs, self.compressor):
            able = COMPR_OPTIONS.get(fs, ())
            if compressor != USUAL_COMPRESSOR and compressor not in able:
                names = ", ".join([USUAL_COMPRESSOR, *able])
                raise ValueError(f"compressor: {fs} takes {names}, not {compressor}")
        return self

    @property
    def cases(self) -> int:
        """How many it has, some of them perhaps twice."""
        lists = (getattr(self, name) for name in type(self).model_fields if name != "targets")
        return math.prod(len(values) for values in lists if values is not None)


class Compared(Strict):
    """`[compared.TARGET]`: which board and kernel of a target stand for the paper's."""

    board: Name
    kernel: Name
    note: Text


_OF_SINGLE_CASES = get_args(
    RateMetric | RequestMetric | RequestExtreme | StatementMetric | AgedMetric
)


class Measures(Strict):
    """`[measures]`: constants of the analysis. A request slower than `stall_ns` read the chip."""

    source: Text
    stall_ns: Positive


class Experiment(FromFile):
    """A whole experiment file."""

    experiment: Facts
    workload: WorkloadTable
    grid: Annotated[tuple[Grid, ...], LIST]
    measures: Measures | None = None
    compared: dict[str, Compared] = Field(default_factory=dict)
    figure: tuple[Figure, ...] = Field(default=(), strict=False)
    claim: tuple[Claim, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _judgeable(self) -> Self:
        """Savings are about requests that waited, which needs the analysis's constants."""
        metrics = self.metrics
        of_pairs = [metric for metric in metrics if metric in get_args(SavingMetric)]
        if of_pairs and self.measures is None:
            raise ValueError("measures: missing, and there are figures or claims of savings")
        windows: dict[str, set[ReadAhead]] = {}
        for grid in self.grid:
            for fs in grid.fs:
                windows.setdefault(fs, set()).update(grid.read_ahead_kib)
        one_each = all(len(of_fs) == 1 for of_fs in windows.values())
        items: list[Figure | Claim] = [*self.figure, *self.claim]
        for item in items:
            told_apart = one_each or "read_ahead_kib" in item.chosen
            if item.metric in _OF_SINGLE_CASES and not told_apart:
                raise ValueError(
                    f"{item.id}: read_ahead_kib: not chosen, and the metric is of single cases"
                )
        if metrics and len({bulk for grid in self.grid for bulk in grid.bulk_read}) > 1:
            raise ValueError("grid: bulk_read: one value where there are figures or claims")
        if metrics and len({name for grid in self.grid for name in grid.compressor}) > 1:
            raise ValueError("grid: compressor: one value where there are figures or claims")
        return self

    @model_validator(mode="after")
    def _known_to_the_workload(self) -> Self:
        """Every word of every axis means something to the program."""
        kind, workload = self.workload.kind, WORKLOADS[self.workload.kind]
        for number, grid in enumerate(self.grid, start=1):
            at = f"grid.{number}"
            for pattern, fs in itertools.product(grid.pattern, grid.fs):
                why = workload.unknown(pattern)
                if why is not None:
                    raise ValueError(f"{at}.pattern: {why}")
                why = workload.without(pattern, fs)
                if why is not None:
                    raise ValueError(f"{at}: {why}")
            if not workload.pauses and any(grid.pause_ns):
                raise ValueError(f"{at}.pause_ns: {kind} has no pauses")
            if not workload.advises and set(grid.advice) != {NO_ADVICE}:
                raise ValueError(f"{at}.advice: {kind} gives no advice")
            if kind != "sqlite" and set(grid.database) != {PAPERS}:
                raise ValueError(f"{at}.database: {kind} has no database")
            if kind == "sqlite" and grid.file_bytes is not None:
                raise ValueError(f"{at}.file_bytes: goes with every workload but sqlite")
        for where, patterns in self._patterns_asked():
            for pattern in patterns:
                why = workload.unknown(pattern)
                if why is not None:
                    raise ValueError(f"{where}: {why}")
        return self

    def _patterns_asked(self) -> Iterator[tuple[str, list[str]]]:
        """The patterns that figures and claims choose, and where each stands."""
        for figure in self.figure:
            only = [str(value) for value in figure.only.get("pattern", ())]
            published = [point.pattern for point in figure.published]
            yield f"figure {figure.id}: pattern", [*only, *published]
            yield f"figure {figure.id}: numbers", _patterns_of(figure.numbers)
        for claim in self.claim:
            yield f"claim {claim.id}: pattern", list(claim.pattern)
            yield f"claim {claim.id}: numbers", _patterns_of(claim.numbers)

    @model_validator(mode="after")
    def _unique(self) -> Self:
        for axis in _CONDITIONS:
            called: dict[str, Condition] = {}
            for item in [item for grid in self.grid for item in getattr(grid, axis)]:
                if called.setdefault(str(item), item) != item:
                    raise ValueError(f"grid: {axis}: two are called {item}")
        for name, items in (("figure", self.figure), ("claim", self.claim)):
            identifiers = [item.id for item in items]
            for identifier in identifiers:
                if identifiers.count(identifier) > 1:
                    raise ValueError(f"{name}: two have the id {identifier!r}")
        return self

    @model_validator(mode="after")
    def _countable(self) -> Self:
        """Before any case is made: lists of some thousands multiply to millions."""
        cases = sum(grid.cases for grid in self.grid)
        if cases > CASES_MAX:
            raise ValueError(f"grid: {cases:,} cases, {CASES_MAX:,} at most")
        return self

    @property
    def metrics(self) -> list[str]:
        """What its figures and claims are about."""
        return [*(figure.metric for figure in self.figure), *(claim.metric for claim in self.claim)]

    @property
    def id(self) -> str:
        """STUDY/NAME."""
        return self.experiment.id

    @cached_property
    def planned(self) -> tuple[Planned, ...]:
        """All its cases, as `plan` gives them."""
        return tuple(_expanded(self))

    @property
    def targets(self) -> tuple[str, ...]:
        """Every target a grid names, in the order of the file."""
        return tuple(dict.fromkeys(target for grid in self.grid for target in grid.targets))


def _patterns_of(numbers: Numbers) -> list[str]:
    """What numbers of this experiment choose."""
    own = [number for number in numbers.values() if number.experiment is None]
    return [pattern for number in own for pattern in number.pattern]


@dataclass(frozen=True)
class Planned:
    """A case and the targets that are to run it."""

    case: Case
    targets: tuple[str, ...]


Settings = Mapping[str, tuple[str | int | bool, ...]]
"""Axis -> the values of it that are asked for."""
_GRID_AXES = (
    "board", "kernel", "fs", "pattern", "requests", "read_ahead_kib", "bulk_read", "compressor",
    "seed", "pause_ns", "advice",
)  # fmt: skip
_NUMBERS = frozenset({"requests", "seed", "request_bytes", "file_bytes", "pause_ns"})


def _read_ahead(value: str) -> ReadAhead:
    return SHIPPED if value == SHIPPED else int(value)


_YES_OR_NO = {"true": True, "false": False}
_READ: Mapping[str, Callable[[str], int | bool | str]] = {
    **dict.fromkeys(_NUMBERS, int),
    "read_ahead_kib": _read_ahead,
    "bulk_read": _YES_OR_NO.__getitem__,
    "advice": {word: word for word in get_args(Advice)}.__getitem__,
    "compressor": {word: word for word in get_args(Compressor)}.__getitem__,
}
"""Axes with values of their own, and what reads them. What no grid has is added to all."""
_TAKES = {
    "read_ahead_kib": "whole numbers and shipped",
    "bulk_read": "true and false",
    "advice": ", ".join(get_args(Advice)),
    "compressor": ", ".join(get_args(Compressor)),
}
_PROFILED = ("kernel", "board")
_CONDITIONS: Mapping[str, type[Condition]] = {
    "state": State, "faults": Faults, "database": Database,
}  # fmt: skip
_SETTABLE = (*_GRID_AXES, *_CONDITIONS, "request_bytes", "file_bytes")


def study_names() -> list[str]:
    """The studies: folders of experiments/."""
    folder = paths.experiments_folder()
    return sorted({file.parent.name for file in folder.glob("*/*.toml")})


def experiment_names() -> list[str]:
    """Every experiment as STUDY/NAME."""
    folder = paths.experiments_folder()
    return sorted(f"{file.parent.name}/{file.stem}" for file in folder.glob("*/*.toml"))


def study_experiments(study: str) -> list[Experiment]:
    """All experiments of a study, by name. Raises `ExperimentError`."""
    names = [name for name in experiment_names() if name.split("/")[0] == study]
    if not names:
        raise ExperimentError(f"no study {study!r}; there are {', '.join(study_names())}")
    return [load_experiment(name) for name in names]


def load_experiment(name: str) -> Experiment:
    """An experiment by STUDY/NAME, by a NAME that is the only one, or by the path of its file.

    Raises `ExperimentError`.
    """
    path = Path(name)
    if path.suffix != ".toml":
        names = experiment_names()
        found = [known for known in names if name in (known, known.split("/")[1])]
        if len(found) != 1:
            problem = "several experiments are called" if found else "no experiment"
            raise ExperimentError(f"{problem} {name!r}; there are {', '.join(found or names)}")
        path = paths.experiments_folder() / f"{found[0]}.toml"
    experiment = read_experiment(path)
    for number, grid in enumerate(experiment.grid, start=1):
        for kernel_name, target in itertools.product(grid.kernel, grid.targets):
            if target not in load_kernel(kernel_name).kernel.targets:
                raise ExperimentError(
                    f"{paths.shown(path)}: grid.{number}.kernel: {kernel_name} does not run on "
                    f"{target} (boards/kernels/{kernel_name}.toml, kernel.targets)"
                )
    return experiment


def read_experiment(path: Path) -> Experiment:
    """Reads an experiment's file, not what it names. Raises `ExperimentError`.

    Paths in it are meant from the folder it is in, but for those in a package.
    """
    values = read_toml(path, ExperimentError)
    for table in _databases(values):
        for key in ("script", "file"):
            if isinstance(table.get(key), str) and not PACKAGED.match(table[key]):
                table[key] = str(path.parent / table[key])
    experiment = read_model(Experiment, values, path, ExperimentError)
    experiment._path = path.resolve()
    if experiment.workload.script is not None:
        _check_script(experiment, experiment.workload.script)
    return experiment


def _databases(values: Any) -> Iterator[dict[str, Any]]:
    """The tables `database` of its grids, before anything of the file is checked."""
    grids = values.get("grid")
    for grid in grids if isinstance(grids, list) else []:
        found = grid.get("database", []) if isinstance(grid, dict) else []
        tables = found if isinstance(found, list) else [found]
        yield from (table for table in tables if isinstance(table, dict))


def _check_script(experiment: Experiment, script: str) -> None:
    """Whether a script says of the axes what the file does; `--set` may change it afterwards."""
    settings, workload, grids = read_script(script), experiment.workload, experiment.grid
    axes: dict[str, tuple[str, set[object]]] = {
        "transactions": ("requests", {value for grid in grids for value in grid.requests}),
        "read_bytes": (
            "request_bytes",
            {size for grid in grids for size in grid.request_bytes or (workload.request_bytes,)},
        ),
        "size_high_bytes": (
            "file_bytes",
            {size for grid in grids for size in grid.file_bytes or (workload.file_bytes,)},
        ),
        "seed": ("seed", {value for grid in grids for value in grid.seed}),
        "fill_valid": ("state.valid", {state.valid for grid in grids for state in grid.state}),
        "fill_invalid": (
            "state.invalid",
            {state.invalid for grid in grids for state in grid.state},
        ),
    }
    for setting, (axis, values) in axes.items():
        said = getattr(settings, setting)
        if setting in settings.said and said not in values:
            raise ExperimentError(
                f"{paths.shown(experiment.path)}: grid: {axis}: the script has {said}, no grid has"
            )


def parse_settings(texts: Sequence[str]) -> Settings:
    """`AXIS=VALUE[,VALUE]` texts as axis -> values. Raises `ExperimentError`."""
    settings: dict[str, tuple[str | int | bool, ...]] = {}
    for text in texts:
        axis, equals, values = text.partition("=")
        if not equals or axis not in _SETTABLE or not all(values.split(",")):
            raise ExperimentError(
                f"--set {text}: not AXIS=VALUE[,VALUE] with an axis of {', '.join(_SETTABLE)}"
            )
        try:
            convert: Callable[[str], str | int | bool] = _READ.get(axis, str)
            settings[axis] = tuple(convert(value) for value in values.split(","))
        except (ValueError, KeyError):
            what = _TAKES.get(axis, "whole numbers")
            raise ExperimentError(f"--set {text}: {axis} takes {what}") from None
    return settings


def _apply(experiment: Experiment, settings: Settings) -> Experiment:
    """Narrows the grids to the values asked for.

    A number that no grid has is added to all, a kernel or board with a profile to those it can run.
    """
    values = experiment.model_dump()
    for axis, wanted in settings.items():
        if axis in _CONDITIONS:
            _set_condition(experiment, values["grid"], axis, [str(value) for value in wanted])
            continue
        if axis not in _GRID_AXES:
            if len(wanted) != 1:
                raise ExperimentError(f"--set {axis}: takes one value")
            values["workload"][axis] = wanted[0]
            for grid in values["grid"]:
                grid.pop(axis, None)
            continue
        known = {value for grid in values["grid"] for value in grid[axis]}
        new = [value for value in wanted if value not in known]
        if axis in _PROFILED:
            added = _with_profile(values["grid"], axis, [str(value) for value in new])
            values["grid"] = [*values["grid"], *added]
            new = []
        elif new and axis not in _READ:
            there_are = ", ".join(sorted(map(str, known)))
            raise ExperimentError(f"--set {axis}={new[0]}: not in {experiment.id}: {there_are}")
        for grid in values["grid"]:
            grid[axis] = [value for value in wanted if value in grid[axis] or value in new]
    axes = (*_GRID_AXES, *_CONDITIONS)
    values["grid"] = [grid for grid in values["grid"] if all(grid[axis] for axis in axes)]
    if not values["grid"]:
        raise ExperimentError(f"no case of {experiment.id} is left by the settings")
    narrowed = read_model(Experiment, values, experiment.path, ExperimentError)
    narrowed._path = experiment.path
    return narrowed


def _set_condition(
    experiment: Experiment, grids: Sequence[dict[str, Any]], axis: str, wanted: Sequence[str]
) -> None:
    """Narrows to what is called so; what no grid has is read as what it is made of, for all."""
    known = {str(given): given for grid in experiment.grid for given in getattr(grid, axis)}
    try:
        new = {name: _CONDITIONS[axis].parse(name) for name in wanted if name not in known}
    except InputError as why:
        raise ExperimentError(f"--set {axis}={why}") from None
    model = _CONDITIONS[axis]
    for grid in grids:
        there = {str(model.model_validate(given)) for given in grid[axis]}
        chosen = [new.get(name) or known[name] for name in wanted if name in there | new.keys()]
        grid[axis] = [given.model_dump() for given in chosen]


def _with_profile(
    grids: Sequence[dict[str, Any]], axis: str, names: Sequence[str]
) -> list[dict[str, Any]]:
    """The grids again with a kernel or board that none has, on the targets that can run it."""
    added = []
    for name in names:
        targets = load_kernel(name).kernel.targets if axis == "kernel" else None
        if axis == "board":
            load_board(name)
        for grid in grids:
            able = [target for target in grid["targets"] if targets is None or target in targets]
            if able:
                added.append({**grid, axis: [name], "targets": able})
    return added


def plan(experiment: Experiment, settings: Settings | None = None) -> list[Planned]:
    """The cases of an experiment, each once, with their targets.

    Cases of one board and kernel stand together, otherwise in the order of the grids.
    """
    if settings:
        return _expanded(_apply(experiment, settings))
    return list(experiment.planned)


def _expanded(chosen: Experiment) -> list[Planned]:
    targets_of: dict[Case, tuple[str, ...]] = {}
    for grid in chosen.grid:
        axes: dict[str, Sequence[Any]] = {
            axis: getattr(grid, axis) for axis in (*_GRID_AXES, *_CONDITIONS)
        }
        axes["file_bytes"] = grid.file_bytes or (chosen.workload.file_bytes,)
        axes["request_bytes"] = grid.request_bytes or (chosen.workload.request_bytes,)
        for values in itertools.product(*axes.values()):
            case = Case(experiment=chosen.id, **dict(zip(axes, values, strict=True)))
            before = targets_of.get(case, ())
            targets_of[case] = tuple(dict.fromkeys((*before, *grid.targets)))
    stacks = list(dict.fromkeys((case.board, case.kernel) for case in targets_of))
    planned = [Planned(case, targets) for case, targets in targets_of.items()]
    return sorted(planned, key=lambda item: stacks.index((item.case.board, item.case.kernel)))
