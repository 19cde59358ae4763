"""boards/parts/file_systems.toml is the only list of file systems; other languages agree."""

from __future__ import annotations

import re
from typing import get_args

from flashbed.plan.axes import takes_compressor
from flashbed.stack.file_systems import _TABLE, COMPRESSING, FILE_SYSTEMS, ON_FTL, RAW, FileSystem
from flashbed.stack.profiles import kernel_names, load_kernel
from tests.support import PROJECT

_TWO = re.compile(
    rf'"({"|".join(FILE_SYSTEMS)})"[^"\n]*"(?!\1)({"|".join(FILE_SYSTEMS)})"'
)  # fmt: skip
_MEASURED = {"bench/fuzz/full_body.py"}
"""Has numbers of some file systems, and a rule for all others."""


def names_in(file: str, begin: str) -> list[str]:
    """The strings of a C array."""
    text = (PROJECT / file).read_text(encoding="utf-8")
    strings = re.findall(r'"([^"]*)"', text.partition(begin)[2].partition(";")[0])
    return [string for string in strings if string]


def test_the_axis_takes_the_rows_of_the_file() -> None:
    assert list(get_args(FileSystem)) == [*FILE_SYSTEMS, *RAW, *ON_FTL]
    assert len(_TABLE.file_system) == len(FILE_SYSTEMS)


def test_the_agent_has_the_same_names_in_the_same_order() -> None:
    assert names_in("agent/fs/fs.c", "const names[] =") == [*FILE_SYSTEMS, *RAW, *ON_FTL]
    assert names_in("agent/board/board.c", "const names[] =") == [*FILE_SYSTEMS]


def test_the_simulator_has_the_same_names_in_the_same_order() -> None:
    files = {"sim/src/run/parts.rs": "FsKind", "sim/src/block/mod.rs": "Disk"}
    rows = [
        name
        for file, kind in files.items()
        for name in re.findall(rf'\("([a-z0-9-]+)", {kind}::', (PROJECT / file).read_text("utf-8"))
    ]
    assert rows == [*FILE_SYSTEMS, *RAW]


def test_a_kernel_mounts_with_no_compressor_that_the_row_lacks() -> None:
    for name in kernel_names():
        kernel = load_kernel(name)
        for fs in COMPRESSING:
            table = getattr(kernel, fs)
            able = {option.split("-")[0] for option in table.compr_option} if table else set()
            assert able <= set(FILE_SYSTEMS[fs].compr), f"{name}: {fs}"


def test_a_partition_takes_no_compressor() -> None:
    assert takes_compressor("mtd", "lzo") is not None
    assert takes_compressor("mtd", "default") is None


def test_no_line_of_the_package_lists_file_systems() -> None:
    package = PROJECT / "python" / "flashbed"
    found = [
        f"{file.relative_to(package).as_posix()}: {line.strip()}"
        for file in sorted(package.rglob("*.py"))
        if file.relative_to(package).as_posix() not in _MEASURED
        for line in file.read_text(encoding="utf-8").splitlines()
        if _TWO.search(line) and not line.lstrip().startswith("result = fb.run(")
    ]
    assert found == []


def test_no_line_of_the_page_lists_file_systems() -> None:
    files = sorted((PROJECT / "page" / "web").glob("*.ts"))
    assert files
    assert not [file.name for file in files if _TWO.search(file.read_text(encoding="utf-8"))]
