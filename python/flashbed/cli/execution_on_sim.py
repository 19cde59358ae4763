"""`exec --on sim`: a program runs on user-mode Linux once, and the simulator replays its calls.

No program runs on a simulated kernel. What it called, and how long it waited in between, are
therefore those of the first chosen stack on user-mode Linux; a program that acts on what the flash
answers would act otherwise elsewhere. The replay is an experiment like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from flashbed.api.exec_options import ExecOptions, requests_of
from flashbed.base.errors import InputError
from flashbed.cli.progress import say
from flashbed.cli.run import answered
from flashbed.cli.show import RESULTS
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import parse_settings, plan, several
from flashbed.plan.stacks import HOLDING, USUAL, stacks
from flashbed.running.ways import Way
from flashbed.targets.exec.compared_systems import Ran
from flashbed.targets.exec.executors import load_executor

__all__ = ["refuse", "replayed"]

SIM = "sim"
Say = Callable[[str], None]
_INSTEAD = {
    "rate": "--record FILE, then `flashbed lifetime FILE`",
    "shell": "a shell has no end that could be replayed",
    "sysctl": "--set vm.KEY=VALUE is the same",
}


def refuse(**options: object) -> None:
    """Raises `InputError` for options that a replay cannot have, and says what to do."""
    for name, given in options.items():
        if given:
            raise InputError(f"--{name}: not with --on {SIM}; {_INSTEAD[name]}")


def _axis(setting: str) -> str:
    """`chip` of `chip.page_bytes=4096`."""
    return setting.partition("=")[0].partition(".")[0]


def replayed(options: ExecOptions, settings: Sequence[str], *, output: str, note: Say) -> Ran:
    """Runs, records, replays and prints the answer; returns what the program did.

    Raises `InputError`, `NotRunError`, `RunError` and `Unavailable`.
    """
    chosen = {axis: (value,) for axis, value in USUAL.items()} | dict(parse_settings(settings))
    real = [axis for axis in HOLDING if axis != "policy"]
    first = stacks([text for text in settings if _axis(text) in real])[0]
    kept = options.record is not None
    with nullcontext("") if kept else TemporaryDirectory(prefix="flashbed-") as folder:
        path = options.record or Path(folder) / "program.rec"
        recording = replace(options, on="uml", record=path)
        (request,) = requests_of(recording, [first], note)
        request, outcome = load_executor("uml")(request, note, aside=output == "json")
        note("recorded on user-mode Linux; the simulator replays it")
        experiment = load_experiment(str(path))
        planned = plan(experiment, chosen)
        directory = RESULTS / experiment.id if kept else Path(folder) / "results"
        answered(
            experiment, planned, targets=[SIM], out=directory, way=Way(), apart=several(chosen),
            output=output, kept=kept,
        )  # fmt: skip
        if not kept and output != "json":
            say("next: --record FILE keeps the recording, and `flashbed run FILE` asks more of it")
    return request, outcome
