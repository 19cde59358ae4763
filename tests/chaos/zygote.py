"""Runs the program in forks of a process that has imported it, and strikes each where it is told.

A line of JSON on standard input is a `Strike`; the answers are the fork's process id, at once, and
its exit status. Moments are counted in events of files (Python's audit events), so that a seed
strikes at the same place each time; what Polars and guests write has no events of its own, and is
struck by limits and by signals from outside.
"""

from __future__ import annotations

import atexit
import errno
import importlib
import itertools
import json
import os
import random
import resource
import signal
import sys
import time
from typing import Any

PARTS = ("cli", "running.runner", "report", "report.render", "report.page",
         "bench.validation.results_table", "targets.sim", "targets.uml.uml_target",
         "targets.emulator.emulator_target", "targets.ssh", "bench.tracing.trace",
         "bench.powercut.cutting", "bench.validation", "cli.validate", "cli.prepare")  # fmt: skip
CASES = 3
CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir"}
FULL, READ_ONLY = errno.ENOSPC, errno.EROFS


class Struck:
    """Counts a fork's events of files, and strikes at one of them."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked = asked
        self.seen = 0
        self.watched = [os.path.realpath(folder) for folder in asked["folders"]]
        self.busy = False

    def __call__(self, event: str, details: tuple[Any, ...]) -> None:
        """The audit hook."""
        if self.busy or not (event in CHANGES or (event == "open" and self._ours(details[0]))):
            return
        self.busy = True
        self.seen += 1
        try:
            if self.asked.get("at") is not None and self.seen >= self.asked["at"]:
                self._strike(event, details)
        finally:
            self.busy = False

    def _ours(self, path: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        where = os.path.realpath(os.fsdecode(path))
        return any(where.startswith(folder) for folder in self.watched)

    def _strike(self, event: str, details: tuple[Any, ...]) -> None:
        with_signal, error = self.asked.get("signal"), self.asked.get("error")
        if with_signal and self.seen == self.asked["at"]:
            os.kill(os.getpid(), with_signal)
        if self.asked.get("fork") and self.seen == self.asked["at"]:
            _fork()
        writes = event == "open" and details[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if error == READ_ONLY and (event in CHANGES or writes):
            raise OSError(error, os.strerror(error), details[0])
        if error == FULL and (event == "os.mkdir" or writes):
            raise OSError(error, os.strerror(error), details[0])


def _fork() -> None:
    """A child of the program that ends as a thread's child does: by what was registered for it."""
    child = os.fork()
    if child == 0:
        atexit._run_exitfuncs()
        os._exit(0)
    os.waitpid(child, 0)


def _limits(asked: dict[str, Any]) -> None:
    if asked.get("file_bytes"):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (asked["file_bytes"],) * 2)
    if asked.get("memory_bytes"):
        resource.setrlimit(resource.RLIMIT_AS, (asked["memory_bytes"],) * 2)
    if asked.get("descriptors"):
        resource.setrlimit(resource.RLIMIT_NOFILE, (asked["descriptors"],) * 2)
    if asked.get("clock_seed"):
        jump = random.Random(asked["clock_seed"])
        real = time.time
        time.time = lambda: real() + jump.uniform(-1e8, 1e8)


def _become(asked: dict[str, Any]) -> None:
    """The fork: a process group of its own, its output in files."""
    os.setsid()
    os.chdir(asked["cwd"])
    os.environ.update(asked["environment"])
    os.environ.update(asked.get("lacks", {}))
    for number, path in ((0, os.devnull), (1, asked["out"]), (2, asked["err"])):
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv = ["flashbed", *asked["words"]]
    struck = Struck(asked)
    sys.addaudithook(struck)
    _limits(asked)
    try:
        importlib.import_module("flashbed.cli").main()
    finally:
        struck.busy = True
        if asked.get("count"):
            with open(asked["count"], "w", encoding="ascii") as counted:  # noqa: PTH123
                counted.write(str(struck.seen))


def _serve() -> dict[str, Any] | None:
    """Forks for each line; what a fork is to become, None when there are no more."""
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        pid = os.fork()
        if pid == 0:
            return asked
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    return None


def _shorten(suites: dict[str, Any]) -> None:
    """Each suite of `validate` has the first cases of each file system, which do not take long."""
    for name, cases in list(suites.items()):
        suites[name] = lambda fs, board, cases=cases: itertools.islice(cases(fs, board), CASES)


if __name__ == "__main__":
    for part in PARTS:
        importlib.import_module(f"flashbed.{part}")
    _shorten(importlib.import_module("flashbed.bench.validation").SUITES)
    strike = _serve()
    if strike is not None:
        _become(strike)
