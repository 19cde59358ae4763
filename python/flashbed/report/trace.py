"""The report of a trace: its summary and figures on one page that needs no network."""

from __future__ import annotations

import json
from pathlib import Path

import jinja2
from markupsafe import Markup

from flashbed import __version__
from flashbed.report.render import engine
from flashbed.tracing.figures import figures
from flashbed.tracing.summary import lines
from flashbed.tracing.trace import load

__all__ = ["write_trace_report"]

_HERE = Path(__file__).parent


def write_trace_report(directory: Path, out: Path) -> Path:
    """Writes it, whole or not at all. Raises `InputError`."""
    trace = load(directory)
    drawn = [
        {"id": f"figure-{number}", "title": title, "caption": caption, "specification": chart}
        for number, (title, caption, chart) in enumerate(figures(trace))
    ]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    specifications = {figure["id"]: figure["specification"] for figure in drawn}
    text = environment.get_template("trace.html.j2").render(
        facts=trace.facts,
        summary="\n".join(lines(trace)),
        figures=drawn,
        version=__version__,
        style=Markup((_HERE / "style.css").read_text(encoding="utf-8")),
        engine=Markup(engine()),
        specifications=Markup(json.dumps(specifications).replace("</", "<\\/")),
    )
    temporary = out.with_name(f".{out.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(out)
    return out
