"""What all pages share: templates, style, and being written whole.

A page of a report is whole as it stands. That of a trace draws its figures when it is opened, which
takes the engine of Vega in it (`drawn_page`).
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
from flashbed.storage.files import whole

__all__ = ["drawn_page", "in_script", "page", "write_whole"]

_HERE = Path(__file__).parent


def page(template: str, filters: Mapping[str, Callable[..., str]], **values: Any) -> str:
    """A template with its values."""
    environment = _environment()
    environment.filters |= filters
    return environment.get_template(template).render(
        **values,
        version=__version__,
        style=Markup((_HERE / "style.css").read_text(encoding="utf-8")),
        script=Markup((_HERE / "page.js").read_text(encoding="utf-8")),
    )


def drawn_page(template: str, specifications: Mapping[str, Any], **values: Any) -> str:
    """A template with its values, and with figures and all that draws them without a network."""
    return page(
        template,
        {},
        **values,
        engine=Markup(_engine()),
        specifications=Markup(in_script(specifications)),
    )


@cache
def _environment() -> jinja2.Environment:
    """Templates are compiled once: that takes half of a short report."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def in_script(data: Any) -> str:
    """JSON within a script element, which `</script>` ends and `<!--<script>` keeps from ending."""
    return json.dumps(data).replace("<", "\\u003c")


def _engine() -> str:
    """Vega, Vega-Lite and vegaEmbed as one script, in the version altair writes for."""
    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    bundle: str = vl_convert.javascript_bundle(vl_version=version)  # type: ignore[call-arg]
    return bundle.replace("</script", "<\\/script")


def write_whole(text: str, out: Path) -> Path:
    """Writes a page, or leaves what was there."""
    with whole(out) as new:
        new.write_text(text, encoding="utf-8")
    return out
