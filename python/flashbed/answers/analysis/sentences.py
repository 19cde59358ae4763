"""Verdicts on a study's sentences, and their counts.

A claim's verdict on a target is the worst of its file systems, a sentence's the worst of its
claims: if one differs, the whole differs. Kernels that the source did not have do not count. What
is unexplained, and what is close to its bound, is counted apart (`Judged.counted`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flashbed.answers.analysis.verdicts import (
    AGREES,
    CLOSE,
    DERIVED_FAILS,
    DERIVED_HOLDS,
    DIFFERS,
    FITTED,
    IN_DIRECTION,
    NOT_MEASURED,
    UNEXPLAINED,
    Verdict,
    worst,
)
from flashbed.plan.study import Sentence, Study, StudyItem

__all__ = ["CANNOT", "COUNTED", "VerdictTally", "claim_verdicts", "sentence_verdict", "tallies"]

CANNOT = "cannot be measured"
COUNTED = (
    AGREES, CLOSE, IN_DIRECTION, DIFFERS, UNEXPLAINED, FITTED, DERIVED_HOLDS, DERIVED_FAILS,
    NOT_MEASURED, CANNOT,
)  # fmt: skip
"""The verdicts that a table of sentences has a column for."""


@dataclass(frozen=True)
class VerdictTally:
    """How many sentences or claims of a study got each verdict of `COUNTED` on a target."""

    study: str
    of: str
    """`sentences` or `claims`."""
    all: int
    counts: Mapping[str, int]


def claim_verdicts(runs: Mapping[str, Sequence[Verdict]], target: str) -> dict[str, str]:
    """EXPERIMENT/CLAIM -> its verdict on a target. `runs` has verdicts by experiment's name."""
    words: dict[str, list[str]] = {}
    for experiment, verdicts in runs.items():
        for verdict in verdicts:
            if verdict.further_kernel is None:
                judged = verdict.judged.get(target)
                name = f"{experiment}/{verdict.claim.id}"
                words.setdefault(name, []).append(judged.counted if judged else NOT_MEASURED)
    return {name: worst(found) for name, found in words.items()}


def sentence_verdict(sentence: Sentence, verdicts: Mapping[str, str]) -> str:
    """The worst verdict of a sentence's claims; claims of experiments not run are unknown."""
    if sentence.cannot is not None:
        return CANNOT
    return worst([verdicts.get(claim, NOT_MEASURED) for claim in sentence.claims])


def tallies(
    name: str, study: Study, runs: Mapping[str, Sequence[Verdict]], target: str
) -> tuple[VerdictTally, VerdictTally]:
    """Counts the sentences of a study's source and the claims that judge them."""
    verdicts = claim_verdicts(runs, target)
    source: list[StudyItem] = [item for item in study.item if not item.ours]
    sentences = [sentence_verdict(one, verdicts) for item in source for one in item.sentence]
    claims = dict.fromkeys(claim for item in source for claim in item.claims)
    judged = [verdicts.get(claim, NOT_MEASURED) for claim in claims]
    return (
        VerdictTally(name, "sentences", len(sentences), _counted(sentences)),
        VerdictTally(name, "claims", len(judged), _counted(judged)),
    )


def _counted(words: Sequence[str]) -> dict[str, int]:
    return {word: words.count(word) for word in COUNTED}
