"""Draws the small figure of a finding: a bar for each number, with the values of real kernels.

It is as wide as a telephone's screen and needs no scale: each bar begins at 0 and shows its number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from markupsafe import Markup, escape

__all__ = ["bars_drawn"]


class Bar(Protocol):
    """A labelled number, and the same number on real kernels, by target."""

    @property
    def label(self) -> str: ...
    @property
    def value(self) -> float: ...
    @property
    def text(self) -> str: ...
    @property
    def real(self) -> Mapping[str, float]: ...


_WIDTH = 320
_BAR = 210
"""Width of the longest bar; the rest is space for its number."""
_ROW = 34
_TOP = 12
_INK, _SOFT = "#1d2126", "#5b636d"
_FILLS = ("#0072b2", "#56b4e9", "#009e73", "#e69f00", "#cc79a7", "#d55e00")
_NAMES = {"uml": "user-mode Linux", "emulator": "emulated board", "sim": "simulated"}


def bars_drawn(title: str, bars: Sequence[Bar]) -> Markup:
    """The figure as SVG; empty if there are no bars."""
    if not bars:
        return Markup("")
    values = [value for bar in bars for value in (bar.value, *bar.real.values())]
    most = max((abs(value) for value in values), default=0.0) or 1.0
    height = _ROW * len(bars) + 2
    rows = [_row(bar, place, most) for place, bar in enumerate(bars)]
    head = Markup(
        '<svg class="bars" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img"'
        ' aria-label="{title}">'
    ).format(w=_WIDTH, h=height, title=title)
    return head + Markup("").join(rows) + Markup("</svg>")


def _row(bar: Bar, place: int, most: float) -> Markup:
    top = place * _ROW + _TOP
    wide = max(1.0, _BAR * abs(bar.value) / most)
    fill = _FILLS[place % len(_FILLS)]
    drawn = Markup(
        '<text x="0" y="{y}" font-size="12" fill="{soft}">{label}</text>'
        '<rect x="0" y="{top}" width="{wide:.1f}" height="11" fill="{fill}"/>'
        '<text x="{after:.1f}" y="{base}" font-size="12" font-weight="600" fill="{ink}">'
        "{text}</text>"
    ).format(
        y=top, soft=_SOFT, ink=_INK, label=bar.label, top=top + 5, wide=wide, fill=fill,
        after=max(wide, *(_BAR * abs(value) / most + 5 for value in bar.real.values()), 0) + 7,
        base=top + 15, text=bar.text,
    )  # fmt: skip
    for target, value in bar.real.items():
        drawn += _mark(target, _BAR * abs(value) / most, top + 10.5, value)
    return drawn


def _mark(target: str, x: float, y: float, value: float) -> Markup:
    """A real kernel's value: a ring for user-mode Linux, a triangle for the emulated board."""
    told = escape(f"{_NAMES.get(target, target)}: {value:.4g}")
    look = 'fill="#fff" stroke="#1d2126" stroke-width="1.6"'
    if target == "emulator":
        shape = f'<path d="M{x - 5:.1f} {y + 4:.1f}h10l-5-9z" {look}>'
        return Markup(f"{shape}<title>{told}</title></path>")
    shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" {look}>'
    return Markup(f"{shape}<title>{told}</title></circle>")
