"""What an environment lacks, and who forks: a command ends in one line, or as it does anywhere.

Commands and lacks are drawn from a seed, as many as FLASHBED_FUZZ_EXAMPLES says. Each command is a
process of its own: what it lacks is the process's.
"""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.hostile.calls import wrong
from tests.hostile.good import EXPERIMENT, OPERATIONS, lines_of, toml_of
from tests.hostile.test_recordings import PROGRAM, packed
from tests.support import PROJECT

pytest.importorskip("flashbed._sim", reason="the simulator is not compiled; make build")

pytestmark = pytest.mark.timeout(100_000)

FLASHBED = str(Path(sys.executable).parent / "flashbed")
COUNT = int(os.environ.get("FLASHBED_FUZZ_EXAMPLES", "8"))
SEED = 38


@dataclass(frozen=True)
class Lack:
    """What a process lacks: a shell's words before it, and variables that it has instead."""

    before: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    fails: bool = False
    """Whether nothing can be done, so that status 1 or 2 is right whatever the command."""


LACKS = {
    "a locale": Lack(variables={"LC_ALL": "xx_YY.none", "PYTHONCOERCECLOCALE": "0"}),
    "UTF-8": Lack(variables={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "HOME": Lack(variables={"HOME": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent/cache"}),
    "TMPDIR": Lack(variables={"TMPDIR": "/nonexistent"}),
    "PATH": Lack(variables={"PATH": "/nonexistent"}, fails=True),
    "a terminal's size": Lack(variables={"COLUMNS": "0", "LINES": "-1", "TERM": "nosuch"}),
    "standard input": Lack("exec <&-;"),
    "standard output": Lack("exec >&-;"),
    "space for its output": Lack("exec > /dev/full;", fails=True),
    "descriptors": Lack("ulimit -n 9;", fails=True),
    "some descriptors": Lack("ulimit -n 40;"),
    "addresses": Lack("ulimit -v 500000;", fails=True),
    "long files": Lack("ulimit -f 4;", fails=True),
    "its folder": Lack("mkdir gone; cd gone; rmdir ../gone;", fails=True),
    "signals": Lack("trap '' INT TERM HUP PIPE CHLD;"),
}
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("run", "{}/x.toml", "--out", "o"), ("run", "{}/ü.rec", "--out", "ü"), ("list",),
    ("ops", "stat", "{}/ü.rec"), ("ops", "cut", "{}/ü.rec", "--first", "3", "-o", "ä.rec"),
    ("powercut", "{}/x.ops", "--on", "sim", "--samples", "2", "--out", "o"),
    ("import", "fio-job", "{}/a.fio", "-o", "b.rec"), ("playground", "{}/ü.rec", "-o", "p.html"),
    ("record", "-o", "x.rec", "--", "{}/work.sh"), ("lifetime", "{}/ü.rec@1/h"),
    ("trace", "--on", "sim", "--flash", "{}/x.ops", "--out", "o"),
)  # fmt: skip
"""`{}` is the folder with what they read, which no lack takes away."""
DRAWN = random.Random(SEED).sample(
    list(itertools.product(COMMANDS, LACKS)), min(COUNT, len(COMMANDS) * len(LACKS))
)


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands read."""
    folder = tmp_path_factory.mktemp("given")
    files = {
        "x.toml": toml_of(EXPERIMENT), "x.ops": lines_of(OPERATIONS),
        "ü.rec": packed(list(PROGRAM)), "a.fio": b"[a]\nrw=write\nsize=4k\n",
        "work.sh": b"#!/bin/sh\necho a > \xff\n",
    }  # fmt: skip
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "work.sh").chmod(0o755)
    return folder


@pytest.mark.parametrize(("words", "lack"), DRAWN, ids=lambda each: " ".join([each[0], *each[-1:]]))
def test_a_command_lacks_something(
    words: tuple[str, ...], lack: str, given: Path, tmp_path: Path
) -> None:
    """Found so: internal errors for want of UTF-8, thousands of lines for want of addresses."""
    arguments = [word.format(given) for word in words]
    folder, temporary = tmp_path / "work", tmp_path / "tmp"
    folder.mkdir()
    temporary.mkdir()
    done = subprocess.run(
        ["/bin/sh", "-c", f'{LACKS[lack].before} exec "$@"', "sh", FLASHBED, *arguments],
        cwd=folder, capture_output=True, text=True, errors="replace", check=False,
        env={**os.environ, "TMPDIR": str(temporary), "FLASHBED_ROOT": str(PROJECT),
             **LACKS[lack].variables},
    )  # fmt: skip
    said = "\n".join(line for line in done.stderr.splitlines() if line.startswith("flashbed: "))
    if done.returncode in (0, 2) and not LACKS[lack].fails:
        assert wrong(words, done.returncode, said or done.stderr) is None
    else:
        assert done.returncode in (0, 1, 2, 126, 127), done.stderr
        assert wrong(words, 0, done.stderr) is None, done.stderr
        assert done.returncode == 0 or len(done.stderr.splitlines()) < 8, done.stderr
    assert not [left for left in temporary.iterdir() if left.name.startswith("flashbed")]


FORKS = {
    "a child that ends at once": "if forked() == 0: sys.exit()",
    "a child that ends by an error": "if forked() == 0: raise SystemExit(3)",
    "a child that asks for the table": (
        "if forked() == 0:\n"
        "    try: result.cases\n"
        "    except fb.errors.FlashbedError as why: assert 'forked' in str(why)\n"
        "    sys.exit()"
    ),
    "a child that runs": (
        "if forked() == 0:\n"
        "    try: fb.run(sys.argv[1])\n"
        "    except fb.errors.FlashbedError as why: assert 'forked' in str(why)\n"
        "    sys.exit()"
    ),
    "a child's child": (
        "if forked() == 0:\n    if os.fork() == 0: sys.exit()\n    os.wait()\n    os._exit(0)"
    ),
    "a thread's child": (
        "def forks():\n"
        "    if forked() == 0: sys.exit()\n"
        "begun = threading.Thread(target=forks); begun.start(); begun.join()"
    ),
    "a daemon": "if forked() == 0:\n    os.setsid()\n    sys.exit()",
}


DRAWN_FORKS = random.Random(SEED).sample(sorted(FORKS), min(COUNT // 2, len(FORKS)))


@pytest.mark.parametrize("fork", DRAWN_FORKS)
def test_the_end_of_a_fork_takes_nothing_away(fork: str, given: Path, tmp_path: Path) -> None:
    """A fork had the objects of its parent too, and removed the parent's folders at its end."""
    script = (
        "import os, sys, threading\n"
        "import flashbed as fb\n"
        "result = fb.run(sys.argv[1])\n"
        "children = []\n"
        "def forked():\n"
        "    children.append(os.fork())\n"
        "    return children[-1]\n"
        f"{FORKS[fork]}\n"
        # One by one: the process that reads recordings is a child too, until the end.
        "for child in children: os.waitpid(child, 0)\n"
        "assert result.cases.height == fb.run(sys.argv[1]).cases.height > 0\n"
        "print('whole')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(given / "ü.rec")], cwd=tmp_path, capture_output=True,
        text=True, check=False, timeout=600,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("whole\n", "")
