"""Experiments: a TOML file of axes whose product is the cases, with figures and claims.

Reads and checks experiments/STUDY/NAME.toml (docs/reference/experiment-file.md) and expands its
grids (plan/grid.py). plan/narrowing.py implements `--set`, answers/analysis/verdicts.py judges the
claims, report/figures draws the figures.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, model_validator

from flashbed.base import paths
from flashbed.base.errors import InputError
from flashbed.base.toml import FromFile, Strict, read_model, read_toml
from flashbed.plan.axes import Count, Positive, ReadAhead, RequestBytes
from flashbed.plan.case import AXES, NO_ADVICE
from flashbed.plan.claims import Claim
from flashbed.plan.database import PACKAGED, PAPERS
from flashbed.plan.findings import Finding
from flashbed.plan.grid import LIST, Grid
from flashbed.plan.of_recording import (
    SQL_SUFFIX,
    experiment_of_operations,
    experiment_of_script,
    is_operations,
    written_experiment,
)
from flashbed.plan.patterns import WORKLOADS
from flashbed.plan.planned import Plan, Planned, plan_of
from flashbed.plan.quantities import (
    AgedMetric,
    Figure,
    RateMetric,
    RequestExtreme,
    RequestMetric,
    SavingMetric,
    StatementMetric,
    TargetNumber,
)
from flashbed.plan.unknown_name import why_none
from flashbed.program.operations import OperationError, each
from flashbed.program.postmark_script import read_script
from flashbed.program.recording.recognised import is_recording
from flashbed.stack.energy import Activity
from flashbed.stack.mounts import PLAIN
from flashbed.stack.names import ExperimentId, Name, Text
from flashbed.stack.nearest_kernel import chosen_kernel

__all__ = [
    "Claim",
    "Compared",
    "Experiment",
    "ExperimentError",
    "Figure",
    "Planned",
    "expanded",
    "experiment_names",
    "load_experiment",
    "read_experiment",
    "study_experiments",
    "study_names",
]

SCRIPT_CHARACTERS = 65_536
PATH_CHARACTERS = 4096
PROGRAM = "program"
OPERATIONS = "operations"
ONCE = (PROGRAM, OPERATIONS)
"""Workloads whose calls state their own sizes; they run once."""
ENGINES = "engines"
SIZELESS = ("sqlite", ENGINES, *ONCE)
SETTLE_NS = 10_000_000_000
"""The default pause before measuring: longer than any file system's threads need."""
CASES_MAX = 1_000_000


class ExperimentError(InputError):
    """An experiment or a setting that is impossible; the message names the file and the key."""


class ExperimentFacts(Strict):
    """`[experiment]`: the question, its source, and what every run records.

    `reading` says what flashbed did where the source leaves open what its authors did, and why.
    `trace` is recorded in addition, `omit` is not kept. `activity` is what the programs do, where
    the operations alone do not show it (docs/models/energy.md).
    """

    id: ExperimentId
    title: Text
    question: Text
    source: Text
    reading: Text | None = None
    open_measured: bool | None = None
    trace: Annotated[tuple[Literal["flash", "wear"], ...], Field(strict=False)] = ()
    omit: Annotated[tuple[Literal["requests"], ...], Field(strict=False)] = ()
    activity: Activity | None = None


