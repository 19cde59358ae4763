"""Experiments: by name, from a file, from TOML text, or from code."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import tomlkit

from flashbed.api.own_program import OwnProgram
from flashbed.base.errors import InputError
from flashbed.plan.case import AXES
from flashbed.plan.experiment import Experiment, load_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.plan.of_recording import own_file
from flashbed.plan.planned import Plan
from flashbed.plan.stacks import USUAL
from flashbed.stack.file_systems import USUAL_FIRST
from flashbed.stack.names import USUAL_FS

__all__ = ["OwnExperiment", "Settings"]

Settings = Mapping[str, object]
"""Axis -> a value or a list of values; a `Board` counts as its name."""


class OwnExperiment:
    """Axes whose product is the cases, with the workload that they run.

    docs/reference/experiment-file.md has the keys.

    `name` is STUDY/NAME or a unique NAME, shipped or in `./experiments`, or the path of a file: of
    an experiment or of a recording. Raises `errors.InputError`.
    """

    def __init__(self, name: str | Path) -> None:
        self._plan = load_experiment(str(name))

    @classmethod
    def from_toml(cls, text: str) -> OwnExperiment:
        """Reads an experiment from the text of a file."""
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        return cls(own_file(name, text))

    @classmethod
    def from_code(
        cls,
        workload: str,
        *,
        title: str = "An experiment from Python",
        question: str = "What does a flash file system do to this?",
        options: Mapping[str, Any] | None = None,
        targets: Sequence[str] = ("sim", "uml", "emulator"),
        figures: Sequence[Mapping[str, Any]] = (),
        usual: Mapping[str, str | int] | None = None,
        **axes: object,
    ) -> OwnExperiment:
        """Makes an experiment of one grid: a kind of `workload`, its `options`, and lists of axes.

        `options` are further keys of `[workload]`, `figures` are tables `[[figure]]`. `usual` names
        the one value of an axis that runs if `set` does not name the axis. By default the board is
        `emulated`, the kernel 6.1, the file system UBIFS and the seed 1.
        """
        common: dict[str, object] = {**USUAL, "requests": 1, "seed": 1}
        for axis in axes:
            if axis not in AXES:
                raise InputError(f"{axis}: not an axis; there are {', '.join(AXES)}")
        grid = {axis: _listed(value) for axis, value in (common | axes).items()}
        document: dict[str, Any] = {
            "experiment": {"title": title, "question": question, "source": "Python"},
            "workload": {"kind": workload, **_sizes(workload), **(options or {})},
            "grid": [{"targets": list(targets), **grid}],
        }
        if usual:
            document["usual"] = dict(usual)
        if figures:
            document["figure"] = [dict(figure) for figure in figures]
        digest = hashlib.sha256(repr(document).encode()).hexdigest()[:12]
        document["experiment"]["id"] = f"python/{workload}-{digest}"
        return cls.from_toml(tomlkit.dumps(document))

    @classmethod
    def of_program(
        cls, program: OwnProgram, *, title: str = "A program from Python"
    ) -> OwnExperiment:
        """Makes the experiment that `fb.run` runs for an `fb.Program`: on UBIFS of `emulated`."""
        return cls.from_code(
            "operations", title=title, options={"operations": program.text}, pattern="as-written",
            fs=USUAL_FIRST, usual={"fs": USUAL_FS},
        )  # fmt: skip

    @property
    def id(self) -> str:
        """STUDY/NAME."""
        return self._plan.id

    @property
    def title(self) -> str:
        """Its title."""
        return self._plan.experiment.title

    @property
    def question(self) -> str:
        """The question that it answers."""
        return self._plan.experiment.question

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets it can run on, besides boards over ssh."""
        return self._plan.targets

    @property
    def path(self) -> Path:
        """Its file."""
        return self._plan.path

    @property
    def plan(self) -> Experiment:
        """All tables of the file."""
        return self._plan

    def cases(self, set: Settings | None = None) -> pl.DataFrame:  # noqa: A002
        """Its cases, the default ones or those of `set`: their names and axes."""
        rows = [
            {"case_id": item.case.case_id}
            | {axis: _plain(getattr(item.case, axis)) for axis in AXES}
            for item in self.planned(set)
        ]
        return pl.DataFrame(rows, strict=False, infer_schema_length=None)

    def planned(self, set: Settings | None = None) -> Plan:  # noqa: A002
        """The cases with their targets."""
        return plan(self._plan, parse_settings(_words(set or {})))

    def __repr__(self) -> str:
        return f"Experiment({self.id!r}: {self.title})"


def _sizes(workload: str) -> dict[str, int]:
    """Keys of `[workload]` that a file must give."""
    needs_none = ("program", "operations")
    if workload in needs_none:
        return {}
    sizes = {"request_bytes": 4096, "settle_ns": 10_000_000_000}
    return sizes if workload == "sqlite" else sizes | {"file_bytes": 1 << 20}


def _listed(value: object) -> list[Any]:
    many = isinstance(value, Iterable) and not isinstance(value, str | Mapping)
    return [_plain(one) for one in (value if many else [value])]  # type: ignore[attr-defined]


def _plain(value: object) -> Any:
    """A value as TOML writes it: a number, a table, or a name."""
    return value if isinstance(value, bool | int | float | Mapping) else str(value)


def _words(settings: Settings) -> list[str]:
    return [f"{axis}={','.join(map(str, _listed(value)))}" for axis, value in settings.items()]
