"""Renders a report to one HTML page: figures as SVG, tables as HTML.

It chooses words and order and computes nothing. The page loads nothing from a network.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, get_args

import polars as pl
from markupsafe import Markup

from flashbed.answers.analysis.answer import HEADS, Answer
from flashbed.answers.analysis.verdicts import (
    AGREES,
    IN_DIRECTION,
    LESSER,
    NO_EVIDENCE,
    Verdict,
    judged_on,
)
from flashbed.answers.energy.fold import COMPONENTS
from flashbed.answers.lifetimes.subject import CAUSES
from flashbed.base.human import number_reader, time_text
from flashbed.plan.claims import Claim, Differs
from flashbed.plan.experiment import Experiment
from flashbed.plan.quantities import Figure, PowerMetric, RequestMetric, SavingMetric
from flashbed.plan.study import Study
from flashbed.report.anchors import anchor_of, claim_anchor, figure_anchor
from flashbed.report.bars import bars_drawn
from flashbed.report.collect import (
    AGREEMENT_SHOWN,
    BOUNDS_PCT,
    MEASURES,
    Content,
    Validation,
    WornCase,
    agreement_errors,
    figure_tables,
)
from flashbed.report.figures import (
    UNORDERED,
    agreement_figure,
    axes_figure,
    power_figure,
    rate_figure,
    request_figure,
    saving_figure,
    wear_figure,
)
from flashbed.report.page import in_script, page
from flashbed.report.page_summary import summary_of
from flashbed.report.playground import BESIDE
from flashbed.report.stated_findings import stated_findings
from flashbed.report.studied import study_rows
from flashbed.report.svg import Drawing

__all__ = ["figure_drawn", "render"]

_NAMES = {
    "sim": "the simulated stack",
    "uml": "user-mode Linux",
    "emulator": "the emulated board",
    "board": "the board over ssh",
}
_AXES = ("board", "kernel", "pattern", "requests", "read_ahead_kib", "seed")
VALIDATION_TITLE = "How far the simulator is from real kernels"
COUNTED = {
    "flash_reads": "page reads",
    "flash_programs": "page writes",
    "flash_erases": "erases",
    "time": "time in calls",
}
"""Measure of validation -> its name in the table."""
LIVE_MAX = 60
"""Links to the playground in a section, at most."""
MAPS_MAX = 12
"""Maps of wear on a page, at most."""
_SIGNS = {">": ">", ">=": "\u2265", "<": "<", "<=": "\u2264"}


def render(
    contents: Sequence[Content],
    validation: Validation | None = None,
    study: Study | None = None,
    playground: str | None = None,
) -> str:
    """Renders one or more experiments, a study's paper, and what `validate` kept.

    `playground` is the address that links to the playground begin with.
    """
    drawing = Drawing()
    sections = [_section(content) | _live(content, playground) for content in contents]
    for section in sections:
        for figure in section["figures"]:
            figure["drawn"] = drawing.figure(figure["id"], figure["title"], figure["specification"])
    findings = stated_findings({content.experiment.id: content.judged for content in contents})
    title = _title(contents, study)
    short = summary_of(title, contents, study, findings)
    return page(
        "page.html.j2",
        _FILTERS,
        title=title,
        looks=drawing.style(),
        shapes=drawing.shapes(),
        summary=Markup(in_script(short.model_dump())),
        headline=short.headline,
        findings=[{**vars(one), "drawn": bars_drawn(one.text, one.bars)} for one in findings],
        study=study_rows(study, contents, _NAMES) if study else None,
        validation=validation,
        validation_title=VALIDATION_TITLE,
        counted=COUNTED,
        sections=sections,
    )


def _title(contents: Sequence[Content], study: Study | None) -> str:
    if study:
        return study.study.title
    return contents[0].experiment.experiment.title if contents else VALIDATION_TITLE


def _section(content: Content) -> dict[str, Any]:
    experiment = content.experiment
    anchor = anchor_of(experiment)
    figures: list[dict[str, Any]] = []
    empty: list[str] = []
    for figure in experiment.figure:
        drawn, published = figure_tables(content, figure)
        if not drawn.height:
            empty.append(_selects_nothing(figure))
        else:
            figures.append(
                {
                    "id": figure_anchor(experiment, figure.id),
                    "name": _name(figure),
                    "title": figure.title,
                    "caption": figure.caption,
                    "text": figure.filled_text,
                    "key": _key(figure),
                    "specification": figure_drawn(figure, drawn, published),
                }
            )
    if content.agreement.height:
        figures.append(
            {
                "id": f"{anchor}-shown-agreement",
                "name": "Figure A. ",
                "title": "Simulator against kernel",
                "caption": "The simulator's error in each case that a real kernel ran too, in "
                "percent of the kernel's value. At each number of requests, read-ahead is off at "
                "the left and on at the right. The shaded zone is the error this project aims at.",
                "specification": agreement_figure(*agreement_errors(content.agreement)),
            }
        )
    if content.wear:
        figures.append(_wear_figure(content.wear, anchor))
    return {
        "experiment": experiment,
        "anchor": anchor,
        "ours": experiment.experiment.source == "ours",
        "answer": _answer(content.answer),
        "facts": experiment.experiment,
        "figures": figures,
        "empty": empty,
        "declared": content.declared,
        "counts": _counts(content.verdicts),
        "claimed": [target for target in judged_on(experiment) if target in experiment.compared],
        "claims": _claims(experiment, content.verdicts),
        "compared": experiment.compared,
        "power_cuts": content.power_cuts,
        "energy": content.energy,
        "energy_gaps": content.energy_gaps,
        "components": COMPONENTS,
        "wear": content.wear,
        "amplified": [worn for worn in content.wear if worn.a_byte_written["programmed"]],
        "causes": CAUSES,
        "agreement": _furthest_off(content.agreement).to_dicts(),
        "agreement_left": max(0, content.agreement.height - AGREEMENT_SHOWN),
        "agreement_summary": content.agreement_summary.to_dicts(),
        "statements": content.statements,
        "within": _within(content),
        "errors": MEASURES,
        "not_measured": content.not_measured,
        "targets": _NAMES,
        "bounds": BOUNDS_PCT,
        "profiles": content.profiles,
        "runs": content.runs,
        "again": content.again,
    }


def _live(content: Content, playground: str | None) -> dict[str, Any]:
    """Links to the playground: one a file system, and all."""
    cases = content.live if playground else []
    rows = [{**vars(case), "to": f"{playground}#{case.address}"} for case in cases]
    first = {row["fs"]: row for row in reversed(rows)}
    return {
        "live_first": [first[fs] for fs in dict.fromkeys(row["fs"] for row in rows)],
        "live": rows[:LIVE_MAX],
        "live_left": len(rows[LIVE_MAX:]),
        "live_beside": playground == BESIDE,
    }


def _furthest_off(agreement: pl.DataFrame) -> pl.DataFrame:
    """The cases that a page lists, the largest errors first."""
    if agreement.height <= AGREEMENT_SHOWN:
        return agreement
    furthest = pl.max_horizontal(pl.col(error).abs() for error in MEASURES)
    ranked = agreement.with_row_index("place").sort(furthest, descending=True, nulls_last=True)
    return ranked.head(AGREEMENT_SHOWN).sort("place").drop("place")


def _answer(found: Answer | None) -> dict[str, Any] | None:
    """The default table: the axes that vary, then the measures, formatted."""
    if found is None:
        return None
    columns = [*found.axes, *found.measured]
    rows = found.rows.select(columns)
    readers = [
        number_reader(name, whole=kind.is_integer())
        if kind.is_numeric() and name not in found.axes
        else str
        for name, kind in rows.schema.items()
    ]
    return {
        "title": found.title,
        "axes": len(found.axes),
        "heads": [HEADS.get(name, name) for name in columns],
        "rows": [
            [read(value) for read, value in zip(readers, row, strict=True)]
            for row in rows.iter_rows()
        ],
        "left": found.left,
        "notes": found.notes,
    }


def _selects_nothing(figure: Figure) -> str:
    """What to say in place of a figure without a case."""
    only = "; ".join(
        f"{axis} {', '.join(map(str, values))}" for axis, values in figure.only.items()
    )
    what = f"{_name(figure)}{figure.title}: no case of this run has {figure.metric}"
    return f"{what} with {only}" if only else what


_NUMBERED = re.compile(r"[0-9]+(-[a-z])?")


def _name(figure: Figure) -> str:
    """The paper's number of a figure or table, if it has one."""
    if _NUMBERED.fullmatch(figure.id):
        return f"Figure {figure.id}. "
    return f"{figure.id}. " if figure.id.startswith("Table ") else ""


