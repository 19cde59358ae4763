"""What `advise` concludes from the simulator holds on real file-system code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.smoke.conftest import Run, run  # noqa: F401  (a fixture)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results go into a folder of the test's own."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("program", ["programs/config", "programs/unpack"])
def test_a_kernel_puts_the_front_in_the_same_order(run: Run, program: str) -> None:  # noqa: F811
    status, out, _ = run("advise", program, "--cuts", "20", "--format", "json")
    assert status == 0
    found = json.loads(out)
    assert found["orders"]
    assert all("order the configurations alike" in line for line in found["orders"])
    assert found["advised"]["power_cuts"]["cuts"] == 20


def test_sqlite_keeps_commits_as_its_journal_says(run: Run) -> None:  # noqa: F811
    """WAL with FULL keeps all; NORMAL loses commits that had returned."""
    status, out, _ = run(
        "advise", "sqlite/requests", "--board", "emulated", "--kernel", "6.1",
        *("--set", "fs=ubifs", "--set", "pattern=update", "--set", "requests=60"),
        *("--set", "request_bytes=300", "--set", "database=page4096-wal"),
        *("--set", "database.transactions_per_s=10", "--set", "database.page_bytes=4096"),
        *("--set", "database.cache_pages=2000", "--set", "database.journal=wal"),
        *("--cuts", "60", "--format", "json"),
    )  # fmt: skip
    assert status == 0
    found = json.loads(out)
    assert found["now"]["power_cuts"]["word"] == "keeps all"
    words = {
        each["set"].get("database.synchronous"): each["power_cuts"]["word"]
        for each in found["apart"]
        if each["power_cuts"]
    }
    assert words["normal"].startswith("may lose the last")
