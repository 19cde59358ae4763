"""Turns tables into Vega-Lite specifications. No arithmetic: a table holds every number drawn.

Colours are the same in all figures. They separate stacks, or patterns and targets where each stack
has a panel. Real kernels are open points on the simulator's lines. What the paper states in words
is a black cross.
"""

from flashbed.report.figures.agreement_chart import agreement_figure
from flashbed.report.figures.axes_chart import UNORDERED, axes_figure
from flashbed.report.figures.power_chart import power_figure
from flashbed.report.figures.rate_chart import rate_figure, request_figure
from flashbed.report.figures.saving_chart import saving_figure
from flashbed.report.figures.wear_chart import wear_figure

__all__ = [
    "UNORDERED",
    "agreement_figure",
    "axes_figure",
    "power_figure",
    "rate_figure",
    "request_figure",
    "saving_figure",
    "wear_figure",
]
