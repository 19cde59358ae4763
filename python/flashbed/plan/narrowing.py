"""`--set`: selects values of an experiment's axes, or adds new ones.

`--set AXIS=VALUE[,VALUE]` keeps the cases with these values. A value that no grid has is added to
all grids where the axis allows it. `--set AXIS.KEY=VALUE[,VALUE]` sets a key of an axis whose
values are tables to each of these values, in all cases.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from flashbed.base.errors import InputError
from flashbed.base.toml import loads, read_model
from flashbed.base.toml_errors import wrong_lines
from flashbed.plan.axes import Axis
from flashbed.plan.case import AXES
from flashbed.plan.experiment import Experiment, ExperimentError, expanded
from flashbed.plan.planned import Plan
from flashbed.stack.conditions import Condition
from flashbed.stack.nearest_kernel import chosen_kernel
from flashbed.stack.profiles import load_board

__all__ = ["Settings", "parse_settings", "plan", "several"]

Settings = Mapping[str, tuple[Any, ...]]
"""Axis -> its selected values (words, if its values are tables);
AXIS.KEY -> the values of that key."""
_Grids = list[dict[str, Any]]


def parse_settings(texts: Sequence[str]) -> Settings:
    """Parses `AXIS[.KEY]=VALUE[,VALUE]` into axis -> values. Raises `ExperimentError`."""
    settings: dict[str, tuple[Any, ...]] = {}
    for text in texts:
        name, equals, words = text.partition("=")
        axis, dot, key = name.partition(".")
        if not equals or axis not in AXES or not all(words.split(",")):
            raise ExperimentError(
                f"--set {text}: not AXIS=VALUE[,VALUE] with an axis of {', '.join(AXES)}"
            )
        if name in settings:
            both = ",".join(map(str, settings[name]))
            raise ExperimentError(
                f"--set {text}: {name} is set twice; {name}={both},{words} has all of them"
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


def several(settings: Mapping[str, Any]) -> list[str]:
    """The axes that settings give several values."""
    lists = (name for name, values in settings.items() if isinstance(values, list | tuple))
    return [name.partition(".")[0] for name in lists if len(settings[name]) > 1]


def _values(about: Axis, text: str, axis: str, words: Sequence[str]) -> tuple[Any, ...]:
    try:
        return tuple(about.read(word) for word in words)
    except (ValueError, KeyError):
        raise ExperimentError(f"--set {text}: {axis} takes {about.takes}") from None


def _check_key(about: Axis, text: str, axis: str, key: str) -> None:
    keys = (
        [name for name in about.type.model_fields if name not in ("name", "part")]
        if about.is_table
        else []
    )
    if key not in keys:
        there_are = f"keys are {', '.join(keys)}" if keys else "it has no keys"
        raise ExperimentError(f"--set {text}: no key of {axis}; {there_are}")


def _literal(word: str) -> Any:
    """A number, true or false as in TOML; otherwise the word."""
    try:
        return loads(f"value = {word}")["value"]
    except (ValueError, RecursionError):
        return word


def plan(experiment: Experiment, settings: Settings | None = None) -> Plan:
    """The cases of an experiment that settings select, as `expanded` returns them.

    Raises `ExperimentError`.
    """
    selected = dict(settings or {})
    named = {name.partition(".")[0] for name in selected}
    for axis, value in experiment.usual.items():
        if axis not in named:
            selected[axis] = (value,)
    return expanded(_narrowed(experiment, selected)) if selected else experiment.planned


def _narrowed(experiment: Experiment, settings: Settings) -> Experiment:
    values = experiment.model_dump()
    for grid in values["grid"]:
        for axis, about in AXES.items():
            if about.is_table:
                grid[axis] = [about.type.model_validate(given) for given in grid[axis]]
    values["usual"] = {}
    # A key is set in the tables that the settings choose, in whatever order they are written.
    for name, wanted in sorted(settings.items(), key=lambda setting: "." in setting[0]):
        axis, dot, key = name.partition(".")
        if dot:
            for grid in values["grid"]:
                grid[axis] = _with_key(name, AXES[axis], tables=grid[axis], key=key, wanted=wanted)
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
    """Sets a size of `[workload]` where grids do not name it."""
    values["workload"][axis] = wanted[0]
    for grid in values["grid"]:
        grid[axis] = list(wanted) if len(wanted) > 1 else None


def _chosen(experiment: str, grids: _Grids, axis: str, wanted: Sequence[Any]) -> _Grids:
    """The grids with only these values of an axis, in this order; grids without any go."""
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
    """Parses a value that no grid has. A table's word is parsed last: it may be a grid's name."""
    if not about.is_table:
        return value
    try:
        return about.read(value)
    except InputError as why:
        raise ExperimentError(f"--set {axis}={why}") from None


def _with_key(
    name: str, about: Axis, *, tables: Iterable[Any], key: str, wanted: Sequence[Any]
) -> list[Any]:
    """Each table with each of the values, once, named by its word; a script's table by its name."""
    found = []
    for table, value in itertools.product(tables, wanted):
        own = {field: given for field, given in table if given is not None and field != "name"}
        try:
            kept = table.named_with(key, value) if isinstance(table, Condition) else None
            given = own | {key: value} | ({"name": kept} if kept else {})
            found.append(about.type.model_validate(given))
        except ValidationError as why:
            said = wrong_lines(about.type, why)[0]
            raise ExperimentError(f"--set {name}={value}: {said}") from None
    return list(dict.fromkeys(found))


def _with_profile(grids: _Grids, axis: str, names: Sequence[str]) -> _Grids:
    """Copies of the grids with a new kernel or board, on the targets that can run it."""
    added = []
    for name in names:
        targets = chosen_kernel(name).kernel.targets if axis == "kernel" else None
        if axis == "board":
            load_board(name)
        for grid in grids:
            able = [target for target in grid["targets"] if targets is None or target in targets]
            if able:
                added.append({**grid, axis: [name], "targets": able})
    return added
