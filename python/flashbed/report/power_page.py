"""Plots the power of a run's cases over time, with a measured recording under it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from flashbed.answers.analysis.power_curves import measured_points, power_points
from flashbed.answers.lifetimes.observed import board_of_run
from flashbed.answers.power.measure import ReadingOptions, RecordingFit, measure
from flashbed.base.errors import InputError
from flashbed.base.paths import shown
from flashbed.plan.experiment import read_experiment
from flashbed.report.engine import need_engine
from flashbed.report.page import in_script, write_whole
from flashbed.results.run_directory import read_table

__all__ = ["draw_power"]

_PLACE = {"data": {"values": []}, "mark": "point"}
"""The place of the specification in the page that draws it."""
CASES_MAX = 8
"""A reader cannot tell more lines apart."""


def draw_power(
    directory: Path,
    case_id: str | None,
    *,
    convention: str,
    recorded: tuple[Path, ReadingOptions] | None,
    out: Path,
) -> None:
    """Writes the picture. Raises `InputError` and `RunError`."""
    points = _simulated(directory, case_id, convention)
    if recorded is not None:
        points = pl.concat([points, _measured(measure(*recorded), points)])
    _write(points, out)


def _simulated(directory: Path, case_id: str | None, convention: str) -> pl.DataFrame:
    cases = read_table(directory, "cases")
    if case_id is not None:
        cases = cases.filter(case_id=case_id)
        if not cases.height:
            raise InputError(f"--case {case_id}: no such case in {shown(directory)}")
    if cases.height > CASES_MAX:
        raise InputError(
            f"{shown(directory)}: {cases.height} cases, at most {CASES_MAX} can be drawn; --case"
            " chooses one"
        )
    flash = read_table(directory, "flash") if convention == "component" else None
    boards = {name: board_of_run(directory, name).energy for name in cases["board"].unique()}
    activity = read_experiment(directory / "experiment.toml").experiment.activity
    requests = read_table(directory, "requests")
    points = power_points(
        cases, requests, flash=flash, boards=boards, convention=convention, given_activity=activity
    )
    if not points.height:
        named = ", ".join(cases["board"].unique(maintain_order=True))
        raise InputError(
            f"{shown(directory)}: the power of no case is known: board {named} has no constants for"
            " it ([energy], docs/models/energy.md), or the target measures no times"
        )
    return points


def _measured(found: RecordingFit, points: pl.DataFrame) -> pl.DataFrame:
    """Each rail above its idle power, its first window aligned with the begin of the cases."""
    laid = []
    for rail, fit in zip(found.rails, found.fits, strict=True):
        if fit.idle_w is None or not fit.windows:
            raise InputError(f"{found.trace.name}: {rail.name}: {fit.problem}")
        begin_s = fit.windows[0].begin_s
        name = Path(found.trace.name).name
        above_w = rail.power_w - fit.idle_w
        laid.append(
            measured_points(
                points,
                rail.name,
                name=name,
                time_s=found.trace.time_s,
                above_idle_w=above_w,
                begin_s=begin_s,
            )
        )
    drawn = pl.concat(laid)
    if not drawn.height:
        rails = ", ".join(rail.name for rail in found.rails)
        raise InputError(
            f"{found.trace.name}: its rails are {rails}, but a case has cpu and mem, or supply"
            " (rename them by --rail)"
        )
    return drawn


def _write(points: pl.DataFrame, out: Path) -> None:
    import altair as alt
    import vl_convert

    from flashbed.report.figures import power_figure

    need_engine()
    specification = power_figure(points)
    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    if out.suffix == ".svg":
        text = vl_convert.vegalite_to_svg(specification, vl_version=version)
    else:
        page = vl_convert.vegalite_to_html(_PLACE, vl_version=version, bundle=True)
        begin, place, end = page.partition(json.dumps(_PLACE, separators=(",", ":")))
        assert place, "the page holds the specification as it was given"
        text = f"{begin}{in_script(specification)}{end}"
    write_whole(text, out)
