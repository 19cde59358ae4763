"""A program's time is its replay's: tasks sleep side by side, and only their own sleeps are pauses.

Each program runs in `flashbed exec` with the recorder; its recording is replayed on user-mode Linux
and on the simulator without software. Counts include the sync after the program.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from flashbed.base.paths import cache_folder
from flashbed.program.recording.file import open_recording
from flashbed.program.recording.translate import translate
from flashbed.targets.uml.programs_kernel import SERIES, programs_kernel
from flashbed.targets.uml.uml_kernel import cached_kernel
from tests.agreement.test_exec import FLASHBED
from tests.support.exec_and_replay import Counts, replayed
from tests.support.recorded_programs import of_answer

pytestmark = [pytest.mark.uml, pytest.mark.extension, pytest.mark.timeout(600)]

FORKS = "i=0; while [ $i -lt 8 ]; do cp /etc/hostname f$i; sleep 10; i=$((i+1)); done"
"""The sleeps are the shell's, in wait4, before it forks the next cp."""
NESTED = (
    'echo 1 > a; sh -c "for i in 1 2 3 4 5 6 7 8 9 10; do echo x >> b; sleep 1; done"; echo 2 >> a'
)
"""The outer shell waits for the inner one, which waits for each sleep."""
TOGETHER = (
    "for p in 1 2 3; do"
    " (for i in 1 2 3 4 5 6 7 8 9 10; do echo $i >> log$p; sleep 60; done) & done; wait"
)
"""Three programs of ten minutes at once."""
AT_THE_END = "echo 1 > a; sleep 600"
MANY_FILES = """
import os, random
r = random.Random(1)
for n in range(40):
    for i in range(30):
        with open(f"s{i}", "wb") as f:
            for _ in range(3):
                f.write(r.randbytes(r.randrange(100, 3000)))
    for i in range(30):
        os.unlink(f"s{i}")
"""
"""Never sleeps; JFFS2's thread erases what it removes."""


@pytest.fixture(autouse=True)
def _kernel() -> None:
    if cached_kernel(cache_folder(), SERIES[0], programs_kernel()) is None:
        pytest.skip("the kernel for programs is not built: make uml")


def _ran(folder: Path, fs: str, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [FLASHBED, "exec", "--fs", fs, "--format", "json", *words], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, cwd=folder, check=False, timeout=500,
    )  # fmt: skip
    assert done.stdout, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)["exec"][0]
    return answer


def _replay(recording: Path, fs: str, target: str) -> tuple[Counts, float]:
    """Reads, programs and erases; seconds."""
    ran = replayed(recording, fs, target)
    assert ran.counts is not None, ran.why
    assert ran.time_ns is not None
    return ran.counts, ran.time_ns / 1e9


@pytest.mark.parametrize("fs", ["ubifs", "jffs2"])
@pytest.mark.parametrize(
    ("script", "takes_s"), [(FORKS, 80), (NESTED, 10), (TOGETHER, 600), (AT_THE_END, 600)],
    ids=["forks", "nested", "together", "at-the-end"],
)  # fmt: skip
def test_sleeps_of_tasks_are_replayed_side_by_side(
    script: str, takes_s: int, fs: str, tmp_path: Path
) -> None:
    ran = _ran(tmp_path, fs, "--record", "a.rec", "--", "sh", "-c", script)
    assert ran["time_ns"] / 1e9 == pytest.approx(takes_s, rel=0.01)
    for target in ("uml", "sim-chip"):
        counts, seconds = _replay(tmp_path / "a.rec", fs, target)
        assert counts == of_answer(ran), target
        assert seconds == pytest.approx(takes_s, rel=0.01), target


def test_time_that_jffs2s_thread_takes_is_no_pause(tmp_path: Path) -> None:
    (tmp_path / "many.py").write_text(MANY_FILES)
    words = ("--put", "many.py", "--", "/usr/bin/python3", "many.py")
    assert _ran(tmp_path, "jffs2", "--record", "a.rec", *words)["run"]["erases"] > 0
    _, body, _ = translate(open_recording(tmp_path / "a.rec"), "zlib", 7)
    assert "pause" not in body
