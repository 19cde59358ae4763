"""Ids of headings in a page, from the names that experiments give: what links lead to."""

from __future__ import annotations

import re

from flashbed.plan.experiment import Experiment

__all__ = ["anchor_of", "claim_anchor", "figure_anchor", "item_anchor"]

_ODD = re.compile(r"[^A-Za-z0-9.-]+")


def _slug(name: str) -> str:
    return _ODD.sub("-", name).strip("-") or "x"


def anchor_of(experiment: Experiment) -> str:
    """Of an experiment's figures."""
    return _slug(experiment.id)


def figure_anchor(experiment: Experiment, figure: str) -> str:
    """Of a figure, by its id in the experiment."""
    return f"{anchor_of(experiment)}-figure-{_slug(figure)}"


def claim_anchor(experiment: Experiment, claim: str) -> str:
    """Of a claim, by its id in the experiment."""
    return f"{anchor_of(experiment)}-claim-{_slug(claim)}"


def item_anchor(item: str) -> str:
    """Of an item of a study's source."""
    return f"item-{_slug(item)}"
