"""`flashbed exec` prints what the README and docs/exec.md show of it."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from flashbed.paths import cache_folder
from flashbed.targets.uml.programs_kernel import SERIES, programs_kernel
from flashbed.targets.uml.uml_kernel import cached_kernel
from tests.agreement.test_exec import FLASHBED
from tests.smoke.examples import Step, check, steps

pytestmark = [pytest.mark.uml, pytest.mark.timeout(300)]


@pytest.fixture
def parts() -> None:
    """What the commands of this machine need; skips without it."""
    if cached_kernel(cache_folder(), SERIES[0], programs_kernel()) is None:
        pytest.skip("the kernel for programs is not built: make uml")
    for name in ("sqlite3", "tar"):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")


def _follow(found: Sequence[Step], here: Path) -> None:
    """The answer is on standard error."""
    for step in found:
        words = shlex.split(step.command.replace("/tmp/", f"{here}/"))
        done = subprocess.run(
            [FLASHBED, *words[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, cwd=here, check=False, timeout=250,
        )  # fmt: skip
        if "could not be" in done.stdout or "is not installed" in done.stdout:
            pytest.skip(done.stdout)
        assert done.returncode == 0, done.stdout
        said = [line for line in done.stdout.splitlines() if not line.startswith("flashbed: ")]
        check(step.shown, [line.replace(f"{here}/", "/tmp/") for line in said])


def test_the_guide_shows_what_is_said(parts: None, project: Path, tmp_path: Path) -> None:
    numbers = tmp_path / "a"
    numbers.write_text("".join(f"{number}\n" for number in range(1, 60001)))
    with tarfile.open(tmp_path / "songs.tar", "w") as archive:
        archive.add(numbers, "a")
    found = steps(project / "docs" / "exec.md", "Steps")
    assert len(found) == 4
    _follow(found, tmp_path)


def test_the_readme_opens_with_what_is_said(parts: None, project: Path, tmp_path: Path) -> None:
    block = re.findall(r"```console\n(.*?)```", (project / "README.md").read_text(), re.DOTALL)[0]
    command, *shown = block.splitlines()
    _follow([Step(command.removeprefix("$ "), shown)], tmp_path)


@pytest.mark.emulator
def test_programs_of_packages_do_what_the_guide_shows(project: Path, tmp_path: Path) -> None:
    found = steps(project / "docs" / "exec.md", "Other places")
    assert len(found) == 1
    _follow(found, tmp_path)
