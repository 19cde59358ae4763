"""The results of a run: its tables as Polars frames, its figures, its report."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Collection
from pathlib import Path

import polars as pl

from flashbed.api.answering import answer_of_names
from flashbed.api.own_experiment import OwnExperiment
from flashbed.api.plot import Plot
from flashbed.base.extras import missing_extra
from flashbed.base.forks import need_threads, remover
from flashbed.report import write_report
from flashbed.results.run_directory import CHIP_ALONE, read_table

__all__ = ["OwnResult", "Result", "own_folder"]


class Result:
    """The results of `fb.run`, or those in a folder: `fb.Result("results/x")`.

    Frames have the columns of docs/reference/tables.md, with a unit in every name; null is unknown.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        cases: Collection[str] | None = None,
        apart: Collection[str] = (),
    ) -> None:
        self._directory = Path(directory)
        self._chosen = None if cases is None else list(cases)
        self._apart = tuple(apart)
        need_threads("fb.Result")
        read_table(self._directory, "cases")

    @property
    def directory(self) -> Path:
        """The folder of the tables. Without `out` it is removed with this object."""
        return self._directory

    @property
    def experiment(self) -> OwnExperiment:
        """The experiment that was run."""
        return OwnExperiment(self._directory / "experiment.toml")

    @property
    def cases(self) -> pl.DataFrame:
        """A row for each case and target: its axes, time, flash operations and energy."""
        cases = self._table("cases")
        return cases.filter(pl.col("target") != CHIP_ALONE)

    @property
    def requests(self) -> pl.DataFrame:
        """A row for each system call: when it began, how long it took, its flash operations."""
        return self._table("requests")

    @property
    def flash(self) -> pl.DataFrame:
        """A row for each flash operation, for a run with `trace="flash"`."""
        return self._table("flash")

    @property
    def wear(self) -> pl.DataFrame:
        """A row for each block with its erases, for a run with `trace="wear"`."""
        return self._table("wear")

    @property
    def not_measured(self) -> pl.DataFrame:
        """Cases for which a target lacked something: case, target, reason."""
        if not (self._directory / "not_measured.parquet").is_file():
            columns = {name: pl.String() for name in ("case_id", "target", "reason")}
            return pl.DataFrame(schema=columns)
        return self._table("not_measured")

    @property
    def answer(self) -> pl.DataFrame:
        """The compared choices, the quickest first: the table that `flashbed run` prints."""
        names = self.cases["case_id"]
        found = answer_of_names(self._directory, names, self._apart)
        return pl.DataFrame() if found is None else found.rows

    @property
    def plot(self) -> Plot:
        """The run's figures as Altair charts."""
        return Plot(self._directory, self.answer)

    def report(self, path: str | Path) -> Path:
        """Writes this run's report, one HTML file that needs no network."""
        try:
            return write_report([self._directory], Path(path))
        except ModuleNotFoundError as error:
            raise missing_extra(error) or error from None

    def _table(self, name: str) -> pl.DataFrame:
        need_threads(f"Result.{name}")
        table = read_table(self._directory, name)
        if self._chosen is None:
            return table
        return table.filter(pl.col("case_id").is_in(self._chosen))

    def __repr__(self) -> str:
        cases = self.cases
        targets = ", ".join(cases["target"].unique(maintain_order=True))
        return f"Result({cases.height} cases on {targets} in {self._directory})"


class OwnResult(Result):
    """A result whose folder is removed with it."""

    def __init__(
        self, directory: Path, cases: Collection[str], apart: Collection[str] = ()
    ) -> None:
        super().__init__(directory, cases=cases, apart=apart)
        self._gone = weakref.finalize(self, remover(directory))


def own_folder() -> Path:
    """A temporary folder, for a result without `out`."""
    return Path(tempfile.mkdtemp(prefix="flashbed-result."))
