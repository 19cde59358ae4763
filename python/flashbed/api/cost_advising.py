"""Searches settings by a device model instead of running them; `flashbed cost advise` prints it.

The search, its settings and its words are those of `flashbed advise` (api/advising.py). A choice
that SQLite runs in another way is recorded once; counting and pricing it takes milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from flashbed.answers.advice.settings import Combination, Factor
from flashbed.answers.analysis.compared_choices import MEASURES
from flashbed.answers.costs.device_model import DeviceModel
from flashbed.answers.costs.devices import Parts, check_case, counted_program, priced
from flashbed.api.advising import Question, Search
from flashbed.base.errors import InputError
from flashbed.plan.case import Case
from flashbed.plan.experiment import Experiment
from flashbed.running.programs import programs_of

__all__ = ["ModelSearch", "Spent", "predicted"]

_COUNTED = (
    "fs", "read_ahead_kib", "database.page_bytes", "database.cache_pages", "database.journal",
    "database.synchronous",
)  # fmt: skip
"""Settings whose effect the model counts."""


@dataclass
class Spent:
    """Seconds that a search took: SQLite's own runs, and the model."""

    choices: int = 0
    recording_s: float = 0.0
    model_s: float = 0.0


def predicted(
    model: DeviceModel, experiment: Experiment, case: Case, spent: Spent | None = None
) -> Parts:
    """What a case costs. Raises `InputError` for what the model does not count."""
    spent = spent or Spent()
    begun = time.perf_counter()
    (program,) = programs_of(experiment, [case])
    recorded = time.perf_counter()
    system = check_case(model, case, program.stack)
    counted = counted_program(program.stack, system, program.prepare, program.body)
    parts = priced(system, program.stack.board, counted)
    spent.choices += 1
    spent.recording_s += recorded - begun
    spent.model_s += time.perf_counter() - recorded
    return parts


class ModelSearch(Search):
    """A search whose rows are predictions."""

    def __init__(self, question: Question, model: DeviceModel) -> None:
        super().__init__(question, Path(), _runs_nothing, None)
        self.spent = Spent()
        self._model = model

    def run(self, choices: Sequence[Combination]) -> None:
        """Predicts the choices that were not predicted yet."""
        for choice in dict.fromkeys(choices):
            if choice in self.rows or choice.label in self.left_out:
                continue
            try:
                planned = self.question.planned(choice)
                experiment = self.question.experiment
                parts = predicted(self._model, experiment, planned.case, self.spent)
            except InputError as why:
                self.left_out[choice.label] = str(why)
                continue
            self._planned[choice] = planned
            self.rows[choice] = _row(planned.case.case_id, parts)

    @cached_property
    def _settings(self) -> list[Factor]:
        own = self.question.tried
        found = super()._settings
        return [each for each in found if each.key in _COUNTED or each.key in own]


def _runs_nothing(_: object) -> Mapping[str, str]:
    return {}


def _row(case_id: str, parts: Parts) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(MEASURES) | {"case_id": case_id, "failed": 0}
    for name, cost in parts.costs.items():
        whole = None if cost is None else round(cost.value)
        row[name] = whole
    return row | {"flash_time_ns": round(parts.chip_ns)}