class WorkloadTable(Strict):
    """`[workload]`: which program, and what does not vary. `settle_ns` is the pause before.

    `script` belongs to Postmark; `recording` is the file that `program` replays, `recordings` the
    folder of those of `engines`; `operations` is the text that the workload `operations` runs.
    `program` and `operations` have no sizes.
    """

    kind: Name
    request_bytes: RequestBytes
    file_bytes: Annotated[int, Field(ge=0, le=1 << 33)] = 0
    settle_ns: Count
    script: Annotated[str, Field(min_length=1, max_length=SCRIPT_CHARACTERS)] | None = None
    recording: Annotated[str, Field(min_length=1, max_length=PATH_CHARACTERS)] | None = None
    recordings: Annotated[str, Field(min_length=1, max_length=PATH_CHARACTERS)] | None = None
    operations: Annotated[str, Field(min_length=1)] | None = None

    @property
    def given(self) -> str | None:
        """What the workload needs besides the case."""
        return self.script or self.recording or self.recordings or self.operations

    @model_validator(mode="before")
    @classmethod
    def _sizes_of_a_program(cls, values: Any) -> Any:
        """Removes sizes: recordings and operations state how much each call moves."""
        if isinstance(values, dict) and values.get("kind") in ONCE:
            return {"request_bytes": 1, "settle_ns": SETTLE_NS} | values
        return values

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.kind not in WORKLOADS:
            raise ValueError(f"kind = {self.kind!r} is no workload: {', '.join(WORKLOADS)}")
        if (self.file_bytes == 0) != (self.kind in SIZELESS):
            raise ValueError(
                f"file_bytes: goes with every workload except {' and '.join(SIZELESS)}"
            )
        if (self.recording is None) != (self.kind != PROGRAM):
            raise ValueError("recording: goes with the workload program only")
        if (self.recordings is None) != (self.kind != ENGINES):
            raise ValueError("recordings: goes with the workload engines only")
        if (self.operations is None) != (self.kind != OPERATIONS):
            raise ValueError("operations: goes with the workload operations only")
        if self.operations is not None:
            _check_operations(self.operations)
        if self.script is not None:
            if self.kind != "postmark":
                raise ValueError("script: only postmark has one")
            read_script(self.script)
        return self


def _check_operations(text: str) -> None:
    try:
        for _ in each(text):
            pass
    except OperationError as why:
        raise ValueError(f"operations: line {why}") from None


