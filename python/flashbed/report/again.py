"""The commands that repeat a report's cases, as a user types them in the checkout's folder.

An experiment of the checkout is named, any other is given by its file. Axes that the run narrowed
or widened become `--set`. Boards over ssh are left out: no table holds their address.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from flashbed.base import paths
from flashbed.base.errors import InputError
from flashbed.base.files import read_json
from flashbed.plan.case import AXES
from flashbed.plan.experiment import Experiment, read_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.targets import BOARD

__all__ = ["run_again", "validate_again"]

PROGRAM = ".venv/bin/flashbed"
_ON_A_BOARD = "# and on the board: --on ssh://USER@HOST, as docs/reference/boards-over-ssh.md says"


def run_again(directory: Path, cases: pl.DataFrame, *, power_cuts: bool) -> list[str]:
    """The commands for a run directory: one for all its cases, one for a single case."""
    experiment = read_experiment(directory / "experiment.toml")
    name = _called(directory, experiment)
    settings = _settings(experiment, cases)
    measured = cases["target"].unique(maintain_order=True).to_list()
    targets = [target for target in measured if target != BOARD]
    commands = []
    for target in targets[-1:]:
        (case_id, *_) = cases.filter(pl.col("target") == target)["case_id"]
        one = [*settings, "--case", case_id]
        if power_cuts:
            commands.append(_command("powercut", name, "--on", target, *settings))
            commands.append(_command("powercut", name, "--on", target, *one, "--step", "1"))
        else:
            commands.append(_command("run", name, "--on", ",".join(targets), *settings))
            commands.append(_command("run", name, "--on", target, *one))
    return commands + [_ON_A_BOARD] * (BOARD in measured)


def validate_again(directory: Path, lines: Sequence[dict[str, Any]]) -> list[str]:
    """The commands for what `validate` kept in a directory, one per run."""
    out = _path(directory)
    elsewhere = [] if out == "results/validation" else ["--out", out]
    commands = []
    for line in lines:
        if line["fs"] is None and line["target"] != BOARD:
            what = ["--suite", line["suite"], "--on", line["target"], "--kernel", line["kernel"]]
            commands.append(_command("validate", line["board"], *what, *elsewhere))
    return [*commands, _command("report", out)]


def _command(*words: str) -> str:
    return shlex.join([PROGRAM, *words])


def _path(path: Path) -> str:
    """The path relative to the checkout's folder, if it is inside."""
    absolute = path.resolve()
    below = absolute.is_relative_to(paths.root())
    return str(absolute.relative_to(paths.root())) if below else str(absolute)


def _called(directory: Path, experiment: Experiment) -> str:
    """The experiment's name in the checkout; else its file, or the kept copy if that is gone."""
    named = paths.experiment_file(experiment.id)
    try:
        source = read_json(directory / "run.json").get("file")
    except InputError:
        source = None
    file = Path(source) if isinstance(source, str) else named
    if file == named and named.is_file():
        return experiment.id
    return _path(file if file.is_file() else directory / "experiment.toml")


def _settings(experiment: Experiment, cases: pl.DataFrame) -> list[str]:
    """`--set` options that select at least the run's cases; none if it ran all of them."""
    ran = set(cases["case_id"])
    everything = [item.case for item in experiment.planned]
    if ran == {case.case_id for case in everything}:
        return []
    options: list[str] = []
    for axis in AXES:
        values = [str(value) for value in cases[axis].unique(maintain_order=True)]
        if set(values) != {str(getattr(case, axis)) for case in everything}:
            options += ["--set", f"{axis}={','.join(values)}"]
    return options if ran <= set(_left(experiment, options[1::2])) else []


def _left(experiment: Experiment, settings: Sequence[str]) -> Iterator[str]:
    """The cases that settings select; none if the experiment refuses them."""
    try:
        yield from (item.case.case_id for item in plan(experiment, parse_settings(settings)))
    except InputError:
        return
