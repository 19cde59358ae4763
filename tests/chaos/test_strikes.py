"""What strikes the program at any moment costs what was not finished, and nothing else.

`make chaos CHAOS="COUNT SEED"` runs more of them, drawn from another seed: the variables below.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from flashbed.targets.guest.debian import cache_folder
from tests.chaos.strikes import Command, Trial, Zygote, campaign, zygote
from tests.conftest import PROJECT

COUNT = int(os.environ.get("FLASHBED_CHAOS", "0"))
SEED = int(os.environ.get("FLASHBED_CHAOS_SEED", "1"))

ONE = ("--set", "fs=jffs2", "--set", "pattern=sequential", "--set", "requests=8", "--set", "seed=1")
FEW = ("--set", "kernel=6.1", "--set", "seed=1", "--set", "requests=8")
SIMULATED = (
    Command("run", ("run", "small/one", *FEW, "--out", "r")),
    Command("reproduce", ("reproduce", "small", "--on", "sim", *FEW, "--out", "r")),
    Command("write", ("run", "writes/few", "--trace", "flash,wear", "--out", "r")),
    Command("trace", ("trace", "writes/few", "--on", "sim", *ONE, "--out", "t")),
    Command(
        "powercut",
        (
            "powercut",
            "writes/few",
            "--on",
            "sim",
            "--samples",
            "3",
            "--set",
            "fs=jffs2",
            "--out",
            "r",
        ),
    ),
)
REPORT = Command("report", ("report", "r"), ("run", "small/one", *FEW, "--out", "r"))
"""What `reproduce` does too, and the slowest of them."""
USER_MODE = (Command("uml", ("run", "writes/few", "--on", "uml", "--out", "r")),)


@pytest.fixture(scope="module")
def struck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """The program in a project of its own, with one small experiment for `sim` and `uml`."""
    root = tmp_path_factory.mktemp("chaos") / "project"
    for name in ("boards", "kernel", "agent"):
        shutil.copytree(PROJECT / name, root / name)
    (root / "build").mkdir()
    (root / "build" / "agent").symlink_to(PROJECT / "build" / "agent")
    for study, name, source in (
        ("small", "one", "small.toml"),
        ("writes", "few", "chaos/writes.toml"),
    ):
        (root / "experiments" / study).mkdir(parents=True)
        shutil.copy(PROJECT / "tests" / source, root / "experiments" / study / f"{name}.toml")
    places = {"FLASHBED_ROOT": str(root), "FLASHBED_CACHE": str(cache_folder())}
    with zygote(root, places) as started:
        yield started


@pytest.mark.extension
@pytest.mark.parametrize(
    "trial", campaign((*SIMULATED, REPORT) if COUNT else SIMULATED, COUNT or 20, SEED), ids=str
)
def test_on_the_simulator(trial: Trial, struck: Zygote, tmp_path: Path) -> None:
    struck.survive(trial, tmp_path)


@pytest.mark.uml
@pytest.mark.extension
@pytest.mark.parametrize("trial", campaign(USER_MODE, COUNT or 6, SEED), ids=str)
def test_on_user_mode_linux(trial: Trial, struck: Zygote, tmp_path: Path) -> None:
    struck.survive(trial, tmp_path)
