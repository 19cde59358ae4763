"""The summary that a result page carries for the page of all results.

It is JSON in the page. A page may come from a stranger, so it is read as strictly as a file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import polars as pl
from pydantic import Field, ValidationError

from flashbed.answers.analysis.sentences import COUNTED, claim_verdicts, sentence_verdict
from flashbed.answers.analysis.verdicts import JUDGED
from flashbed.base.errors import InputError
from flashbed.base.files import read_text
from flashbed.base.human import time_text
from flashbed.base.toml import Strict
from flashbed.plan.study import Study
from flashbed.report.collect import Content
from flashbed.report.stated_findings import StatedFinding
from flashbed.stack.names import Text

__all__ = ["BarSummary", "FindingSummary", "Summary", "read_summary", "summary_of"]

_KEPT = re.compile(r'<script type="application/json" id="summary">(.*?)</script>', re.DOTALL)
Target = Annotated[str, Field(max_length=40, pattern=r"^[a-z-]+$")]
Anchor = Annotated[str, Field(max_length=400, pattern=r"^[A-Za-z0-9.-]+$")]


class BarSummary(Strict):
    """A bar of a finding's figure."""

    label: Text
    value: float
    text: Text
    real: dict[Target, float] = Field(default_factory=dict)


class FindingSummary(Strict):
    """A finding as the report states it."""

    text: Text
    anchor: Anchor
    on_index: bool
    bars: list[BarSummary]


class Summary(Strict):
    """A report in short.

    `verdicts` counts a study's sentences by target, as answers/analysis/sentences.py orders them.
    `cases` counts the cases of each target; `best` is the first row of the answer.
    """

    format: Literal["flashbed-summary 2"] = "flashbed-summary 2"
    title: Text
    study: Text | None
    experiments: list[Text]
    cases: dict[Target, int]
    verdicts: dict[Target, list[int]]
    findings: list[FindingSummary]
    best: Text | None

    @property
    def headline(self) -> str | None:
        """The answer in a sentence: which configuration is best, or the first finding."""
        return self.best or (self.findings[0].text if self.findings else None)


def summary_of(
    title: str, contents: Sequence[Content], study: Study | None, findings: Sequence[StatedFinding]
) -> Summary:
    """The summary of a report."""
    cases: dict[str, int] = {}
    for content in contents:
        for (target,), rows in content.cases.group_by("target", maintain_order=True):
            cases[str(target)] = cases.get(str(target), 0) + rows.height
    return Summary(
        title=title,
        study=study.path.stem if study else None,
        experiments=[content.experiment.id for content in contents],
        cases=cases,
        verdicts=_verdicts(study, contents, cases) if study else {},
        findings=[
            FindingSummary(
                text=one.text,
                anchor=one.anchor,
                on_index=one.on_index,
                bars=[BarSummary(**vars(bar)) for bar in one.bars],
            )
            for one in findings
        ],
        best=_best(contents),
    )


def _verdicts(
    study: Study, contents: Sequence[Content], cases: dict[str, int]
) -> dict[str, list[int]]:
    """Verdicts on the source's sentences, or on ours if it has no others; by target that ran."""
    runs = {content.experiment.id.split("/")[1]: content.verdicts for content in contents}
    source = [item for item in study.item if not item.ours] or list(study.item)
    counts = {}
    for target in JUDGED:
        if target in cases:
            judged = claim_verdicts(runs, target)
            words = [sentence_verdict(one, judged) for item in source for one in item.sentence]
            counts[target] = [words.count(word) for word in COUNTED]
    return counts


def _best(contents: Sequence[Content]) -> str | None:
    """The fastest of the compared configurations, if the report is of one experiment."""
    if len(contents) != 1 or contents[0].answer is None:
        return None
    answer, axes = contents[0].answer, list(contents[0].answer.axes)
    rows = answer.rows
    if "target" in axes:  # the choices differ by target too, and some targets know no time
        axes.remove("target")
        own = "sim" if "sim" in rows["target"] else rows["target"][0]
        rows = rows.filter(pl.col("target") == own)
    rows = rows.filter(pl.col("failed").fill_null(0) == 0)
    if rows.is_empty():
        return None
    by = "flash_time_ns" if rows["time_ns"].null_count() else "time_ns"
    first, *others = rows.sort(by, nulls_last=True, maintain_order=True).to_dicts()
    if not others or not answer.works:
        return None
    choice = ", ".join(str(first[axis]) for axis in axes)
    best, worst = time_text(first[by]), time_text(others[-1][by])
    return f"{choice} is the fastest of {len(others) + 1}: {best} in calls; the slowest: {worst}"


def read_summary(page: Path) -> Summary | None:
    """Reads a page's summary; None if it has no valid one."""
    try:
        kept = _KEPT.search(read_text(page))
        return Summary.model_validate_json(kept.group(1)) if kept else None
    except (InputError, ValidationError):
        return None
