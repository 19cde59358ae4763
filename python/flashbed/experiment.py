"""Experiments: a TOML file of axes whose product is the cases, with figures and claims.

Reads and checks experiments/STUDY/NAME.toml (docs/experiments.md) and expands its grids. What the
claims come to is analysis/claims.py's, what a figure looks like figures.py's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from flashbed import places
from flashbed.case import Case
from flashbed.conditions import NEW, NONE, Condition, Faults, State
from flashbed.energy.constants import Activity
from flashbed.errors import InputError
from flashbed.profiles import load_board, load_kernel
from flashbed.toml_models import FromFile, Strict, read_model, read_toml
from flashbed.workloads import WORKLOADS

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

Text = Annotated[str, Field(min_length=1)]
Positive = Annotated[int, Field(gt=0, lt=2**40)]
Count = Annotated[int, Field(ge=0, lt=2**40)]
FileSystem = Literal["jffs2", "yaffs2", "ubifs", "mtd", "mtd-driver"]
Pattern = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
"""A word that the workload knows: `sequential`, `random`, and each workload's own."""
TargetName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*$")]
DrawnSaving = Literal[
    "time_saved_pct", "flash_reads_saved_pct", "energy_saved_pct", "component_energy_saved_pct"
]
SavingMetric = Literal[DrawnSaving, "cache_hit_pct", "prefetch_kib"]
"""What is said of pairs of cases with read-ahead on and off (analysis/measures.py)."""
RateMetric = Literal[
    "time_ms",
    "flash_time_ms",
    "response_ms",
    "flash_response_ms",
    "throughput_mb_s",
    "flash_reads",
    "flash_programs",
    "flash_erases",
    "flash_reads_per_request",
    "flash_programs_per_request",
    "flash_share_pct",
    "background_flash_pct",
    "energy_mj",
    "energy_cpu_mj",
    "energy_mem_mj",
    "component_energy_mj",
]
"""What is said of one case (analysis/rates.py)."""
RequestMetric = Literal["latency_ms", "flash_pages"]
"""What is said of one request (analysis/rates.py)."""


class ExperimentError(InputError):
    """An experiment or a setting that cannot be meant; names the file and the key."""


_LIST = Field(min_length=1, strict=False)  # TOML has lists, a frozen model tuples
Texts = Annotated[tuple[Text, ...], _LIST]
Positives = Annotated[tuple[Positive, ...], _LIST]
Counts = Annotated[tuple[Count, ...], _LIST]
Booleans = Annotated[tuple[bool, ...], _LIST]
FileSystems = Annotated[tuple[FileSystem, ...], _LIST]
Patterns = Annotated[tuple[Pattern, ...], _LIST]
TargetNames = Annotated[tuple[TargetName, ...], _LIST]


class Facts(Strict):
    """`[experiment]`: what is asked, where it comes from, and what every run of it records.

    `activity` is what its programs do, where the operations alone do not say it (docs/energy.md).
    """

    id: Text
    title: Text
    question: Text
    source: Text
    open_measured: bool | None = None
    trace: Annotated[tuple[Literal["flash", "wear"], ...], Field(strict=False)] = ()
    activity: Activity | None = None


class WorkloadTable(Strict):
    """`[workload]`: which program, and what does not vary. `settle_ns` is the pause before."""

    kind: Text
    request_bytes: Positive
    file_bytes: Positive
    settle_ns: Count

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.kind not in WORKLOADS:
            raise ValueError(f"kind = {self.kind!r} is no workload: {', '.join(WORKLOADS)}")
        return self


def _one_or_more(given: Any) -> Any:
    """A table where a list of tables may be."""
    return [given] if isinstance(given, dict) else given