def _key(figure: Figure) -> str:
    """How to read a figure, for its kind."""
    key = "Lines: simulated; open points: a real kernel. "
    if figure.x in UNORDERED:
        key = "Bars: simulated; open points: a real kernel. " if figure.over_axes else ""
    elif figure.x == "time":
        key = ""
    if any(point.low is not None for point in figure.published):
        key += "Black crosses: the paper's values, with the range that its rounding leaves. "
    elif figure.published:
        key += "Black crosses: what the paper states in words. "
    return key


def figure_drawn(figure: Figure, drawn: pl.DataFrame, published: pl.DataFrame) -> dict[str, Any]:
    """A figure as Vega-Lite."""
    if figure.metric in get_args(PowerMetric):
        return power_figure(drawn)
    if figure.colour and figure.rows and figure.columns:
        axes = {"x": figure.x, "colour": figure.colour, "rows": figure.rows}
        axes |= {"columns": figure.columns}
        return axes_figure(drawn, published, title=figure.title, axes=axes, scale=figure.scale)
    if figure.metric in get_args(RequestMetric):
        return request_figure(drawn, figure.title)
    if figure.metric in get_args(SavingMetric):
        return saving_figure(drawn, published, figure.title)
    return rate_figure(drawn, published, figure.title, figure.x)


