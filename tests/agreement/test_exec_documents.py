"""What the README shows of `flashbed exec` is what it prints.

tests/smoke/test_guides.py follows the guides.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from flashbed.base.paths import cache_folder
from flashbed.targets.uml.programs_kernel import SERIES, programs_kernel
from flashbed.targets.uml.uml_kernel import cached_kernel
from tests.smoke.following import Place, follow

pytestmark = [pytest.mark.uml, pytest.mark.timeout(300)]


@pytest.fixture
def parts() -> None:
    """What the command needs; skips without it."""
    if cached_kernel(cache_folder(), SERIES[0], programs_kernel()) is None:
        pytest.skip("the kernel for programs is not built: make uml")
    if shutil.which("sqlite3") is None:
        pytest.skip("sqlite3 is not installed")


def test_the_readme_opens_with_what_is_said(parts: None, project: Path, tmp_path: Path) -> None:
    block = re.findall(r"```console\n(.*?)```", (project / "README.md").read_text(), re.DOTALL)[0]
    assert follow(f"```console\n{block}```\n", Place.made(tmp_path)) == 1
