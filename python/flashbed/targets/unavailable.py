"""What a target raises that cannot run here.

Apart from the rest of the interface: `flashbed.targets.base` needs tables, and loading what makes
them takes 0.3 s, in which `flashbed exec` has started its kernel.
"""

from __future__ import annotations

__all__ = ["Unavailable"]


class Unavailable(Exception):
    """The target cannot run here: one line on what is missing and how to get it.

    The line does not name the target; the code that shows it adds the name.
    """
