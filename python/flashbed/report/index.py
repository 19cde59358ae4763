"""The page of all results: findings, studies, the user's own runs, validation.

It reads only the summaries that result pages carry (report/page_summary.py), so it is cheap. For a
run without a page it prints the command that writes one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from flashbed.answers.analysis.sentences import COUNTED
from flashbed.base.errors import InputError
from flashbed.base.paths import shown
from flashbed.bench.validation.results_table import has_results
from flashbed.report.bars import bars_drawn
from flashbed.report.collect import collect_validation
from flashbed.report.page import page, write_whole
from flashbed.report.page_summary import FindingSummary, Summary, read_summary
from flashbed.results.run_directory import RunDirectory

__all__ = ["INDEX", "write_index"]

INDEX = "index.html"
FINDINGS_MAX = 6
_TARGETS = {"sim": "simulator", "uml": "user-mode Linux", "emulator": "emulated board"}
_VALIDATION = "validation"


@dataclass(frozen=True)
class _ResultPage:
    """A result page and its summary."""

    path: Path
    summary: Summary


def write_index(results: Path, out: Path) -> Path:
    """Writes the page of a folder of results, whole or not at all. Raises `InputError`."""
    pages = list(_pages(results))
    studies = [one for one in pages if one.summary.study or len(one.summary.experiments) > 1]
    covered = {name for one in studies for name in one.summary.experiments}
    others = [one for one in pages if not covered & {*one.summary.experiments}]
    own = list(_own(results, pages, covered))
    checked = results / _VALIDATION
    lines = collect_validation(checked).lines if has_results(checked) else []
    if not pages and not own and not lines:
        raise InputError(f"{shown(results)}: holds no results; start with `flashbed run figure3`")
    text = page(
        "index.html.j2",
        {},
        title="All results",
        looks="",
        shapes="",
        summary=Markup("{}"),
        findings=[
            {
                "text": one.text,
                "to": _link(out, found.path, one.anchor),
                "from": found.summary.title,
                "drawn": bars_drawn(one.text, one.bars),
            }
            for found, one in _findings([*studies, *others])
        ],
        counted=COUNTED,
        studies=[_study(one, out) for one in studies],
        own=[_own_row(run, found, out) for run, found in own],
        validation=[_suite(line) for line in lines if line["fs"] is None],
        targets=_TARGETS,
    )
    return write_whole(text, out)


def _pages(results: Path) -> Iterator[_ResultPage]:
    """Pages in the folder and one level below, sorted by path."""
    for path in sorted([*results.glob("*/report.html"), *results.glob("*/*/report.html")]):
        summary = read_summary(path)
        if summary is not None:
            yield _ResultPage(path, summary)


def _own(
    results: Path, pages: Sequence[_ResultPage], covered: set[str]
) -> Iterator[tuple[RunDirectory, _ResultPage | None]]:
    """Runs that no study's page covers, each with its page if it has one."""
    by_folder = {one.path.parent: one for one in pages}
    for marker in sorted([*results.glob("*/run.json"), *results.glob("*/*/run.json")]):
        try:
            run = RunDirectory.open(marker.parent)
        except InputError:
            continue
        if run.experiment_id not in covered:
            yield run, by_folder.get(run.path)


def _findings(pages: Sequence[_ResultPage]) -> Iterator[tuple[_ResultPage, FindingSummary]]:
    """The findings marked for this page; a repeated sentence appears once."""
    said: dict[str, tuple[_ResultPage, FindingSummary]] = {}
    for one in pages:
        for finding in one.summary.findings:
            if finding.on_index:
                said.setdefault(finding.text, (one, finding))
    yield from list(said.values())[:FINDINGS_MAX]


def _study(one: _ResultPage, out: Path) -> dict[str, Any]:
    return {
        "title": one.summary.title,
        "to": _link(out, one.path),
        "again": _again(one.path),
        "rows": [
            {"target": _TARGETS.get(target, target), "cases": one.summary.cases.get(target, 0),
             "counts": counts}
            for target, counts in one.summary.verdicts.items()
        ],
    }  # fmt: skip


def _own_row(run: RunDirectory, found: _ResultPage | None, out: Path) -> dict[str, Any]:
    return {
        "name": run.experiment_id,
        "title": found.summary.title if found else None,
        "to": _link(out, found.path) if found else None,
        "best": found.summary.best if found else None,
        "cases": found.summary.cases if found else {},
        "again": _again(run.path / "report.html") if found else _command(run.path),
    }


def _again(path: Path) -> str | None:
    """The command that rewrites a page, if its tables are newer."""
    tables = [*path.parent.glob("cases.parquet"), *path.parent.glob("*/cases.parquet")]
    newest = max((table.stat().st_mtime_ns for table in tables), default=0)
    return _command(path.parent) if newest > path.stat().st_mtime_ns else None


def _command(folder: Path) -> str:
    return f"flashbed report {shown(folder)}"


def _suite(line: dict[str, Any]) -> dict[str, Any]:
    """A suite of the validation; `kept` says whether it met its limits, None if it has none."""
    kept = [limit["kept"] for limit in line["limits"].values()]
    return {
        "what": f"{line['board']}, {line['suite']}",
        "target": _TARGETS.get(line["target"], line["target"]),
        "cases": line["cases"],
        "missing": line["missing"],
        "kept": all(kept) if kept else None,
    }


def _link(out: Path, to: Path, anchor: str = "") -> str:
    """A relative link from one page to another."""
    relative = os.path.relpath(to.resolve(), out.resolve().parent)
    return quote(relative) + (f"#{anchor}" if anchor else "")