class Compared(Strict):
    """`[compared.TARGET]`: the board and kernel of a target that represent the paper's."""

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

    experiment: ExperimentFacts
    workload: WorkloadTable
    grid: Annotated[tuple[Grid, ...], LIST]
    usual: Annotated[dict[str, str | int], Field(max_length=len(AXES))] = Field(
        default_factory=dict
    )
    """Axis -> the one value that runs if `--set` does not name the axis."""
    measures: Measures | None = None
    compared: dict[str, Compared] = Field(default_factory=dict)
    figure: tuple[Figure, ...] = Field(default=(), strict=False)
    claim: tuple[Claim, ...] = Field(default=(), strict=False)
    finding: tuple[Finding, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _judgeable(self) -> Self:
        """Savings concern requests that waited, so they need the analysis's constants."""
        metrics = self.metrics
        of_pairs = [metric for metric in metrics if metric in get_args(SavingMetric)]
        if of_pairs and self.measures is None:
            raise ValueError("measures: missing, and there are figures or claims of savings")
        windows: dict[str, set[ReadAhead]] = {}
        for grid in self.grid:
            for fs in grid.of("fs"):
                windows.setdefault(fs, set()).update(grid.of("read_ahead_kib"))
        one_each = all(len(of_fs) == 1 for of_fs in windows.values())
        items: list[Figure | Claim] = [*self.figure, *self.claim]
        for item in items:
            told_apart = one_each or "read_ahead_kib" in item.chosen
            if item.metric in _OF_SINGLE_CASES and not told_apart:
                raise ValueError(
                    f"{item.id}: read_ahead_kib: not chosen, and the metric is of single cases"
                )
        return self

    @model_validator(mode="after")
    def _mounted(self) -> Self:
        """Mount options need their file system in a grid."""
        there = {fs for grid in self.grid for fs in grid.of("fs")}
        for mount in [mount for grid in self.grid for mount in grid.of("mount")]:
            fs = mount.partition(":")[0]
            if mount != PLAIN and fs not in there:
                raise ValueError(f"grid: mount: {mount}: no grid has {fs}")
        return self

    @model_validator(mode="after")
    def _known_to_the_workload(self) -> Self:
        """The program must know every value of every axis."""
        kind, workload = self.workload.kind, WORKLOADS[self.workload.kind]
        for number, grid in enumerate(self.grid, start=1):
            at = f"grid.{number}"
            for pattern, fs in itertools.product(grid.of("pattern"), grid.of("fs")):
                why = workload.unknown(pattern)
                if why is not None:
                    raise ValueError(f"{at}.pattern: {why}")
                why = workload.without(pattern, fs)
                if why is not None:
                    raise ValueError(f"{at}: {why}")
            if not workload.pauses and any(grid.of("pause_ns")):
                raise ValueError(f"{at}.pause_ns: {kind} has no pauses")
            if not workload.advises and set(grid.of("advice")) != {NO_ADVICE}:
                raise ValueError(f"{at}.advice: {kind} gives no advice")
            if not workload.syncs and any(grid.of("sync_every_s")):
                raise ValueError(f"{at}.sync_every_s: {kind} has syncs of its own")
            if kind != "sqlite" and set(grid.of("database")) != {PAPERS}:
                raise ValueError(f"{at}.database: {kind} has no database")
            if kind in SIZELESS and grid.of("file_bytes"):
                raise ValueError(f"{at}.file_bytes: goes with every workload but {kind}")
            if kind in ONCE and set(grid.of("requests")) != {1}:
                raise ValueError(f"{at}.requests: {kind} is run once: 1")
        for where, patterns in self._patterns_asked():
            for pattern in patterns:
                why = workload.unknown(pattern)
                if why is not None:
                    raise ValueError(f"{where}: {why}")
        return self

    def _patterns_asked(self) -> Iterator[tuple[str, list[str]]]:
        """The patterns that figures and claims choose, and where in the file."""
        for figure in self.figure:
            only = [str(value) for value in figure.only.get("pattern", ())]
            published = [point.pattern for point in figure.published]
            yield f"figure {figure.id}: pattern", [*only, *published]
            yield f"figure {figure.id}: numbers", _patterns_of(figure.numbers)
        for claim in self.claim:
            yield f"claim {claim.id}: pattern", list(claim.pattern)
            yield f"claim {claim.id}: numbers", _patterns_of(claim.numbers)
        for finding in self.finding:
            yield f"finding {finding.id}: numbers", _patterns_of(finding.numbers)

    @model_validator(mode="after")
    def _usual_is_there(self) -> Self:
        """Every `[usual]` value must be in some grid."""
        for axis, value in self.usual.items():
            if axis not in AXES:
                raise ValueError(f"usual.{axis}: not an axis")
            if str(value) not in {str(known) for grid in self.grid for known in grid.of(axis)}:
                raise ValueError(f"usual.{axis}: no grid has {value}")
        return self

    @model_validator(mode="after")
    def _unique(self) -> Self:
        for axis in [axis for axis, about in AXES.items() if about.is_table]:
            called: dict[str, Any] = {}
            for item in [item for grid in self.grid for item in grid.of(axis)]:
                if called.setdefault(str(item), item) != item:
                    raise ValueError(f"grid: {axis}: two are called {item}")
        named: dict[str, Sequence[Figure | Claim | Finding]] = {
            "figure": self.figure, "claim": self.claim, "finding": self.finding,
        }  # fmt: skip
        for name, items in named.items():
            identifiers = [item.id for item in items]
            for identifier in identifiers:
                if identifiers.count(identifier) > 1:
                    raise ValueError(f"{name}: two have the id {identifier!r}")
        return self

    @model_validator(mode="after")
    def _findings_lead_somewhere(self) -> Self:
        shown = {figure.id for figure in self.figure} | {claim.id for claim in self.claim}
        for finding in self.finding:
            if finding.see is not None and finding.see not in shown:
                raise ValueError(f"finding {finding.id}: see: no figure or claim {finding.see!r}")
        return self

    @model_validator(mode="after")
    def _countable(self) -> Self:
        """Checks the size before any case is made: lists of thousands multiply to millions."""
        cases = sum(grid.cases for grid in self.grid)
        if cases > CASES_MAX:
            raise ValueError(f"grid: {cases:,} cases, {CASES_MAX:,} at most")
        return self

    @property
    def metrics(self) -> list[str]:
        """The metrics of its figures and claims."""
        items: list[Figure | Claim] = [*self.figure, *self.claim]
        return [item.metric for item in items]

    @property
    def id(self) -> str:
        """STUDY/NAME."""
        return self.experiment.id

    @cached_property
    def planned(self) -> Plan:
        """All its cases, as `expanded` returns them."""
        return expanded(self)

    @property
    def targets(self) -> tuple[str, ...]:
        """Every target that a grid names, in the order of the file."""
        return tuple(dict.fromkeys(target for grid in self.grid for target in grid.targets))


def _patterns_of(numbers: Mapping[str, TargetNumber]) -> list[str]:
    """The patterns that numbers of this experiment choose."""
    own = [number for number in numbers.values() if number.experiment is None]
    return [pattern for number in own for pattern in number.pattern]


def study_names() -> list[str]:
    """The studies: folders of experiments/."""
    return sorted({name.split("/")[0] for name in experiment_names()})


def experiment_names() -> list[str]:
    """Every experiment as STUDY/NAME."""
    return sorted(paths.experiment_files())


def study_experiments(study: str) -> list[Experiment]:
    """All experiments of a study, sorted by name. Raises `ExperimentError`."""
    names = [name for name in experiment_names() if name.split("/")[0] == study]
    if not names:
        raise ExperimentError(f"no study {study!r}; there are {', '.join(study_names())}")
    return [load_experiment(name) for name in names]


def load_experiment(name: str) -> Experiment:
    """An experiment by STUDY/NAME, by a unique NAME, or by the path of its file.

    A recording, a file of operations, or a script of SQL gives the experiment that runs it. Raises
    `ExperimentError`.
    """
    path = Path(name)
    if is_recording(path):
        path = written_experiment(path)
    elif is_operations(path):
        path = experiment_of_operations(path)
    elif path.suffix == SQL_SUFFIX:
        path = experiment_of_script(path)
    elif path.suffix != ".toml":
        names = experiment_names()
        found = [known for known in names if name in (known, known.split("/")[1])]
        if len(found) != 1:
            raise ExperimentError(why_none(name, found, names))
        path = paths.experiment_file(found[0])
    experiment = read_experiment(path)
    for number, grid in enumerate(experiment.grid, start=1):
        for kernel_name, target in itertools.product(grid.of("kernel"), grid.targets):
            if target not in chosen_kernel(kernel_name).kernel.targets:
                raise ExperimentError(
                    f"{paths.shown(path)}: grid.{number}.kernel: {kernel_name} does not run on "
                    f"{target} (boards/kernels/{kernel_name}.toml, kernel.targets)"
                )
    return experiment


def read_experiment(path: Path) -> Experiment:
    """Reads an experiment's file, not the files it names. Raises `ExperimentError`.

    Paths in it are relative to its folder, except those of a package.
    """
    values = read_toml(path, ExperimentError)
    for table in _databases(values):
        for key in ("script", "file"):
            if isinstance(table.get(key), str) and not PACKAGED.match(table[key]):
                table[key] = str(path.parent / table[key])
    workload = values.get("workload")
    for key in ("recording", "recordings"):
        if isinstance(workload, dict) and isinstance(workload.get(key), str):
            workload[key] = str(path.parent / workload[key])
    experiment = read_model(Experiment, values, path, ExperimentError)
    experiment._path = path.resolve()
    if experiment.workload.script is not None:
        _check_script(experiment, experiment.workload.script)
    return experiment


def _databases(values: Any) -> Iterator[dict[str, Any]]:
    """The `database` tables of its grids, before the file is checked."""
    grids = values.get("grid")
    for grid in grids if isinstance(grids, list) else []:
        found = grid.get("database", []) if isinstance(grid, dict) else []
        tables = found if isinstance(found, list) else [found]
        yield from (table for table in tables if isinstance(table, dict))


def _check_script(experiment: Experiment, script: str) -> None:
    """Checks that script and file agree about the axes; `--set` may change them afterwards."""
    settings, workload = read_script(script), experiment.workload

    def of(axis: str, else_bytes: int = 0) -> set[Any]:
        return {value for grid in experiment.grid for value in grid.of(axis) or (else_bytes,)}

    axes: dict[str, tuple[str, set[Any]]] = {
        "transactions": ("requests", of("requests")),
        "read_bytes": ("request_bytes", of("request_bytes", workload.request_bytes)),
        "size_high_bytes": ("file_bytes", of("file_bytes", workload.file_bytes)),
        "seed": ("seed", of("seed")),
        "fill_valid": ("state.valid", {state.valid for state in of("state")}),
        "fill_invalid": ("state.obsolete", {state.obsolete for state in of("state")}),
    }
    for setting, (axis, values) in axes.items():
        said = getattr(settings, setting)
        if setting in settings.said and said not in values:
            raise ExperimentError(
                f"{paths.shown(experiment.path)}: grid: {axis}: the script has {said}, no grid has"
            )


def expanded(experiment: Experiment) -> Plan:
    """The cases of an experiment, each once, with their targets.

    Cases of one board and kernel are adjacent; otherwise the order is that of the grids.
    """
    workload = experiment.workload
    return plan_of(
        (grid.product(experiment.id, workload.file_bytes, workload.request_bytes), grid.targets)
        for grid in experiment.grid
    )
