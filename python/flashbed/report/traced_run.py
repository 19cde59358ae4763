"""The report of a trace: summary and figures on one page that needs no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flashbed.bench.tracing.summary import lines
from flashbed.bench.tracing.trace import load
from flashbed.bench.tracing.trace_figures import figures
from flashbed.report.page import drawn_page, write_whole

__all__ = ["write_trace_report"]


def write_trace_report(directory: Path, out: Path) -> Path:
    """Writes the page, whole or not at all. Raises `InputError`."""
    trace = load(directory)
    drawn: list[dict[str, Any]] = [
        {"id": f"figure-{number}", "title": title, "caption": caption, "specification": chart}
        for number, (title, caption, chart) in enumerate(figures(trace))
    ]
    text = drawn_page(
        "trace.html.j2",
        {figure["id"]: figure["specification"] for figure in drawn},
        facts=trace.facts,
        summary="\n".join(lines(trace)),
        figures=drawn,
    )
    return write_whole(text, out)
