"""flashbed: what a raw NAND storage stack of embedded Linux does to a program.

From one description of an experiment, the same operations run on a simulated stack and on a real
kernel, and the same tables come out. Start reading at `experiment`, then `runner`, `targets.base`,
`tables`, `analysis`; ARCHITECTURE.md has the picture.
"""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