class Grid(Strict):
    """`[[grid]]`: lists whose product are cases, and the targets that run them.

    `state` and `faults` are tables or lists of them.
    """

    targets: TargetNames
    board: Texts
    kernel: Texts
    fs: FileSystems
    read_ahead_kib: Counts
    pattern: Patterns
    requests: Positives
    seed: Counts
    state: Annotated[tuple[State, ...], _LIST, BeforeValidator(_one_or_more)] = (NEW,)
    faults: Annotated[tuple[Faults, ...], _LIST, BeforeValidator(_one_or_more)] = (NONE,)
    bulk_read: Booleans = (False,)
    request_bytes: Positives | None = None
    """Those of `[workload]` where it is missing."""

    @model_validator(mode="after")
    def _mountable(self) -> Self:
        others = [fs for fs in self.fs if fs != "ubifs"]
        if others and any(self.bulk_read):
            raise ValueError(f"bulk_read: a mount option of ubifs; {others[0]} has none")
        return self


class Compared(Strict):
    """`[compared.TARGET]`: which board and kernel of a target stand for the paper's."""

    board: Text
    kernel: Text
    note: Text


class Measures(Strict):
    """`[measures]`: constants of the analysis. A request slower than `stall_ns` read the chip."""

    source: Text
    stall_ns: Positive


class PublishedPoint(Strict):
    """`[[figure.published]]`: a value the paper states in words, for all its file systems."""

    fs: FileSystems
    pattern: Pattern
    requests: Positive
    request_bytes: Positive | None = None
    value: float = Field(strict=False)
    text: Text


