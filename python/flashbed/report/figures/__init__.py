"""Tables to Vega-Lite specifications. No arithmetic: every number drawn is in a table.

Colours tell stacks apart, or patterns and targets where each stack has a panel, and are the same in
all figures; real kernels are drawn as open points on the lines of the simulator, what the paper
states in words as black crosses.
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
