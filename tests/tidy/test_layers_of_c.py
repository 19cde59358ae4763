"""C uses what stands below it, and nothing else.

agent/README.md lists the agent's folders and the folders that each may include. The header of
flashbed_nand lists its layers. The tests read both orders from there.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import pytest

from tests.tidy.sources import circle, code_of_c, files, imports, symbols_of_c, text

AGENT = "agent"
CHIP = "kernel/flashbed_nand"
_ROW = re.compile(r"^\| `(\w+)(?:/|\.c)` \|[^|]*\| ([^|]*) \|$", re.MULTILINE)
_INCLUDES = re.compile(r"^ \* Includes: ([^.]*)\.$", re.MULTILINE)
_LAYER = re.compile(r"^ \*   (\w+) {2,}\S", re.MULTILINE)


def _named(cell: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", cell))


def _folders() -> dict[str, frozenset[str]]:
    """Each folder, and `main`, with what it may include, in the order of agent/README.md."""
    section = text("agent/README.md").split("\n## Folders\n")[1].split("\n## ")[0]
    return {row[1]: _named(row[2]) for row in _ROW.finditer(section)}


def _layers() -> list[str]:
    """The files of flashbed_nand without their ending, the lowest first."""
    listed = text(f"{CHIP}/flashbed_nand.h").split("Layers,")[1].split("Invariants:")[0]
    return _LAYER.findall(listed)


def _folder_of(path: str) -> str:
    return PurePosixPath(path).relative_to(AGENT).with_suffix("").parts[0]


def _own(folder: str, *suffixes: str) -> list[str]:
    return [path for path in files(*suffixes) if path.startswith(f"{folder}/")]


def test_every_folder_is_in_the_order_and_has_one_header() -> None:
    paths = _own(AGENT, ".c", ".h")
    assert {_folder_of(path) for path in paths} == set(_folders())
    headers = {path for path in paths if path.endswith(".h")}
    assert headers == {f"{AGENT}/{folder}/{folder}.h" for folder in _folders() if folder != "main"}


def test_a_folder_may_include_only_folders_above_it_in_the_list() -> None:
    above: set[str] = set()
    for folder, may in _folders().items():
        assert may <= above, folder
        above.add(folder)


@pytest.mark.parametrize("path", _own(AGENT, ".c", ".h"))
def test_a_file_of_the_agent_includes_what_its_folder_may(path: str) -> None:
    folder = _folder_of(path)
    includes = re.findall(r'^#include "([^"]+)"', text(path), re.MULTILINE)
    # SQLite's own header is compiled in, not ours.
    folders = {PurePosixPath(name).parts[0] for name in includes if name != "sqlite3.h"}
    assert folders <= _folders()[folder] | {folder}


@pytest.mark.parametrize("folder", [folder for folder in _folders() if folder != "main"])
def test_a_header_says_which_folders_it_includes(folder: str) -> None:
    path = f"{AGENT}/{folder}/{folder}.h"
    said = _INCLUDES.search(text(path))
    assert said, f"{path} has no line ` * Includes: ….`"
    assert _named(said[1].removeprefix("nothing of the agent's")) == _folders()[folder]


def test_files_of_the_agent_do_not_use_each_other_in_a_circle() -> None:
    uses = symbols_of_c(AGENT, without=("agent/sql/none.c",))
    assert circle(uses) == []
    for path, others in uses.items():
        folder = _folder_of(path)
        assert {_folder_of(other) for other in others} <= _folders()[folder] | {folder}, path


def test_the_layers_of_the_chip_are_its_files() -> None:
    stems = sorted(PurePosixPath(path).stem for path in _own(CHIP, ".c"))
    assert sorted(_layers()) == stems


@pytest.mark.parametrize("path", _own(CHIP, ".c"))
def test_a_layer_of_the_chip_uses_those_above_it(path: str) -> None:
    order = _layers()
    used = {PurePosixPath(other).stem for other in symbols_of_c(CHIP)[path]}
    assert used <= set(order[: order.index(PurePosixPath(path).stem)])


def test_agent_and_kernel_share_no_file() -> None:
    """Their licences differ."""
    for one, licence in ((AGENT, "Apache-2.0"), ("kernel", "GPL-2.0-only")):
        for path in _own(one, ".c", ".h"):
            assert f"SPDX-License-Identifier: {licence}" in text(path).splitlines()[0], path
    assert not {used for uses in imports("kernel", ".c").values() for used in uses} & set(
        _own(AGENT, ".h")
    )


def test_what_a_comment_names_is_no_use() -> None:
    assert "never" not in code_of_c('int a; /* never */ char *b = "never"; // never\n')