class Figure(Strict):
    """`[[figure]]`: one figure of the report. Savings are drawn over the number of requests."""

    id: Text
    title: Text
    caption: Text
    metric: DrawnSaving | RateMetric | RequestMetric
    x: Literal["requests", "request_bytes", "request", "pattern", "fs"] = "requests"
    published: tuple[PublishedPoint, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _drawable(self) -> Self:
        if (self.x == "request") != (self.metric in get_args(RequestMetric)):
            raise ValueError("x = 'request' goes with latency_ms and flash_pages, and no other")
        return self


class Claim(Strict):
    """`[[claim]]`: a sentence of the paper as an inequality `reduce(metric) operator bound`.

    `published` is the number the paper gives, null if it gives none; `bound` and `tolerance` are
    ours where it does not, and `reading` says why. `each` names what gets a verdict of its own.
    """

    id: Text
    text: Text
    source: Text
    reading: Text
    published: float | None = Field(default=None, strict=False)
    unit: Text
    metric: SavingMetric | RateMetric
    fs: FileSystems
    pattern: Patterns
    requests: Positives
    request_bytes: Positives | None = None
    reduce: Literal[
        "min",
        "max",
        "mean",
        "only",
        "largest_rise",
        "last_above_lowest",
        "last_above_rest",
        "largest_difference_between_fs",
        "smallest_ratio_of_patterns",
        "smallest_ratio_of_fs",
        "largest_over_smallest",
    ]
    operator: Literal[">", ">=", "<", "<=", "within"]
    bound: float = Field(strict=False)
    tolerance: float | None = Field(default=None, strict=False)
    also_kernels: tuple[str, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.operator == "within") != (self.tolerance is not None):
            raise ValueError("tolerance: goes with the operator `within`, and with no other")
        if self.reduce == "only" and len(self.pattern) * len(self.requests) != 1:
            raise ValueError("reduce = 'only' takes one pattern and one number of requests")
        steps = ("largest_rise", "last_above_lowest", "last_above_rest")
        if self.reduce in steps and len(self.requests) < 2:
            raise ValueError(f"reduce = {self.reduce!r} takes two numbers of requests or more")
        if self.reduce == "largest_difference_between_fs" and len(self.fs) != 2:
            raise ValueError("reduce = 'largest_difference_between_fs' takes two file systems")
        if self.reduce == "smallest_ratio_of_patterns" and len(self.pattern) < 2:
            raise ValueError(f"reduce = {self.reduce!r} takes two patterns or more")
        if self.reduce == "smallest_ratio_of_fs" and len(self.fs) < 2:
            raise ValueError(f"reduce = {self.reduce!r} takes two file systems or more")
        return self

    @property
    def of_pairs(self) -> bool:
        """Whether it is about cases with read-ahead on and off."""
        return self.metric in get_args(SavingMetric)


class Experiment(FromFile):
    """A whole experiment file."""

    experiment: Facts
    workload: WorkloadTable
    grid: Annotated[tuple[Grid, ...], _LIST]
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
        windows = {window for grid in self.grid for window in grid.read_ahead_kib}
        if len(of_pairs) < len(metrics) and len(windows) != 1:
            raise ValueError("grid: read_ahead_kib: one value where a metric is of single cases")
        if metrics and len({bulk for grid in self.grid for bulk in grid.bulk_read}) > 1:
            raise ValueError("grid: bulk_read: one value where there are figures or claims")
        return self

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

    @property
    def metrics(self) -> list[str]:
        """What its figures and claims are about."""
        return [figure.metric for figure in self.figure] + [claim.metric for claim in self.claim]

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


@dataclass(frozen=True)
class Planned:
    """A case and the targets that are to run it."""

    case: Case
    targets: tuple[str, ...]


Settings = Mapping[str, tuple[str | int | bool, ...]]
"""Axis -> the values of it that are asked for."""
_GRID_AXES = (
    "board", "kernel", "fs", "pattern", "requests", "read_ahead_kib", "bulk_read", "seed",
)  # fmt: skip
_NUMBERS = frozenset({"requests", "read_ahead_kib", "seed", "request_bytes", "file_bytes"})
_YES_OR_NO = {"true": True, "false": False}
_READ: Mapping[str, Callable[[str], int | bool]] = {
    **dict.fromkeys(_NUMBERS, int),
    "bulk_read": _YES_OR_NO.__getitem__,
}
"""Axes that are no words, and what reads them. What no grid has is added to all."""
_PROFILED = ("kernel", "board")
_CONDITIONS: Mapping[str, type[Condition]] = {"state": State, "faults": Faults}
_SETTABLE = (*_GRID_AXES, *_CONDITIONS, "request_bytes", "file_bytes")


def study_names() -> list[str]:
    """The studies: folders of experiments/."""
    folder = places.experiments_folder()
    return sorted({file.parent.name for file in folder.glob("*/*.toml")})


def experiment_names() -> list[str]:
    """Every experiment as STUDY/NAME."""
    folder = places.experiments_folder()
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
        path = places.experiments_folder() / f"{found[0]}.toml"
    experiment = read_experiment(path)
    for number, grid in enumerate(experiment.grid, start=1):
        for kernel_name, target in itertools.product(grid.kernel, grid.targets):
            if target not in load_kernel(kernel_name).kernel.targets:
                raise ExperimentError(
                    f"{places.shown(path)}: grid.{number}.kernel: {kernel_name} does not run on "
                    f"{target} (boards/kernels/{kernel_name}.toml, kernel.targets)"
                )
    return experiment


def read_experiment(path: Path) -> Experiment:
    """Reads an experiment's file, not what it names. Raises `ExperimentError`."""
    experiment = read_model(Experiment, read_toml(path, ExperimentError), path, ExperimentError)
    experiment._path = path.resolve()
    return experiment


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
            what = "whole numbers" if axis in _NUMBERS else "true and false"
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
        points = itertools.product(
            grid.board, grid.kernel, grid.fs, grid.pattern, grid.requests,
            grid.read_ahead_kib, grid.bulk_read, grid.seed, grid.state, grid.faults,
            grid.request_bytes or (chosen.workload.request_bytes,),
        )  # fmt: skip
        for (
            board,
            kernel,
            fs,
            pattern,
            requests,
            read_ahead_kib,
            bulk_read,
            seed,
            state,
            faults,
            size,
        ) in points:
            case = Case(
                experiment=chosen.id,
                board=board,
                kernel=kernel,
                fs=fs,
                read_ahead_kib=read_ahead_kib,
                bulk_read=bulk_read,
                pattern=pattern,
                requests=requests,
                request_bytes=size,
                file_bytes=chosen.workload.file_bytes,
                seed=seed,
                state=state,
                faults=faults,
            )
            before = targets_of.get(case, ())
            targets_of[case] = tuple(dict.fromkeys((*before, *grid.targets)))
    stacks = list(dict.fromkeys((case.board, case.kernel) for case in targets_of))
    planned = [Planned(case, targets) for case, targets in targets_of.items()]
    return sorted(planned, key=lambda item: stacks.index((item.case.board, item.case.kernel)))