def _wear_figure(worn: Sequence[WornCase], anchor: str) -> dict[str, Any]:
    shown = worn[:MAPS_MAX]
    differing = [axis for axis in _AXES if len({each.figures[axis] for each in shown}) > 1]
    panels = [(_map_title(each, differing), _map_line(each), each.cells) for each in shown]
    more = f" The first {MAPS_MAX} of {len(worn)} cases." if len(worn) > MAPS_MAX else ""
    return {
        "id": f"{anchor}-shown-wear",
        "name": "Figure W. ",
        "title": "Erases of every block",
        "caption": "Each square is a block of the partition, row by row from the top left; the"
        " number beside a row is that of its first block. The colour shows how often a block was"
        " erased since the file system was made, which erased every block once. Even colour means"
        f" even wear.{more}",
        "specification": wear_figure(panels),
    }


def _map_title(worn: WornCase, differing: Sequence[str]) -> str:
    """File system and target, and whatever else differs between the maps."""
    names = {"requests": "{} requests", "seed": "seed {}", "kernel": "Linux {}",
             "read_ahead_kib": "read-ahead {} KiB"}  # fmt: skip
    parts = [worn.figures["fs"].upper()]
    parts += [names.get(axis, "{}").format(worn.figures[axis]) for axis in differing]
    return f"{', '.join(parts)} · {_NAMES.get(worn.figures['target'], worn.figures['target'])}"


def _map_line(worn: WornCase) -> str:
    figures = worn.figures
    line = f"worst block {figures['worst']:,} erases, mean {figures['mean']:,.1f}"
    if figures["worst_pct"] is None:
        return line
    return f"{line}; {figures['worst_pct']:.2g} % of {figures['endurance']:,}"


