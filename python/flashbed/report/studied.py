"""A study's source item by item: a row for each, with the claims that judge it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flashbed.answers.analysis.sentences import claim_verdicts, sentence_verdict
from flashbed.answers.analysis.verdicts import (
    AGREES,
    DIFFERS,
    JUDGED,
    NOT_MEASURED,
    items,
    judged_on,
)
from flashbed.plan.experiment import Experiment
from flashbed.plan.study import Study, cross_checked
from flashbed.report.anchors import claim_anchor, item_anchor
from flashbed.report.collect import Content
from flashbed.report.printed import (
    NEAR_PCT,
    counted_line,
    errors_by_item,
    printed_numbers,
)

__all__ = ["study_rows"]


def study_rows(
    study: Study, contents: Sequence[Content], names: Mapping[str, str]
) -> dict[str, Any]:
    """The source's figures, tables and sections, each with its verdicts.

    `names` are the targets' names.
    """
    verdicts = [verdict for content in contents for verdict in content.verdicts]
    counts = items(verdicts)
    targets = list(
        dict.fromkeys(
            [*JUDGED, *(t for content in contents for t in judged_on(content.experiment))]
        )
    )
    runs = {content.experiment.id.split("/")[1]: content.verdicts for content in contents}
    experiments = {name.split("/")[1]: one for name, one in _experiments(contents).items()}
    words = {target: claim_verdicts(runs, target) for target in targets}
    ours = all(item.ours for item in study.item)
    rows = [
        {
            "item": item,
            "anchor": item_anchor(item.id),
            "claim": next(iter(_anchors(item.claims, experiments)), None),
            "sentences": [
                {
                    "sentence": one,
                    "claims": _anchors(one.claims, experiments),
                    "words": [sentence_verdict(one, words[target]) for target in targets],
                }
                for one in item.sentence
            ],
            "judged": [
                _item_verdict(*counts.get(item.id, {}).get(target, (0, 0))) for target in targets
            ],
        }
        for item in study.item
    ]
    return {
        "printed": _printed(study, contents, experiments),
        "cross_checks": [
            {**check.model_dump(), "anchor": item_anchor(check.id), "rows": rows}
            for check, rows in cross_checked(study)
        ],
        "facts": study.study,
        "ours": ours,
        "heading": "What this study asks" if ours else "What the source says, item by item",
        "rows": rows,
        "targets": [names[name] for name in targets],
    }


def _printed(
    study: Study, contents: Sequence[Content], experiments: Mapping[str, Experiment]
) -> dict[str, Any]:
    """The numbers that the source prints, with their errors on the simulator."""
    runs = {content.experiment.id.split("/")[1]: content.judged for content in contents}
    numbers = printed_numbers(study.path.stem, study, runs)
    items = {item.id for item in study.item}
    claims = {
        f"{name}/{claim.id}": claim_anchor(one, claim.id)
        for name, one in experiments.items()
        for claim in one.claim
    }
    return {
        "line": counted_line(numbers),
        "near_pct": NEAR_PCT,
        "rows": [{"number": one, "claim": claims.get(one.name)} for one in numbers],
        "by_item": [
            {"item": item, "anchor": item_anchor(item) if item in items else "numbers",
             "errors": errors}
            for (_, item), errors in errors_by_item(numbers).items()
        ],
    }  # fmt: skip


def _experiments(contents: Sequence[Content]) -> dict[str, Experiment]:
    return {content.experiment.id: content.experiment for content in contents}


def _anchors(claims: Sequence[str], experiments: Mapping[str, Experiment]) -> list[str]:
    """The anchors of claims, EXPERIMENT/CLAIM each; none for an experiment that was not run."""
    named = (claim.split("/", 1) for claim in claims)
    return [claim_anchor(experiments[name], one) for name, one in named if name in experiments]


def _item_verdict(agree: int, known: int) -> dict[str, Any]:
    if not known:
        return {"word": NOT_MEASURED, "count": ""}
    word = AGREES if agree == known else DIFFERS if not agree else "agrees in part"
    return {"word": word, "count": f"{agree} of {known}"}
