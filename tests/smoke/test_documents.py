"""The documents tell of commands and files that exist."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
from pathlib import Path

import pytest

from flashbed.cli import app
from tests.support import PROJECT

DOCUMENTS = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "GLOSSARY.md",
    *sorted(str(path.relative_to(PROJECT)) for path in (PROJECT / "docs").rglob("*.md")),
]
COMMANDS = {command.name for command in app.registered_commands} | {"--help", "--version"}
COMMANDS |= {group.name for group in app.registered_groups}


def commands(text: str) -> list[list[str]]:
    """The words of every line of a document's shell blocks, without comments."""
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ")
    lines = (shlex.split(line.split(" #")[0]) for line in blocks.splitlines())
    return [words for words in lines if words and not words[0].startswith("#")]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_commands_exist(project: Path, name: str) -> None:
    for words in commands((project / name).read_text()):
        if words[0].endswith("flashbed"):
            assert words[1] in COMMANDS, words
        if words[0] == "make":
            makefile = (project / "Makefile").read_text()
            assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), words


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(project: Path, name: str) -> None:
    document = project / name
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
        assert (document.parent / link).exists(), link


@pytest.mark.parametrize(
    ("picture", "draws"), [("stack.svg", "stack"), ("guide/power-cut.svg", "power_cut")]
)
def test_a_picture_is_what_its_script_draws(project: Path, picture: str, draws: str) -> None:
    drawn = runpy.run_path(str(project / "docs" / "draw_pictures.py"))[draws]()
    assert (project / "docs" / picture).read_text(encoding="utf-8") == drawn


@pytest.mark.extension
def test_every_command_of_the_readme_does_what_it_says(project: Path, tmp_path: Path) -> None:
    """`make` is what runs this test."""
    for words in commands((project / "README.md").read_text()):
        if words[0] == "make":
            continue
        line = [str(project / words[0])]
        for word in words[1:]:
            given = "/" in word and (project / word).is_file()
            line.append(str(project / word) if given else word.replace("/tmp", str(tmp_path)))
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (words, done.stderr)
        assert done.stdout, words
