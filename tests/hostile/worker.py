"""Runs the program again and again, each call in a process of its own: one JSON line a call.

A call names its folder and arguments; the answer is its status, and what was said on standard error
by whomever (a panic is not said by Python). The process of a call is this one's child, so nothing
need be imported again and nothing is left of it. It has little memory; whoever started this process
ends both when a call takes too long.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
from importlib import import_module

MEMORY_BYTES = 4 << 30
"""Of what is written to: the engine of the figures reserves more addresses than that."""
FILE_BYTES = 256 << 20
SAID_BYTES = 100_000
_MODULES = (
    "flashbed.cli", "flashbed.runner", "flashbed.targets.sim", "flashbed.report",
    "flashbed.report.trace", "flashbed.tracing.record", "flashbed.power.measure",
    "flashbed.power.drawing", "flashbed.lifetime.observed", "flashbed.costs.fit",
    "flashbed.powercut.run",
)  # fmt: skip


def run(folder: str, arguments: list[str], said: int) -> None:
    """The program, in a process that it ends."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number, file in ((0, nothing), (1, nothing), (2, said)):
        os.dup2(file, number)
    for limit, most in (
        (resource.RLIMIT_DATA, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (most, most))
    os.chdir(folder)
    sys.argv = ["flashbed", *arguments]
    import_module("flashbed.cli").main()


def call(folder: str, arguments: list[str]) -> tuple[int, str]:
    """Status, negative for a process that was killed, and standard error."""
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                run(folder, arguments, said.fileno())
            except SystemExit as ended:
                status = ended.code if isinstance(ended.code, int) else 1
            except BaseException as error:  # it would be a traceback
                os.write(2, f"{type(error).__name__} came through: {error}\n".encode())
            finally:
                sys.stderr.flush()
                os._exit(status)
        _, status = os.waitpid(child, 0)
        said.seek(0)
        words = said.read(SAID_BYTES).decode("utf-8", "replace")
        return os.waitstatus_to_exitcode(status), words


def main() -> None:
    """Answers until standard input ends."""
    for module in _MODULES:
        import_module(module)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(call(asked["folder"], asked["arguments"])), flush=True)


if __name__ == "__main__":
    main()
