"""Draws figures as SVG in the page: opening it draws nothing, and it prints as shown.

Each figure is drawn for a wide page and for a narrow one (narrow.py); style.css shows one
of them. Vega's SVG is shrunk: positions in tenths of a pixel, styles as classes that all figures of
a page share, no empty groups. What only serves a pointer is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree as Xml

import altair as alt
import vl_convert
from markupsafe import Markup, escape

from flashbed.report.engine import need_engine
from flashbed.report.narrow import narrowed

__all__ = ["Drawing"]

_SVG = "http://www.w3.org/2000/svg"
_LOOKS = (
    "fill", "fill-opacity", "font-size", "font-weight", "opacity", "stroke", "stroke-dasharray",
    "stroke-opacity", "stroke-width", "text-anchor",
)  # fmt: skip
"""Attributes that style can replace."""
_SHAPES = (
    "transform",
    "d",
    "x",
    "y",
    "x2",
    "y2",
    "width",
    "height",
    "offset",
    "points",
    "clip-path",
)
_USUAL = {"opacity": "1", "fill-opacity": "1", "stroke-opacity": "1", "font-weight": "normal"}
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_AT = re.compile(r"translate\(([-\d.e]+),([-\d.e]+)\)")
_MARKS = re.compile(r"mark-(symbol|line|rect)")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass
class Drawing:
    """The figures of one page and the styles that they share."""

    looks: dict[tuple[tuple[str, str], ...], str] = field(default_factory=dict)
    """Attributes -> the class that replaces them."""
    symbols: dict[str, str] = field(default_factory=dict)
    """A point's outline -> its id; some figures have thousands of points."""

    def figure(self, name: str, title: str, specification: Mapping[str, Any]) -> Markup:
        """Draws a figure in both widths; `name` is its id in the page."""
        wide = self._drawn(f"{name}-w", title, specification)
        narrow = self._drawn(f"{name}-n", title, narrowed(specification))
        return Markup('<div class="on-wide">{}</div><div class="on-narrow">{}</div>').format(
            wide, narrow
        )

    def style(self) -> Markup:
        """The style sheet of the classes."""
        rules = (
            f".{name}{{{';'.join(f'{key}:{value}' for key, value in look)}}}"
            for look, name in self.looks.items()
        )
        return Markup("\n".join(rules))

    def shapes(self) -> Markup:
        """The points' outlines, which the figures refer to."""
        paths = "".join(f'<path id="{name}" d="{d}"/>' for d, name in self.symbols.items())
        return Markup(f'<svg class="shapes" width="0" height="0"><defs>{paths}</defs></svg>')

    def _drawn(self, name: str, title: str, specification: Mapping[str, Any]) -> Markup:
        need_engine()
        version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
        drawn = vl_convert.vegalite_to_svg(dict(specification), vl_version=version)
        root = Xml.fromstring(drawn)
        width, height = root.attrib["width"], root.attrib["height"]
        ids = {
            element.attrib["id"]: f"{name}-{number}"
            for number, element in enumerate(root.iter())
            if "id" in element.attrib
        }
        inner = "".join(self._text(child, ids) for child in [*root][1:])  # [0] is the background
        return Markup(
            f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"'
            f' aria-label="{escape(title)}">{inner}</svg>'
        )

    def _text(self, element: Xml.Element, ids: Mapping[str, str]) -> str:
        tag = element.tag.removeprefix(f"{{{_SVG}}}")
        given = element.attrib
        named = given.get("class", "")
        if tag == "path" and (given.get("d", "") == "" or _is_empty(named, given)):
            return ""
        if given.get("display") == "none":
            return ""
        if "mark-symbol role-mark" in named:
            return f'<g class="mark-symbol">{self._points(element, ids)}</g>'
        if len(element) and all(child.tag == f"{{{_SVG}}}line" for child in element):
            return self._lines(element, ids)
        inner = "".join(self._text(child, ids) for child in element)
        words = str(escape(element.text or "")) if tag == "text" else ""
        mark = _MARKS.search(named) if "role-mark" in named or "symbol" in named else None
        attributes = self._attributes(tag, given, mark.group() if mark else "", ids)
        if tag == "g" and (not inner or not attributes):
            return inner
        return (
            f"<{tag}{attributes}>{words}{inner}</{tag}>"
            if words or inner
            else (f"<{tag}{attributes}/>")
        )

    def _lines(self, group: Xml.Element, ids: Mapping[str, str]) -> str:
        """An axis's ticks or grid; lines of the same style become one path."""
        drawn: dict[str, list[str]] = {}
        for line in group:
            given = line.attrib
            at = _AT.fullmatch(given.get("transform", "translate(0,0)"))
            x, y = at.groups() if at else ("0", "0")
            step = f"M{x},{y}l{given.get('x2', '0')},{given.get('y2', '0')}"
            look = self._attributes("path", {key: given[key] for key in _LOOKS if key in given},
                                    "", ids)  # fmt: skip
            drawn.setdefault(look, []).append(_NUMBER.sub(_tenths, step))
        return "".join(f'<path{look} d="{"".join(steps)}"/>' for look, steps in drawn.items())

    def _points(self, group: Xml.Element, ids: Mapping[str, str]) -> str:
        """The points of a group, each with its position and style."""
        drawn: list[str] = []
        before = None
        for point in group:
            at = _AT.fullmatch(point.attrib.get("transform", ""))
            if at is None:
                drawn += ["</g>"] * (before is not None) + [self._text(point, ids)]
                before = None
                continue
            x, y = (_NUMBER.sub(_tenths, place) for place in at.groups())
            d = _NUMBER.sub(_tenths, point.attrib["d"])
            symbol = self.symbols.setdefault(d, f"s{len(self.symbols)}")
            look = self._attributes("use", {key: point.attrib[key] for key in _LOOKS
                                            if key in point.attrib}, "", ids)  # fmt: skip
            if look != before:
                drawn += ["</g>"] * (before is not None) + [f"<g{look}>"]
                before = look
            drawn.append(f'<use href="#{symbol}" x="{x}" y="{y}"/>')
        return "".join([*drawn, *["</g>"] * (before is not None)])

    def _attributes(
        self, tag: str, given: Mapping[str, str], mark: str, ids: Mapping[str, str]
    ) -> str:
        look = tuple(
            (key, given[key]) for key in _LOOKS if key in given and given[key] != _USUAL.get(key)
        )
        look = tuple((key, _own(value, ids)) for key, value in look)
        classes = [mark] if mark else []
        if look and tag != "stop":
            classes.append(self.looks.setdefault(look, _class(len(self.looks))))
        found = [("class", " ".join(classes))] if classes else []
        if "id" in given:
            found.append(("id", ids[given["id"]]))
        for key in _SHAPES:
            value = given.get(key, "")
            if value and value != "translate(0,0)":
                found.append((key, _NUMBER.sub(_tenths, _own(value, ids))))
        if tag == "stop":
            found.append(("stop-color", given["stop-color"]))
        if tag == "linearGradient":
            found += [(key, given[key]) for key in ("x1", "y1") if key in given]
        return "".join(f' {key}="{escape(value)}"' for key, value in found)


def _is_empty(named: str, given: Mapping[str, str]) -> bool:
    """Whether the element is a group's background, which is invisible."""
    return named in ("background", "foreground") and not {"fill", "stroke"} & given.keys()


def _own(value: str, ids: Mapping[str, str]) -> str:
    """Prefixes a reference to an id, since several figures share a page."""
    return re.sub(r"url\(#([^)]*)\)", lambda found: f"url(#{ids[found.group(1)]})", value)


def _class(number: int) -> str:
    tens, ones = divmod(number, len(_LETTERS))
    return f"v{_LETTERS[ones]}{tens or ''}"


def _tenths(found: re.Match[str]) -> str:
    return f"{float(found.group()):.1f}".rstrip("0").rstrip(".").replace("-0.", "-.") or "0"
