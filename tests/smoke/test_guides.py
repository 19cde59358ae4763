"""Every page of docs/guide is followed, and shows what its commands print.

A page is one test. tests/smoke/following.py says how it is followed, examples.py has the rules.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.smoke.examples import needs
from tests.smoke.following import Place, follow, printed
from tests.support import PROJECT
from tests.support.board import SshBoard, ssh_board

GUIDES = sorted((PROJECT / "docs" / "guide").glob("*.md"))
NEEDED = {
    "emulator": ["emulator", "long"], "uml": ["uml"], "ssh": ["emulator"], "ssh-data": ["emulator"],
}  # fmt: skip
"""A word behind `needs:` -> markers of the test. Measuring on the emulated board takes minutes."""
LONGEST_S = {"emulator": 1_500, "ssh": 1_500, "ssh-data": 1_500, "uml": 600}
USUAL_S = 300


def _parameter(page: Path) -> Any:
    """A page, marked with what it needs, and with how long it may take."""
    needed = needs(page.read_text(encoding="utf-8"))
    markers = {marker for word in needed for marker in NEEDED[word]} | {"extension"}
    longest = max([USUAL_S, *(LONGEST_S[word] for word in needed)])
    marks = [getattr(pytest.mark, name) for name in sorted(markers)]
    return pytest.param(page, marks=[*marks, pytest.mark.timeout(longest)], id=page.stem)


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
answer = 42
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
        ("answer = 42\n$ ", "answer = 43\n$ "),
        ("answer = 42\n$ ", "$ "),
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
