"""A study: experiments/STUDY.toml, the paper that the experiments of a folder do again.

It lists every figure and table of the paper, and its numbered sections as far as they claim
something, in the order of the paper. Claims of the experiments name the item they are of
(`item`); an item that no experiment here does says where it is done. What the claims come to is
analysis/claims.py's.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from flashbed import places
from flashbed.experiment import Experiment, ExperimentError
from flashbed.toml_models import FromFile, Strict, read_model, read_toml

__all__ = ["Item", "Study", "in_order", "load_study"]

Text = Annotated[str, Field(min_length=1)]


class StudyFacts(Strict):
    """`[study]`: what the report opens with."""

    title: Text
    source: Text
    text: Text


class Item(Strict):
    """`[[item]]`: a figure, table or section of the paper; `elsewhere` if no experiment has it."""

    id: Text
    title: Text
    elsewhere: Text | None = None


class Study(FromFile):
    """A whole study file. `experiments` is the order in which the report shows them."""

    study: StudyFacts
    experiments: Annotated[tuple[Text, ...], Field(min_length=1, strict=False)]
    item: Annotated[tuple[Item, ...], Field(min_length=1, strict=False)]

    @model_validator(mode="after")
    def _unique(self) -> Self:
        ids = [item.id for item in self.item]
        for name in ids:
            if ids.count(name) > 1:
                raise ValueError(f"item: two have the id {name!r}")
        return self


def load_study(name: str) -> Study | None:
    """The file of a study, if it has one. Raises `ExperimentError`."""
    path = places.experiments_folder() / f"{name}.toml"
    if not path.is_file():
        return None
    study = read_model(Study, read_toml(path, ExperimentError), path, ExperimentError)
    study._path = path.resolve()
    return study


def in_order(study: Study | None, experiments: list[Experiment]) -> list[Experiment]:
    """Experiments as the study has them, all of which it names. Raises `ExperimentError`."""
    if study is None:
        return experiments
    names = [experiment.id.split("/")[1] for experiment in experiments]
    if sorted(names) != sorted(study.experiments):
        odd = sorted(set(names) ^ set(study.experiments))
        raise ExperimentError(f"{places.shown(study.path)}: experiments: {', '.join(odd)}")
    known = {item.id for item in study.item if item.elsewhere is None}
    for experiment in experiments:
        for claim in experiment.claim:
            if claim.item not in known:
                raise ExperimentError(
                    f"{places.shown(experiment.path)}: claim {claim.id}: item = {claim.item!r} is "
                    f"not in {places.shown(study.path)}"
                )
    return sorted(experiments, key=lambda one: study.experiments.index(one.id.split("/")[1]))
