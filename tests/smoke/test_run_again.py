"""A report's "How to run it again" works when its commands are typed as printed."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path

import pytest

from flashbed.results.run_directory import read_table
from tests.smoke.conftest import Run
from tests.support.fake import FakeTarget

Fakes = dict[str, FakeTarget]


def commands(report: Path) -> list[list[str]]:
    """The words of each, without the program."""
    (text,) = re.findall(r'<pre class="shell">(.*?)</pre>', report.read_text(), re.DOTALL)
    lines = [shlex.split(line, comments=True) for line in html.unescape(text).splitlines()]
    assert all(words[0] == ".venv/bin/flashbed" for words in lines if words)
    return [words[1:] for words in lines if words]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("one", []),
        ("one", ["--on", "sim,emulator", "--set", "pattern=random", "--set", "seed=1"]),
        ("one", ["--set", "requests=16", "--set", "kernel=6.1"]),
        ("mine/own.toml", ["--set", "pattern=random"]),
        ("mine/own.toml", ["--on", "emulator"]),
        ("mine/gone.toml", []),
    ],
)
def test_the_commands_of_a_report_run_what_it_shows(
    small: Path, fakes: Fakes, run: Run, monkeypatch: pytest.MonkeyPatch,
    name: str, options: list[str],
) -> None:  # fmt: skip
    """They had a CASE in them, and targets that the experiment does not run on.

    For an experiment outside the checkout they had a name that is not found.
    """
    experiment = (small / "experiments/small/one.toml").read_text().replace("small/one", "my/own")
    Path("mine").mkdir()
    for file in ("own", "gone"):
        Path(f"mine/{file}.toml").write_text(experiment)
    assert run("run", name, *options, "--out", "r")[0] == 0
    Path("mine/gone.toml").unlink()
    assert run("report", "r", "--out", "report.html")[0] == 0
    shown = read_table(Path("r"), "cases").select("case_id", "target").rows()
    all_of_it, one_of_it = commands(Path("report.html"))
    monkeypatch.chdir(small)
    status, _, err = run(*one_of_it)
    assert (status, "failed" in err) == (0, False)
    status, out, _ = run(*all_of_it)
    assert status == 0
    (directory,) = re.findall(r"^next: flashbed report (\S+)$", out, re.MULTILINE)
    assert read_table(Path(directory), "cases").select("case_id", "target").rows() == shown
