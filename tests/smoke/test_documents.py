"""The documents tell of commands and files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "docs/cli.md",
    "docs/experiments.md",
    "docs/powercut.md",
]
COMMANDS = {
    "list",
    "run",
    "powercut",
    "table",
    "report",
    "reproduce",
    "doctor",
    "--help",
    "--version",
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_commands_exist(project: Path, name: str) -> None:
    text = (project / name).read_text()
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    for line in blocks.splitlines():
        words = line.split("#")[0].split()
        if words and words[0].endswith("flashbed"):
            assert words[1] in COMMANDS, line
        if words and words[0] == "make":
            makefile = (project / "Makefile").read_text()
            assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), line


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(project: Path, name: str) -> None:
    document = project / name
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
        assert (document.parent / link).exists(), link
