"""Ids of headings, made from the names in experiments, for links within and between pages."""

from __future__ import annotations

import re

from flashbed.plan.experiment import Experiment

__all__ = ["anchor_of", "claim_anchor", "figure_anchor", "item_anchor"]

_ODD = re.compile(r"[^A-Za-z0-9.-]+")


def _slug(name: str) -> str:
    return _ODD.sub("-", name).strip("-") or "x"


def anchor_of(experiment: Experiment) -> str:
    """The id of an experiment's figures."""
    return _slug(experiment.id)


def figure_anchor(experiment: Experiment, figure: str) -> str:
    """The id of a figure, from its id in the experiment."""
    return f"{anchor_of(experiment)}-figure-{_slug(figure)}"


def claim_anchor(experiment: Experiment, claim: str) -> str:
    """The id of a claim, from its id in the experiment."""
    return f"{anchor_of(experiment)}-claim-{_slug(claim)}"


def item_anchor(item: str) -> str:
    """The id of an item of a study's source."""
    return f"item-{_slug(item)}"
