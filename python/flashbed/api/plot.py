"""Figures of a run as Altair charts, which a notebook displays."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from flashbed.base.errors import InputError
from flashbed.base.extras import missing_extra
from flashbed.plan.experiment import read_experiment
from flashbed.report.collect import agreement_errors, collect, figure_tables
from flashbed.results.run_directory import read_table

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Plot"]

_MS = 1e6


def _imported(module: str) -> Any:
    """Imports late: Altair takes half a second. Raises `MissingExtra` if it is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise missing_extra(error) or error from None


class Plot:
    """The report's figures, and two quick charts. Needs `flashbed[report]`."""

    def __init__(self, directory: Path, answer: pl.DataFrame) -> None:
        self._directory = directory
        self._answer = answer

    @property
    def names(self) -> list[str]:
        """The ids of the experiment's figures."""
        return [figure.id for figure in read_experiment(self._file).figure]

    @property
    def _file(self) -> Path:
        return self._directory / "experiment.toml"

    def figure(self, name: str) -> alt.TopLevelMixin:
        """A figure of the experiment, by its id."""
        content = collect(self._directory)
        figures = {figure.id: figure for figure in content.experiment.figure}
        if name not in figures:
            there_are = ", ".join(figures) or "none"
            raise InputError(f"figure {name!r}: not in the experiment; there are {there_are}")
        drawn, published = figure_tables(content, figures[name])
        render = _imported("flashbed.report.render")
        return self._chart(render.figure_drawn(figures[name], drawn, published))

    def agreement(self) -> alt.TopLevelMixin:
        """How far the simulator is from the kernel, for a run on both."""
        figures = _imported("flashbed.report.figures")
        content = collect(self._directory)
        if not content.agreement.height:
            raise InputError(f"{self._directory}: was not run on the simulator and on a kernel")
        return self._chart(figures.agreement_figure(*agreement_errors(content.agreement)))

    def answer(self, measure: str | None = None) -> alt.Chart:
        """The compared choices as bars; `measure` is a column of `Result.answer`."""
        altair = _imported("altair")
        known = self._answer["time_ns"].null_count() == 0
        column = measure or ("time_ns" if known else "flash_time_ns")
        axes = self._answer.columns[: self._answer.columns.index("cases")] or ["cases"]
        rows = self._answer.with_columns(
            pl.concat_str([pl.col(axis).cast(pl.String) for axis in axes], separator=" · ").alias(
                "choice"
            )
        )
        bars = altair.Chart(rows).mark_bar()
        chart: alt.Chart = bars.encode(
            altair.X(f"{column}:Q"), altair.Y("choice:N", sort=None, title=" · ".join(axes))
        )
        return chart

    def requests(self) -> alt.Chart:
        """How long each system call of the program took, in order."""
        altair = _imported("altair")
        table = read_table(self._directory, "requests")
        rows = table.with_columns((pl.col("latency_ns") / _MS).alias("latency_ms"))
        points = altair.Chart(rows).mark_point()
        chart: alt.Chart = points.encode(
            altair.X("seq:Q", title="system call"),
            altair.Y("latency_ms:Q", title="time (ms)"),
            altair.Color("case_id:N", title=None),
        )
        return chart

    @staticmethod
    def _chart(specification: dict[str, Any]) -> alt.TopLevelMixin:
        chart: alt.TopLevelMixin = _imported("altair").Chart.from_dict(specification)
        return chart