def _counts(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    counts = []
    for target in verdicts[0].judged if verdicts else ():
        given = [verdict.judged[target].counted for verdict in verdicts]
        agree, nearly = given.count(AGREES), given.count(IN_DIRECTION)
        known = sum(word not in NO_EVIDENCE for word in given)
        if known:
            name = _NAMES[target]
            counts.append({"target": name, "agree": agree, "nearly": nearly, "judged": known})
    return counts


def _claims(experiment: Experiment, verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Verdicts by claim, in the order of the experiment."""
    groups: dict[str, dict[str, Any]] = {}
    for verdict in verdicts:
        claim = verdict.claim
        group = groups.setdefault(
            claim.id,
            {
                "claim": claim,
                "anchor": claim_anchor(experiment, claim.id),
                "paper": _paper(claim),
                "bound": _bound_text(claim),
                "rows": [],
            },
        )
        group["rows"].append(verdict)
    for group in groups.values():
        group["reasons"] = _reasons(group["rows"])
    return list(groups.values())


def _reasons(verdicts: Sequence[Verdict]) -> list[dict[str, str]]:
    """Why verdicts of a claim are not `agrees`: each reason once, with where it applies."""
    where: dict[tuple[str, str, str], list[str]] = {}
    for verdict in verdicts:
        for target, judged in verdict.judged.items():
            if judged.verdict in LESSER:
                name = f"{verdict.fs} on {_NAMES[target]}"
                where.setdefault(_reason(judged.why), []).append(f"{name}, Linux {judged.kernel}")
    return [
        {"head": head, "why": why, "evidence": evidence, "where": "; ".join(dict.fromkeys(places))}
        for (head, why, evidence), places in where.items()
    ]


def _reason(why: Differs | None) -> tuple[str, str, str]:
    """The heading of a reason, the reason, and its evidence."""
    if why is None:
        return "Unexplained", "nothing was tried yet", ""
    return ("Unexplained; tried" if why.unexplained else "Why it differs", *why.explanation)


def _paper(claim: Claim) -> str:
    """The paper's number with its unit, or that it gives none."""
    if claim.published is None:
        return "no number"
    relation = "about" if claim.operator == "within" else _SIGNS[claim.operator]
    return f"{relation} {_number(claim.published)} {claim.unit}"


def _bound_text(claim: Claim) -> str:
    """The inequality that a verdict checks."""
    if claim.operator == "within":
        return f"{_number(claim.low)} to {_number(claim.high)} {claim.unit}"
    return f"{_SIGNS[claim.operator]} {_number(claim.bound)} {claim.unit}"


def _within(content: Content) -> list[dict[str, Any]]:
    """How many cases keep each bound, by real target."""
    kept = []
    for (target,), table in content.agreement.group_by("target", maintain_order=True):
        for error, bound in BOUNDS_PCT.items():
            known = table[error].drop_nulls().abs()
            if known.len():
                counts = {"kept": (known <= bound).sum(), "cases": known.len()}
                name = {"target": _NAMES[str(target)], "measure": MEASURES[error]}
                kept.append({"bound": bound, **name, **counts})
    return kept


def _printed(value: float) -> str:
    """A number of a source, with as many digits as it has."""
    return f"{value:g}".replace("-", "\u2212")


def _slug(word: str) -> str:
    """A verdict as a class of the style sheet."""
    return word.replace(", ", "-").replace(" ", "-")


def _number(value: float | None) -> str:
    """A number with its significant digits and a real minus sign."""
    if value is None:
        return "—"
    digits = 1 if abs(value) >= 2 else 2
    text = f"{value:.{digits}f}" if value != int(value) else f"{int(value)}"
    return text.replace("-", "\u2212")


def _signed(value: float | None) -> str:
    """A signed error in percent; 0 if it rounds to 0, a dash if unknown."""
    if value is None:
        return "—"
    text = f"{value:+.2f}"
    return "0" if float(text) == 0 else text.replace("-", "\u2212")


def _hundredths(value: float | None) -> str:
    return "—" if value is None else f"{value:.2f}"


def _significant(value: float | None) -> str:
    """A number with three significant digits; a dash if unknown."""
    if value is None:
        return "—"
    if value == 0:
        return "0"
    return f"{value:,.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def _microseconds(value_ns: int | None) -> str:
    return "—" if value_ns is None else f"{value_ns // 1000:,}"


_FILTERS: dict[str, Callable[..., str]] = {
    "number": _number,
    "time_text": time_text,
    "signed": _signed,
    "hundredths": _hundredths,
    "microseconds": _microseconds,
    "significant": _significant,
    "slug": _slug,
    "printed": _printed,
}
