"""`flashbed policy new --rust`: what it writes compiles, and has the programs of `policy check`."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from flashbed.api.policy_check import check_program
from flashbed.api.rust_policy import begin
from flashbed.base.errors import InputError

pytestmark = pytest.mark.extension


@pytest.mark.timeout(900)
@pytest.mark.parametrize("decision", ["victim", "read_ahead", "reclaim"])
def test_what_is_begun_compiles(decision: str, project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "own_policy"
    begin(folder, decision)
    assert (folder / "stack/body.ops").read_text() == check_program(decision, 1)[1]
    shutil.copy(project / "Cargo.lock", folder)  # the packages that are there
    checked = subprocess.run(
        ["cargo", "check", "--quiet", "--offline", "--manifest-path", folder / "Cargo.toml"],
        env={**os.environ, "CARGO_TARGET_DIR": str(project / "target"), "RUSTFLAGS": "-Dwarnings"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stderr


def test_it_needs_a_checkout_and_a_new_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(tmp_path / "twice", "victim")
    with pytest.raises(InputError, match="exists"):
        begin(tmp_path / "twice", "victim")
    monkeypatch.setenv("FLASHBED_ROOT", str(tmp_path))
    with pytest.raises(InputError, match="needs a checkout"):
        begin(tmp_path / "other", "victim")
