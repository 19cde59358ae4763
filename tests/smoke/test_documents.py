"""The documents tell of commands and files that exist."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.main import get_command

from flashbed.cli import app
from tests.support import PROJECT

DOCUMENTS = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "GLOSSARY.md",
    *sorted(str(path.relative_to(PROJECT)) for path in (PROJECT / "docs").rglob("*.md")),
]


def commands(text: str) -> list[list[str]]:
    """The words of every line of a document's shell blocks, without comments."""
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ")
    lines = (shlex.split(line.split(" #")[0]) for line in blocks.splitlines())
    return [words for words in lines if words and not words[0].startswith("#")]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_targets_of_make_exist(project: Path, name: str) -> None:
    for words in commands((project / name).read_text()):
        if words[0] == "make":
            makefile = (project / "Makefile").read_text()
            assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), words


def invocations(text: str) -> list[str]:
    """Every `flashbed …` of a document, in blocks and within sentences, up to ` -- COMMAND`."""
    blocks = "\n".join(re.findall(r"```(?:sh|console)\n(.*?)```", text, re.DOTALL))
    lines = [line.removeprefix("$ ") for line in blocks.replace("\\\n", " ").splitlines()]
    shown = [line for line in lines if re.match(r"(?:\S*/)?flashbed [-a-z]", line)]
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    named = re.findall(r"`(flashbed [-a-z][^`]*)`", prose)
    return [re.split(r" (?:--|#|\||>|2>|&&) ", one.replace("\n", " "))[0] for one in shown + named]


def mistake(invocation: str) -> str | None:
    """Why the command line does not take the words, or None. An option may be named alone."""
    words = [word for word in shlex.split(invocation)[1:] if word not in ("…", "...")]
    command: Any = get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return f"no command {words[0]}"
        command = command.commands[words.pop(0)]
    if words and words[-1] in {name for option in command.params for name in option.opts}:
        words.pop()
    context = command.make_context("flashbed", [], resilient_parsing=True)
    try:
        _, left, _ = command.make_parser(context).parse_args(words)
    except Exception as error:
        return str(error)
    return f"too many words: {left}" if left and not hasattr(command, "commands") else None


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_command_line_takes_what_a_document_writes(project: Path, name: str) -> None:
    """A guide said `flashbed prepare uml`, which ends in a usage error."""
    text = (project / name).read_text()
    assert [(one, why) for one in invocations(text) if (why := mistake(one))] == []


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


@pytest.mark.extension
def test_the_picture_of_the_stack_has_the_numbers_of_a_trace(project: Path, tmp_path: Path) -> None:
    """It showed a read with a window of 128 KiB, which no UBIFS of Linux 6.1 is mounted with."""
    command: list[Path | str] = [
        project / ".venv/bin/flashbed",
        "trace",
        "--on",
        "sim",
        "--set",
        "fs=ubifs",
        "--flash",
    ]
    file = project / "docs/examples/stack.ops"
    subprocess.run([*command, "--out", tmp_path, file], check=True, capture_output=True)
    calls = {row["op"]: row for row in pl.read_parquet(tmp_path / "requests.parquet").to_dicts()}
    flash = pl.read_parquet(tmp_path / "flash.parquet")
    layers = runpy.run_path(str(project / "docs" / "draw_pictures.py"))["LAYERS"]
    shown = {name: (read, write) for name, _, read, write in layers}

    def during(op: str) -> pl.DataFrame:
        begin = calls[op]["start_ns"]
        end = begin + calls[op]["latency_ns"]
        return flash.filter(pl.col("start_ns").is_between(begin, end))

    read, written = during("read"), during("fsync")
    assert shown["Driver"] == (f"{read.height} reads", f"{written.height} writes")
    kib = [table["length_bytes"].sum() / 1024 for table in (read, written)]
    assert shown["Flash chip"] == tuple(f"{size:g} KiB" for size in kib)
