"""Follows a document: runs its commands and holds what they print against what it shows.

The commands run one after another in one fresh folder; `/tmp/` is another fresh folder, and
`flashbed` the one that is tested. What is shown is held against the standard output, or against all
that a terminal would show. A command that fails is shown to fail: its line `flashbed: …` is on the
page. Blocks of `sh` are only shown.

`python -m tests.smoke.following docs/guide/my-chip.md` writes the numbers of a page again.
"""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.smoke.examples import OF_THIS_MACHINE, File, Step, check, moved, parts

__all__ = ["Place", "follow", "printed"]

SHELL_WORDS = {"cat", "cd", "cp", "flashbed", "grep", "head", "ls", "mkdir", "python", "sqlite3",
               "tail", "wc"}  # fmt: skip
"""How a command of a guide may begin: what a reader has, and what changes nothing elsewhere."""
USUAL = {"PYTHONUNBUFFERED": "1", "COLUMNS": "120", "NO_COLOR": "1"}
"""What a command finds in its environment."""
ONCE = re.compile(r"flashbed: (?:building|downloading|fetching|unpacking) ")
"""Lines of what is built when it is used first, which a page does not show."""


@dataclass(frozen=True)
class Place:
    """Where a page is followed."""

    here: Path
    tmp: Path
    env: dict[str, str]

    @classmethod
    def made(cls, folder: Path, more: dict[str, str] | None = None) -> Place:
        """Two fresh folders, and `flashbed` and `python` of the tests on the path."""
        here, tmp, programs = folder / "here", folder / "tmp", Path(sys.executable).parent
        for made in (here, tmp):
            made.mkdir()
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        return cls(here, tmp, {**os.environ, "PATH": path, **USUAL, **(more or {})})

    def write(self, file: File) -> None:
        """Writes a file that the page shows."""
        path = self.here / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")

    def run(self, step: Step, exact: bool) -> None:
        """Runs a command and holds what it prints against the page."""
        status, lines = self._printed(step)
        shown = [line.rstrip() for line in step.shown]
        if status:
            failed = any(line.startswith("flashbed: ") for line in shown)
            assert failed, (step.command, status, lines)
        everything = [self._as_shown(line) for _, line in lines if not ONCE.match(line)]
        output = [self._as_shown(line) for stream, line in lines if stream == "stdout"]
        if agrees(shown, output, exact):
            return
        try:
            check(shown, everything, exact)
        except AssertionError as why:
            said = "\n".join(everything)
            raise AssertionError(f"$ {step.command}\n{why}\n{said}") from None

    def moved(self, step: Step) -> list[tuple[str, str]]:
        """Runs a command; returns lines that the page shows with other numbers, and the right."""
        _, lines = self._printed(step)
        return moved(
            [line.rstrip() for line in step.shown], [self._as_shown(line) for _, line in lines]
        )

    def _printed(self, step: Step) -> tuple[int, list[tuple[str, str]]]:
        assert step.command.split()[0] in SHELL_WORDS, f"no command of a guide: {step.command}"
        command = re.sub(r"(?<![\w.])/tmp\b", str(self.tmp), step.command)
        return printed(command, self.here, self.env)

    def _as_shown(self, line: str) -> str:
        """A line without the names of this test's folders."""
        own = line.replace(str(self.tmp), "/tmp")
        return own.replace(f"{self.here}/", "").rstrip()


def agrees(shown: list[str], said: list[str], exact: bool) -> bool:
    """Whether all that is said is shown."""
    try:
        check(shown, said, exact)
    except AssertionError:
        return False
    return True


def printed(command: str, here: Path, env: dict[str, str]) -> tuple[int, list[tuple[str, str]]]:
    """Exit status of a command, and its lines of both streams in the order in which they came."""
    came: list[tuple[str, bytes]] = []
    with subprocess.Popen(
        ["bash", "-c", command], cwd=here, env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as running, selectors.DefaultSelector() as waiting:  # fmt: skip
        assert running.stdout
        assert running.stderr
        waiting.register(running.stdout, selectors.EVENT_READ, "stdout")
        waiting.register(running.stderr, selectors.EVENT_READ, "stderr")
        while waiting.get_map():
            ready = sorted((key.data, key.fd, key.fileobj) for key, _ in waiting.select())
            for name, descriptor, stream in reversed(ready):
                if some := os.read(descriptor, 1 << 16):
                    came.append((name, some))
                else:
                    waiting.unregister(stream)
    return running.returncode, _lines_of(came)


def _lines_of(came: list[tuple[str, bytes]]) -> list[tuple[str, str]]:
    """Pieces of streams as lines; a line that came in two pieces stands where it began."""
    lines: list[tuple[str, str]] = []
    for name, some in came:
        text = some.decode(errors="replace")
        if lines and lines[-1][0] == name and not lines[-1][1].endswith("\n"):
            text = lines.pop()[1] + text
        lines += [(name, line) for line in text.splitlines(keepends=True)]
    return [(name, line.rstrip("\n")) for name, line in lines]


def follow(text: str, place: Place) -> int:
    """Follows a page; gives how many commands it has."""
    commands, exact = 0, True
    for part in parts(text):
        if isinstance(part, File):
            place.write(part)
        else:
            exact = exact and not OF_THIS_MACHINE.search(part.command)
            place.run(part, exact)
            commands += 1
    return commands


def renewed(text: str, place: Place) -> str:
    """A page with the numbers that its commands print today; its words stay."""
    at = 0
    for part in parts(text):
        if isinstance(part, File):
            place.write(part)
            continue
        for shown, said in place.moved(part):
            begin = text.index(f"\n{shown}\n", at)
            text = f"{text[:begin]}\n{said}\n{text[begin + len(shown) + 2 :]}"
            at = begin + len(said)
    return text


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            page = renewed(Path(name).read_text(encoding="utf-8"), Place.made(Path(folder)))
        Path(name).write_text(page, encoding="utf-8")
