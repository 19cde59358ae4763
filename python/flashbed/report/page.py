"""What all pages share: templates, style, the engine of the figures, and being written whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import altair as alt
import jinja2
import vl_convert
from markupsafe import Markup

from flashbed import __version__

__all__ = ["page", "write_whole"]

_HERE = Path(__file__).parent


def page(
    template: str,
    specifications: Mapping[str, Any],
    filters: Mapping[str, Callable[..., str]],
    **values: Any,
) -> str:
    """A template with its values, and the figures with all that draws them without a network."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    return environment.get_template(template).render(
        **values,
        version=__version__,
        style=Markup((_HERE / "style.css").read_text(encoding="utf-8")),
        engine=Markup(_engine()),
        # "</" would end the script element that carries the data.
        specifications=Markup(json.dumps(specifications).replace("</", "<\\/")),
    )


def _engine() -> str:
    """Vega, Vega-Lite and vegaEmbed as one script, in the version altair writes for."""
    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    bundle: str = vl_convert.javascript_bundle(vl_version=version)  # type: ignore[call-arg]
    return bundle.replace("</script", "<\\/script")


def write_whole(text: str, out: Path) -> Path:
    """Writes a page, or leaves what was there."""
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_name(f".{out.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(out)
    return out
