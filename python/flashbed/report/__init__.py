"""The report of one or more runs: one HTML file that works without a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flashbed.answers.analysis.agreement import ERRORS
from flashbed.plan.study import Study
from flashbed.report.collect import collect, collect_validation
from flashbed.report.playground import page_for

__all__ = ["summary_json", "write_all_results", "write_report"]


def write_report(
    directories: Sequence[Path],
    out: Path,
    validated: Path | None = None,
    study: Study | None = None,
) -> Path:
    """Writes the report of run directories, whole or not at all. Raises `InputError`.

    The results that `validate` kept in `validated` are shown after the runs. With a `study`, the
    page opens with the verdicts on the paper's figures and tables.
    """
    # Imported late: altair and jinja2 take most of a second.
    from flashbed.report.page import write_whole
    from flashbed.report.render import render

    contents = [collect(directory) for directory in directories]
    playground = page_for(out) if any(content.live for content in contents) else None
    kept = collect_validation(validated) if validated else None
    return write_whole(render(contents, kept, study, playground), out)


def write_all_results(results: Path, out: Path) -> Path:
    """Writes the page of a folder of results, whole or not at all. Raises `InputError`."""
    from flashbed.report.index import write_index

    return write_index(results, out)


def summary_json(directories: Sequence[Path]) -> dict[str, list[dict[str, Any]]]:
    """The claims and the agreement that `flashbed reproduce --format json` prints."""
    contents = [collect(directory) for directory in directories]
    return {
        "claims": [verdict.as_json() for content in contents for verdict in content.verdicts],
        "agreement": [
            row
            for content in contents
            for row in content.agreement.select("target", "case_id", *ERRORS).to_dicts()
        ],
    }
