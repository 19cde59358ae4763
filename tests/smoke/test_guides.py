"""Every page of docs/guide is followed, and shows what its commands print.

A page is one test. Its commands run one after another in one fresh folder; `/tmp/` is another
fresh folder, and `flashbed` the one that is tested. What is shown is held against the standard
output, or against all that a terminal would show. A command that fails is shown to fail: its line
`flashbed: …` is on the page. Blocks of `sh` are only shown. tests/smoke/examples.py has the rules.
"""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.smoke.examples import File, Step, check, needs, parts
from tests.support import PROJECT
from tests.support.board import SshBoard, ssh_board

GUIDES = sorted((PROJECT / "docs" / "guide").glob("*.md"))
SHELL_WORDS = {"cat", "cd", "cp", "flashbed", "grep", "head", "ls", "mkdir", "python", "sqlite3",
               "tail", "wc"}  # fmt: skip
"""How a command of a guide may begin: what a reader has, and what changes nothing elsewhere."""
NEEDED = {"emulator": ["emulator"], "uml": ["uml"], "ssh": ["emulator"], "ssh-data": ["emulator"]}
"""A word behind `needs:` -> markers of the test."""
USUAL = {"PYTHONUNBUFFERED": "1", "COLUMNS": "120", "NO_COLOR": "1"}
"""What a command finds in its environment."""
ONCE = re.compile(r"flashbed: (?:building|downloading|fetching|unpacking) ")
"""Lines of what is built when it is used first, which a page does not show."""
LONGEST_S = {"emulator": 1_500, "ssh": 1_500, "ssh-data": 1_500, "uml": 600}
USUAL_S = 300


def _parameter(page: Path) -> Any:
    """A page, marked with what it needs, and with how long it may take."""
    needed = needs(page.read_text(encoding="utf-8"))
    markers = {marker for word in needed for marker in NEEDED[word]} | {"extension"}
    longest = max([USUAL_S, *(LONGEST_S[word] for word in needed)])
    marks = [getattr(pytest.mark, name) for name in sorted(markers)]
    return pytest.param(page, marks=[*marks, pytest.mark.timeout(longest)], id=page.stem)


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

    def run(self, step: Step) -> None:
        """Runs a command and holds what it prints against the page."""
        assert step.command.split()[0] in SHELL_WORDS, f"no command of a guide: {step.command}"
        command = re.sub(r"(?<![\w.])/tmp\b", str(self.tmp), step.command)
        status, lines = printed(command, self.here, self.env)
        shown = [line.rstrip() for line in step.shown]
        if status:
            failed = any(line.startswith("flashbed: ") for line in shown)
            assert failed, (step.command, status, lines)
        everything = [self._as_shown(line) for _, line in lines if not ONCE.match(line)]
        output = [self._as_shown(line) for stream, line in lines if stream == "stdout"]
        if agrees(shown, output):
            return
        try:
            check(shown, everything)
        except AssertionError as why:
            said = "\n".join(everything)
            raise AssertionError(f"$ {step.command}\n{why}\n{said}") from None

    def _as_shown(self, line: str) -> str:
        """A line without the names of this test's folders."""
        own = line.replace(str(self.tmp), "/tmp")
        return own.replace(f"{self.here}/", "").rstrip()


def agrees(shown: list[str], said: list[str]) -> bool:
    """Whether all that is said is shown."""
    try:
        check(shown, said)
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
    commands = 0
    for part in parts(text):
        if isinstance(part, File):
            place.write(part)
        else:
            place.run(part)
            commands += 1
    return commands


@pytest.fixture(scope="module")
def board_with_data(ssh_parts: None, tmp_path_factory: pytest.TempPathFactory) -> object:
    """A board with JFFS2 on /data."""
    with ssh_board(tmp_path_factory.mktemp("guides") / "board", jffs2_on="data") as board:
        yield board


@pytest.mark.parametrize("page", [_parameter(page) for page in GUIDES])
def test_a_guide_shows_what_its_commands_print(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    text = page.read_text(encoding="utf-8")
    more = {}
    for word, fixture in (("ssh", "shared_board"), ("ssh-data", "board_with_data")):
        if word in needs(text):
            board: SshBoard = request.getfixturevalue(fixture)
            more["FLASHBED_SSH"] = f"ssh -F {board.config}"
    follow(text, Place.made(tmp_path, more))


PAGE = """# A page

```toml
# own/mine.toml
answer = 42
```

```sh
flashbed --no-such-option
```

```console
$ cat own/mine.toml
# own/mine.toml
answer = 40
$ cat /dev/null > /tmp/left; ls \\
    /tmp
left
```

```console
$ flashbed --version
...
$ flashbed list nothing
flashbed: ...
```
"""


def test_a_page_is_followed(tmp_path: Path) -> None:
    place = Place.made(tmp_path)
    status, lines = printed("flashbed list nothing", place.here, place.env)
    ((stream, error),) = lines
    assert (status, stream) == (2, "stderr")
    assert follow(PAGE.replace("flashbed: ...", error), place) == 4


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("answer = 40", "answer = 60"),
        ("answer = 40\n", ""),
        ("$ cat own", "$ cat owned"),
        ("$ cat own", "$ rm own"),
        ("\nleft", "\nleft\nright"),
        ("flashbed: ...", "..."),
    ],
)
def test_a_page_that_shows_something_else_is_noticed(
    tmp_path: Path, right: str, wrong: str
) -> None:
    assert right in PAGE
    with pytest.raises(AssertionError):
        follow(PAGE.replace(right, wrong), Place.made(tmp_path))


def test_what_a_page_needs_is_read_from_it() -> None:
    assert needs("<!-- needs: ssh-data, emulator -->\n") == ["emulator", "ssh-data"]
    for command, needed in (
        ("flashbed exec -- ls", ["uml"]),
        ("flashbed exec --on emulator -- ls", ["emulator"]),
        ("flashbed run figure3 --on sim,uml", ["uml"]),
        ("flashbed run figure3", []),
    ):
        assert needs(f"```console\n$ {command}\n```\n") == needed


def test_what_is_built_once_need_not_be_shown(tmp_path: Path) -> None:
    program = tmp_path / "flashbed"
    program.write_text("#!/bin/sh\necho 'flashbed: building it' >&2; echo 'flashbed: said' >&2\n")
    program.chmod(0o755)
    place = Place.made(tmp_path, {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"})
    assert follow("```console\n$ flashbed\nflashbed: said\n```\n", place) == 1
    with pytest.raises(AssertionError):
        follow("```console\n$ flashbed\nsomething else\n```\n", place)
