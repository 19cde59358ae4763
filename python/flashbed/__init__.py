"""flashbed: what a raw NAND storage stack of embedded Linux does to a program.

    import flashbed as fb

    result = fb.run("figure3", on="sim", set={"fs": ["jffs2", "ubifs"], "kernel": "6.1"})
    result.answer

docs/reference/python.md is the reference of these names. They are imported on first use, so that
`import flashbed` takes no time. To read the code, start at `plan.experiment`, then `runner`,
`targets.base`, `tables`, `analysis`; ARCHITECTURE.md has the picture.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flashbed.api.executing import Execution, execute
    from flashbed.api.named_board import Board
    from flashbed.api.own_experiment import Experiment
    from flashbed.api.own_program import File, Program
    from flashbed.api.plot import Plot
    from flashbed.api.recorded_command import Recording, record
    from flashbed.api.result import Result
    from flashbed.api.running import run
    from flashbed.api.years import lifetime
    from flashbed.base import errors

__all__ = [
    "Board",
    "Execution",
    "Experiment",
    "File",
    "Plot",
    "Program",
    "Recording",
    "Result",
    "__version__",
    "errors",
    "execute",
    "lifetime",
    "record",
    "run",
]

__version__ = "0.1.0"

_MODULES = {
    "Board": "named_board",
    "Execution": "executing",
    "Experiment": "own_experiment",
    "File": "own_program",
    "Plot": "plot",
    "Program": "own_program",
    "Recording": "recorded_command",
    "Result": "result",
    "execute": "executing",
    "lifetime": "years",
    "record": "recorded_command",
    "run": "running",
}
"""Name -> its module of `flashbed.api`."""


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("flashbed.base.errors")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"flashbed.api.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
