"""What all pages share: templates, style, and atomic writing.

A report's page holds its figures as SVG. A trace's page draws its figures when it is opened, so it
carries the Vega engine (`drawn_page`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import altair as alt
import jinja2
import vl_convert
from markupsafe import Markup

from flashbed import __version__
from flashbed.base.files import output
from flashbed.report.engine import need_engine

__all__ = ["drawn_page", "in_script", "page", "write_whole"]

_HERE = Path(__file__).parent


def page(template: str, filters: Mapping[str, Callable[..., str]], **values: Any) -> str:
    """Renders a template with its values."""
    environment = _environment()
    environment.filters |= filters
    return environment.get_template(template).render(
        **values,
        version=__version__,
        style=Markup((_HERE / "style.css").read_text(encoding="utf-8")),
        script=Markup((_HERE / "page.js").read_text(encoding="utf-8")),
    )


def drawn_page(template: str, specifications: Mapping[str, Any], **values: Any) -> str:
    """Renders a template with figures and the engine that draws them without a network."""
    return page(
        template,
        {},
        **values,
        engine=Markup(_engine()),
        specifications=Markup(in_script(specifications)),
    )


@cache
def _environment() -> jinja2.Environment:
    """The templates' environment, cached: compiling takes half the time of a short report."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def in_script(data: Any) -> str:
    """JSON for a script element, escaped so that neither `</script>` nor `<!--<script>` ends it."""
    return json.dumps(data).replace("<", "\\u003c")


def _engine() -> str:
    """Vega, Vega-Lite and vegaEmbed as one script, in the version that altair writes for."""
    need_engine()
    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    bundle: str = vl_convert.javascript_bundle(vl_version=version)  # type: ignore[call-arg]
    return bundle.replace("</script", "<\\/script")


def write_whole(text: str, out: Path) -> Path:
    """Writes a page whole, or leaves the old one. The user has named the file."""
    with output(out) as new:
        new.write_text(text, encoding="utf-8")
    return out
