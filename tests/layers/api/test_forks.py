"""A fork of a process that has used flashbed: it is refused, and removes nothing that is not its.

It waited for ever for threads that a fork lacks, and its end removed the first one's results.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("flashbed._sim", reason="the simulator is not compiled; make build")

PROGRAM = """
import gc, os, sys
import flashbed as fb

def small(fs):
    return fb.run("tests/support/small.toml", set={"fs": fs})

first = small("jffs2")
child = os.fork()
if child == 0:
    try:
        small("ubifs")
    except fb.errors.RunError as why:
        assert "forked" in str(why), why
        try:
            first.cases
        except fb.errors.RunError:
            del first
            gc.collect()
            sys.exit(7)
    sys.exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert first.cases.height
folder = first.directory
assert folder.is_dir()
del first
gc.collect()
assert not folder.exists()
"""


def test_a_fork_is_refused_and_leaves_the_results_of_its_parent() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr


FIRST_IN_A_FORK = """
import os, sys
import flashbed as fb
child = os.fork()
if child == 0:
    fb.run("tests/support/small.toml", set={"fs": "jffs2"})
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_a_fork_of_a_process_that_has_only_imported_it_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_IN_A_FORK], capture_output=True, text=True, timeout=600,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
