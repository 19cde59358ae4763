"""Energy of recorded cases: pure folds over tables, with the constants of a board's profile.

Two conventions, told apart in every table and never added up (docs/energy.md). Both are of power
above idle. No constant has a default: what a board's profile does not give is null.
"""

from __future__ import annotations

from flashbed.energy.constants import Energy
from flashbed.energy.fold import COMPONENTS, ENERGY_COLUMNS, activity, energy_of

__all__ = ["COMPONENTS", "ENERGY_COLUMNS", "Energy", "activity", "energy_of"]
