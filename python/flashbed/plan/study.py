"""A study: experiments/STUDY.toml, the paper that the experiments of a folder repeat.

It lists every figure, table and section of the paper that says something measurable, in the paper's
order, and under each its sentences. A sentence names the claims that judge it, or says why there
can be none. A claim names its item (`item`). answers/analysis/verdicts.py judges claims,
answers/analysis/sentences.py sentences.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from flashbed.base import paths
from flashbed.base.toml import FromFile, Strict, read_model, read_toml
from flashbed.plan.claims import Claim
from flashbed.plan.cross_checks import CheckedRow, CrossCheck, checked
from flashbed.plan.experiment import Experiment, ExperimentError, load_experiment
from flashbed.stack.names import Label, Name, Text, is_name

__all__ = ["Sentence", "Study", "StudyItem", "cross_checked", "in_order", "load_study"]


class StudyFacts(Strict):
    """`[study]`: how the report opens."""

    title: Text
    source: Text
    text: Text


class Sentence(Strict):
    """`[[item.sentence]]`: what the source says in one place, in our words, and its claims.

    `claims` are EXPERIMENT/CLAIM of the study; `cannot` says why there can be none.
    """

    text: Text
    claims: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    cannot: Text | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if bool(self.claims) == bool(self.cannot):
            raise ValueError("claims: needs either claims, or cannot to say why there are none")
        return self


class StudyItem(Strict):
    """`[[item]]`: a figure, table or section of the source and its sentences, in its order.

    `ours` marks what this project adds; it does not count as a sentence of the source.
    """

    id: Label
    title: Text
    ours: bool = False
    sentence: Annotated[tuple[Sentence, ...], Field(min_length=1, strict=False)]

    @property
    def claims(self) -> list[str]:
        """All its claims, EXPERIMENT/CLAIM, each once."""
        return list(dict.fromkeys(claim for one in self.sentence for claim in one.claims))


class Study(FromFile):
    """A whole study file. `experiments` is the report's order.

    `cross_check` holds the source against itself (plan/cross_checks.py).
    """

    study: StudyFacts
    experiments: Annotated[tuple[Name, ...], Field(min_length=1, strict=False)]
    item: Annotated[tuple[StudyItem, ...], Field(min_length=1, strict=False)]
    cross_check: Annotated[tuple[CrossCheck, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _unique(self) -> Self:
        ids = [item.id for item in self.item]
        for name in ids:
            if ids.count(name) > 1:
                raise ValueError(f"item: two have the id {name!r}")
        return self


def load_study(name: str) -> Study | None:
    """The file of a study, if it has one. Raises `ExperimentError`."""
    path = paths.experiment_file(name)
    if not is_name(name) or not path.is_file():
        return None
    study = read_model(Study, read_toml(path, ExperimentError), path, ExperimentError)
    study._path = path.resolve()
    return study


def cross_checked(study: Study) -> list[tuple[CrossCheck, list[CheckedRow]]]:
    """The study's checks of its source with their rows. Raises `ExperimentError`."""
    found = []
    for check in study.cross_check:
        claims = {name: _published(study, check, name) for name in check.claims}
        try:
            found.append((check, checked(check, claims)))
        except ValueError as why:
            where = f"{paths.shown(study.path)}: cross_check {check.id}"
            raise ExperimentError(f"{where}: {why}") from None
    return found


def _published(study: Study, check: CrossCheck, name: str) -> Claim:
    """The claim that a check names: EXPERIMENT/CLAIM of this study, or STUDY/EXPERIMENT/CLAIM."""
    experiment, _, identifier = name.rpartition("/")
    whole = experiment if "/" in experiment else f"{study.path.stem}/{experiment}"
    for claim in load_experiment(whole).claim:
        if claim.id == identifier:
            return claim
    where = f"{paths.shown(study.path)}: cross_check {check.id}"
    raise ExperimentError(f"{where}: no claim {name}")


def in_order(study: Study | None, experiments: list[Experiment]) -> list[Experiment]:
    """Experiments in the study's order; it must name them all. Raises `ExperimentError`."""
    if study is None:
        return experiments
    names = [experiment.id.split("/")[1] for experiment in experiments]
    if sorted(names) != sorted(study.experiments):
        odd = sorted(set(names) ^ set(study.experiments))
        raise ExperimentError(f"{paths.shown(study.path)}: experiments: {', '.join(odd)}")
    _check_claims(study, experiments)
    return sorted(experiments, key=lambda one: study.experiments.index(one.id.split("/")[1]))


def _check_claims(study: Study, experiments: list[Experiment]) -> None:
    """Every claim is named by a sentence of its item, and every named claim exists."""
    named = {(claim, item.id) for item in study.item for claim in item.claims}
    there = set()
    for experiment in experiments:
        for claim in experiment.claim:
            name = f"{experiment.id.split('/')[1]}/{claim.id}"
            there.add(name)
            if (name, claim.item) not in named:
                raise ExperimentError(
                    f"{paths.shown(experiment.path)}: claim {claim.id}: item = {claim.item!r}: "
                    f"no sentence of it in {paths.shown(study.path)} names {name}"
                )
    odd = sorted({claim for claim, _ in named} - there)
    if odd:
        raise ExperimentError(f"{paths.shown(study.path)}: item.sentence: no claim {odd[0]}")
