"""Pictures of the live figures: what a reader without JavaScript sees, and GitHub shows.

page/web/figures.json says what a figure compares; the playground simulates it in the reader's
browser (page/web/figure.ts). Here the native simulator runs what a figure shows first.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from flashbed.plan.case import Case
from flashbed.plan.experiment import SETTLE_NS, WorkloadTable
from flashbed.plan.workloads import operations
from flashbed.report.playground import USUAL, address
from flashbed.stack.profiles import load_kernel
from flashbed.targets.base import Program
from flashbed.targets.sim import SimTarget

__all__ = ["FIGURES", "GUIDE", "PICTURES", "Point", "points"]

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide"
FIGURES: Mapping[str, Any] = json.loads(
    (ROOT / "page" / "web" / "figures.json").read_text(encoding="utf-8")
)
WIDTH = 720
HEIGHT = 470
LEFT = 84
TOP = 92
BOTTOM = 380
NS_A_MS = 1e6
KIB = 1024
STYLE = """
  text { font: 22px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--soft) }
  svg { --page: #ffffff; --line: #c3ccd8; --soft: #4b5868;
        --a: #1b9e7d; --b: #d98700; --c: #2f8fd0 }
  @media (prefers-color-scheme: dark) {
    svg { --page: #10151c; --line: #3d4a5c; --soft: #aeb9c7;
          --a: #35b597; --b: #f0a92b; --c: #56b4e9 }
  }
  .page { fill: var(--page) } .axis { stroke: var(--line) } .end { text-anchor: end }
  .middle { text-anchor: middle } .mark { stroke: var(--page); stroke-width: 1.6 }
  .a { fill: var(--a) } .b { fill: var(--b) } .c { fill: var(--c) }
"""
COLOURS = ("a", "b", "c")
MARKS = (None, "M-2,2 l4,-4 M0,8 l8,-8 M6,10 l4,-4", "M2,2 h2 v2 h-2 z M6,6 h2 v2 h-2 z")
"""Stripes and dots that tell series apart without colour."""


@dataclass(frozen=True)
class Point:
    """A bar: the address of its configuration, and what the simulator measured."""

    address: str
    value: int


@cache
def points(name: str) -> list[list[Point]]:
    """A figure's bars by series, as it shows them first."""
    figure = FIGURES[name]
    first = {key: values[0] for key, values in figure["choices"].items()}
    first |= {"think": first["think"] == "true"} if "think" in first else {}
    measure = next(iter(figure["measures"]))
    over = figure["over"]
    cases = [
        _case({**USUAL, **figure["of"], **first, over["key"]: at, **series["set"]})
        for series in figure["series"]
        for at in over["values"]
    ]
    programs = [_program(number, *one) for number, one in enumerate(cases)]
    measured = {
        row["case_id"]: row[measure]
        for batch in SimTarget().run(programs)
        for row in batch.cases.to_dicts()
    }
    found = []
    for (case, workload), program in zip(cases, programs, strict=True):
        words = address(case, workload)
        assert words is not None, case.case_id
        found.append(Point(words, measured[program.case_id]))
    width = len(over["values"])
    return [found[at : at + width] for at in range(0, len(found), width)]


def _case(words: Mapping[str, Any]) -> tuple[Case, WorkloadTable]:
    """A configuration of the page as a case and its workload."""
    micro = words["program"].startswith("micro-")
    window = words["readAhead"]
    case = Case(
        experiment="figure", board=words["board"], kernel=words["kernel"], fs=words["fs"],
        pattern=words["order"] if micro else ("recorded" if words["think"] else "flat-out"),
        requests=words["requests"] if micro else 1, seed=1, pause_ns=0, advice="none",
        read_ahead_kib="default" if window < 0 else window, mount="default",
        file_bytes=words["fileKib"] * KIB if micro else 0,
        request_bytes=words["requestBytes"] if micro else 1,
    )  # fmt: skip
    recording = ROOT / "experiments" / "programs" / f"{words['program']}.parquet"
    workload = WorkloadTable(
        kind=words["program"] if micro else "program", request_bytes=case.request_bytes,
        file_bytes=case.file_bytes, settle_ns=SETTLE_NS,
        recording=None if micro else str(recording),
    )  # fmt: skip
    return case, workload


def _program(number: int, case: Case, workload: WorkloadTable) -> Program:
    prepare, body = operations(workload.kind, case, SETTLE_NS, workload.recording)
    stack = case.stack(case.profile(), load_kernel(case.kernel))
    return Program(case_id=str(number), stack=stack, prepare=prepare, body=body)


def _ticks(most: float) -> list[float]:
    """Round numbers from 0 to at least `most`, four or five of them."""
    power = 10.0 ** math.floor(math.log10(most / 4))
    step = next(one for one in (1, 2, 2.5, 5, 10) if one * power >= most / 4) * power
    return [at * step for at in range(math.ceil(most / step) + 1)]


def _text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{words}</text>'


def _picture(name: str) -> str:
    """A figure as SVG: grouped bars, a legend above, and what is below them."""
    figure = FIGURES[name]
    over, series = figure["over"], figure["series"]
    heights = [
        [
            point.value / NS_A_MS / (at if figure["each"] else 1)
            for point, at in zip(row, over["values"], strict=True)
        ]
        for row in points(name)
    ]
    marks = _ticks(max(max(row) for row in heights))
    scale = (BOTTOM - TOP) / marks[-1]
    parts = [_pattern(row) for row in range(len(series))]
    at = 10.0
    for row, one in enumerate(series):
        parts.append(f'<rect x="{at:g}" y="12" width="20" height="20" fill="url(#p{row})"/>')
        parts.append(_text(at + 28, 29, one["label"]))
        at += 52 + 11.5 * len(one["label"])
    parts.append(_text(10, 72, f"{next(iter(figure['measures'].values()))} (ms)"))
    for mark in marks:
        y = BOTTOM - mark * scale
        parts.append(f'<path d="M{LEFT} {y:.1f} H{WIDTH - 10}" class="axis"/>')
        parts.append(_text(LEFT - 10, round(y + 8, 1), f"{mark:g}", "end"))
    slot = (WIDTH - 10 - LEFT) / len(over["values"])
    bar = min(46, slot * 0.82 / len(series))
    labels = over.get("labels") or [f"{value:,}" for value in over["values"]]
    for column, label in enumerate(labels):
        left = LEFT + slot * column + (slot - bar * len(series)) / 2
        for row in range(len(series)):
            high = heights[row][column] * scale
            parts.append(
                f'<rect x="{left + bar * row:.1f}" y="{BOTTOM - high:.1f}" width="{bar - 1:.1f}"'
                f' height="{high:.1f}" fill="url(#p{row})"/>'
            )
        parts.append(_text(round(LEFT + slot * (column + 0.5), 1), BOTTOM + 30, label, "middle"))
    parts.append(_text((LEFT + WIDTH) / 2, BOTTOM + 68, over["title"], "middle"))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}"'
        f' height="{HEIGHT}" role="img" aria-label="{figure["title"]}">'
    )
    background = f'<rect width="{WIDTH}" height="{HEIGHT}" class="page"/>'
    all_parts = [f"<title>{figure['title']}</title>", f"<style>{STYLE}</style>", background, *parts]
    return "\n".join([head, *all_parts, "</svg>"]) + "\n"


def _pattern(row: int) -> str:
    mark = f'<path d="{MARKS[row]}" class="mark"/>' if MARKS[row] else ""
    fill = f'<rect width="8" height="8" class="{COLOURS[row]}"/>'
    size = 'width="8" height="8" patternUnits="userSpaceOnUse"'
    return f'<pattern id="p{row}" {size}>{fill}{mark}</pattern>'


PICTURES: Mapping[str, Callable[[], str]] = {
    f"live-{name}.svg": partial(_picture, name) for name in FIGURES
}
"""File name in docs/guide -> what makes its text."""
