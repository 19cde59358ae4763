"""The exception of a target that cannot run here.

It does not stand in `flashbed.targets.base`, because that module loads polars. Loading polars takes
0.3 s, and `flashbed exec` starts its kernel first.
"""

from __future__ import annotations

__all__ = ["Unavailable"]


class Unavailable(Exception):
    """The target cannot run here: one line on what is missing and how to get it.

    The line does not name the target; the code that shows it adds the name.
    """
