"""Runs the program again and again in processes that have imported it: one JSON line a call.

A call names its folder and arguments; the answer is its status, and what was said on standard error
by whomever (a panic is not said by Python). Calls are made in a child of this process, a few dozen
in each: nothing need be imported again, and little is left of those before. A child has little
memory; the process that started this one ends both when a call takes too long.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from importlib import import_module
from typing import IO, Any

MEMORY_BYTES = 4 << 30
"""Of what is written to: the engine of the figures reserves more addresses than that."""
FILE_BYTES = 256 << 20
SAID_BYTES = 100_000
CALLS = 150
"""Of one child."""
_MODULES = (
    "flashbed.cli", "flashbed.running.runner", "flashbed.targets.sim", "flashbed.report",
    "flashbed.report.traced_run", "flashbed.bench.tracing.record", "flashbed.answers.power.measure",
    "flashbed.report.power_page", "flashbed.answers.lifetimes.observed",
    "flashbed.answers.costs.cost_fit",
    "flashbed.bench.powercut.cutting", "flashbed.bench.validation.results_table",
    "flashbed.targets.uml.uml_target", "flashbed.targets.emulator.emulator_target",
    "flashbed.targets.ssh", "flashbed.bench.fuzz", "flashbed.bench.calibration",
)  # fmt: skip
_OVER = 77
"""A child's status when it has answered all its calls."""


class Streams:
    """Where calls come from and answers go, and the file that holds standard error."""

    def __init__(self, said: IO[bytes]) -> None:
        self.calls = os.fdopen(os.dup(0), encoding="utf-8")
        self.answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
        self.said = said

    def answer(self, status: int) -> None:
        """Says how a call ended."""
        self.said.seek(0)
        words = self.said.read(SAID_BYTES).decode("utf-8", "replace")
        print(json.dumps((status, words)), file=self.answers, flush=True)

    def forget(self) -> None:
        """Empties standard error for the next call."""
        self.said.seek(0)
        self.said.truncate()


def confine(said: int) -> None:
    """A child's limits, and its standard streams."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number, file in ((0, nothing), (1, nothing), (2, said)):
        os.dup2(file, number)
    for limit, most in (
        (resource.RLIMIT_DATA, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (most, most))


def call(asked: dict[str, Any]) -> int:
    """The program's status for one command line."""
    os.chdir(asked["folder"])
    sys.argv = ["flashbed", *asked["arguments"]]
    try:
        import_module("flashbed.cli").main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    except BaseException as error:  # it would be a traceback
        os.write(2, f"{type(error).__name__} came through: {error}\n".encode())
        return 1
    finally:
        sys.stderr.flush()
    return 0


def child(streams: Streams) -> None:
    """Answers some calls. Each reports warnings, although Python shows a warning once."""
    import_module("warnings").simplefilter("always")
    confine(streams.said.fileno())
    for _ in range(CALLS):
        line = streams.calls.readline()
        if not line:
            return
        streams.forget()
        streams.answer(call(json.loads(line)))
    os._exit(_OVER)


def main() -> None:
    """Forks children until standard input ends; answers for those that a call has ended."""
    for module in _MODULES:
        import_module(module)
    import_module("flashbed.running.portion").code_sha256(
        "sim"
    )  # reads and parses all of our sources
    # Built once: the parser of the command line takes longer than most calls.
    names = vars(import_module("flashbed.cli"))
    names["app"] = import_module("typer.main").get_command(names["app"])
    # A line of progress comes after seconds of a busy machine: it is no second line of an error.
    vars(import_module("flashbed.cli.progress"))["PLAIN_EVERY_S"] = float("inf")
    with tempfile.TemporaryFile(buffering=0) as said:
        streams = Streams(said)
        while True:
            begun = os.fork()
            if begun == 0:
                child(streams)
                os._exit(0)
            status = os.waitstatus_to_exitcode(os.waitpid(begun, 0)[1])
            if status == 0:
                return
            if status != _OVER:
                streams.answer(status)


if __name__ == "__main__":
    main()
