"""`--set`: an experiment narrowed to values that are asked for, or given others.

`--set AXIS=VALUE[,VALUE]` leaves the cases with these values; what no grid has is added to all
where the axis allows it. `--set AXIS.KEY=VALUE[,VALUE]` gives a key of an axis whose values are
tables each of these values, in all cases.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from flashbed.errors import InputError
from flashbed.formats.profiles import load_board, load_kernel
from flashbed.formats.toml import read_model
from flashbed.formats.toml_errors import wrong_lines
from flashbed.plan.axes import Axis
from flashbed.plan.case import AXES
from flashbed.plan.experiment import Experiment, ExperimentError, Planned, expanded

__all__ = ["Settings", "parse_settings", "plan"]

Settings = Mapping[str, tuple[Any, ...]]
"""Axis -> the values of it that are asked for, words of one whose values are tables;
AXIS.KEY -> the values of that key."""
_Grids = list[dict[str, Any]]


def parse_settings(texts: Sequence[str]) -> Settings:
    """`AXIS[.KEY]=VALUE[,VALUE]` texts as axis -> values. Raises `ExperimentError`."""
    settings: dict[str, tuple[Any, ...]] = {}
    for text in texts:
        name, equals, words = text.partition("=")
        axis, dot, key = name.partition(".")
        if not equals or axis not in AXES or not all(words.split(",")):
            raise ExperimentError(
                f"--set {text}: not AXIS=VALUE[,VALUE] with an axis of {', '.join(AXES)}"
            )
        about = AXES[axis]
        if dot:
            _check_key(about, text, axis, key)
            settings[name] = tuple(_literal(word) for word in words.split(","))
        elif about.is_table:
            settings[name] = tuple(words.split(","))
        else:
            settings[name] = _values(about, text, axis, words.split(","))
    return settings


def _values(about: Axis, text: str, axis: str, words: Sequence[str]) -> tuple[Any, ...]:
    try:
        return tuple(about.read(word) for word in words)
    except (ValueError, KeyError):
        raise ExperimentError(f"--set {text}: {axis} takes {about.takes}") from None


def _check_key(about: Axis, text: str, axis: str, key: str) -> None:
    keys = [name for name in about.type.model_fields if name != "name"] if about.is_table else []
    if key not in keys:
        there_are = f"keys are {', '.join(keys)}" if keys else "it has no keys"
        raise ExperimentError(f"--set {text}: no key of {axis}; {there_are}")


def _literal(word: str) -> Any:
    """A number, true or false as TOML has them; else the word."""
    try:
        return tomllib.loads(f"value = {word}")["value"]
    except ValueError:
        return word


def plan(experiment: Experiment, settings: Settings | None = None) -> list[Planned]:
    """The cases that settings leave of an experiment, as `expanded` gives them.

    Raises `ExperimentError`.
    """
    asked = dict(settings or {})
    named = {name.partition(".")[0] for name in asked}
    for axis, value in experiment.usual.items():
        if axis not in named:
            asked[axis] = (value,)
    return expanded(_narrowed(experiment, asked)) if asked else list(experiment.planned)


def _narrowed(experiment: Experiment, settings: Settings) -> Experiment:
    values = experiment.model_dump()
    for grid in values["grid"]:
        for axis, about in AXES.items():
            if about.is_table:
                grid[axis] = [about.type.model_validate(given) for given in grid[axis]]
    values["usual"] = {}
    for name, wanted in settings.items():
        axis, dot, key = name.partition(".")
        if dot:
            for grid in values["grid"]:
                grid[axis] = _with_key(name, AXES[axis], grid[axis], key, wanted)
        elif AXES[axis].of_workload:
            _set_size(values, axis, wanted)
        else:
            values["grid"] = _chosen(experiment.id, values["grid"], axis, wanted)
    if not values["grid"]:
        raise ExperimentError(f"no case of {experiment.id} is left by the settings")
    narrowed = read_model(Experiment, values, experiment.path, ExperimentError)
    narrowed._path = experiment.path
    return narrowed


def _set_size(values: dict[str, Any], axis: str, wanted: Sequence[int]) -> None:
    """A size that is `[workload]`'s where grids do not say."""
    values["workload"][axis] = wanted[0]
    for grid in values["grid"]:
        grid[axis] = list(wanted) if len(wanted) > 1 else None


def _chosen(experiment: str, grids: _Grids, axis: str, wanted: Sequence[Any]) -> _Grids:
    """The grids with these values of an axis only, in this order; those that have none go."""
    about = AXES[axis]
    known = {str(value): value for grid in grids for value in grid[axis]}
    values = [known.get(str(value)) or _read(axis, about, value) for value in wanted]
    new = [str(value) for value in values if str(value) not in known]
    if new and about.adds == "nothing":
        there_are = ", ".join(sorted(known))
        raise ExperimentError(f"--set {axis}={new[0]}: not in {experiment}: {there_are}")
    if new and about.adds == "profile":
        grids = [*grids, *_with_profile(grids, axis, new)]
        new = []
    left = []
    for grid in grids:
        here = {str(value) for value in grid[axis]} | set(new)
        kept = [value for value in values if str(value) in here]
        if kept:
            left.append({**grid, axis: kept})
    return left


def _read(axis: str, about: Axis, value: Any) -> Any:
    """A value that no grid has; the word of a table is read only now, for it may be a name."""
    if not about.is_table:
        return value
    try:
        return about.read(value)
    except InputError as why:
        raise ExperimentError(f"--set {axis}={why}") from None


def _with_key(
    name: str, about: Axis, tables: Iterable[Any], key: str, wanted: Sequence[Any]
) -> list[Any]:
    """Each of the tables with each of the values, once, called by what it is made of."""
    found = []
    for table, value in itertools.product(tables, wanted):
        own = {field: given for field, given in table if given is not None and field != "name"}
        try:
            found.append(about.type.model_validate(own | {key: value}))
        except ValidationError as why:
            said = wrong_lines(about.type, why)[0]
            raise ExperimentError(f"--set {name}={value}: {said}") from None
    return list(dict.fromkeys(found))


def _with_profile(grids: _Grids, axis: str, names: Sequence[str]) -> _Grids:
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
