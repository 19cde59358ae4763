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
    from flashbed.api.named_board import NamedBoard as Board
    from flashbed.api.own_experiment import OwnExperiment as Experiment
    from flashbed.api.own_program import OwnFile as File
    from flashbed.api.own_program import OwnProgram as Program
    from flashbed.api.plot import Plot
    from flashbed.api.policy_classes import (
        ReadAhead,
        Reclaim,
        Reclaimed,
        Victim,
        Window,
    )
    from flashbed.api.recorded_command import RecordedCommand as Recording
    from flashbed.api.recorded_command import record
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
    "ReadAhead",
    "Reclaim",
    "Reclaimed",
    "Recording",
    "Result",
    "Victim",
    "Window",
    "__version__",
    "errors",
    "execute",
    "lifetime",
    "record",
    "run",
]

__version__ = "0.1.0"

_PLACES = {
    "Board": ("named_board", "NamedBoard"),
    "Execution": ("executing", "Execution"),
    "Experiment": ("own_experiment", "OwnExperiment"),
    "File": ("own_program", "OwnFile"),
    "Plot": ("plot", "Plot"),
    "Program": ("own_program", "OwnProgram"),
    "ReadAhead": ("policy_classes", "ReadAhead"),
    "Reclaim": ("policy_classes", "Reclaim"),
    "Reclaimed": ("policy_classes", "Reclaimed"),
    "Recording": ("recorded_command", "RecordedCommand"),
    "Result": ("result", "Result"),
    "Victim": ("policy_classes", "Victim"),
    "Window": ("policy_classes", "Window"),
    "execute": ("executing", "execute"),
    "lifetime": ("years", "lifetime"),
    "record": ("recorded_command", "record"),
    "run": ("running", "run"),
}
"""Name -> its module of `flashbed.api`, and its name there."""


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("flashbed.base.errors")
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, inside = _PLACES[name]
    found = getattr(import_module(f"flashbed.api.{module}"), inside)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
