"""Postmark's operations are those of the published program, and its script is read as it reads it.

The reference counts are of Debian's postmark 1.53-2+b1 (which calls itself 1.51 : 8/14/01), run by
hand with the scripts below and its report copied: they were not made by this code.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from statistics import fmean
from typing import Literal

import pytest

from flashbed._sim import compressed_size
from flashbed.base.errors import InputError
from flashbed.plan.case import Case
from flashbed.plan.workloads.postmark import PostmarkCounts, operations
from flashbed.program.content import generated_pieces
from flashbed.program.operations import parse
from flashbed.program.postmark_script import Settings, read_script

SCRIPT = """set location /mnt/flash
set seed {seed}
set number {number}
set size {low} {high}
set transactions {transactions}
{subdirectories}
set bias read {read}
set bias create {create}
set read {read_bytes}
set write {write_bytes}
set buffering false
run
quit
"""
FIRST: dict[str, int | str] = {
    "seed": 42, "number": 100, "low": 500, "high": 10_000, "transactions": 300, "read": 5,
    "create": 5, "read_bytes": 512, "write_bytes": 512, "subdirectories": "",
}  # fmt: skip
SECOND: dict[str, int | str] = {
    "seed": 7, "number": 60, "low": 1000, "high": 30_000, "transactions": 400, "read": 7,
    "create": 5, "read_bytes": 4096, "write_bytes": 4096,
    "subdirectories": "set subdirectories 10",
}  # fmt: skip
THIRD: dict[str, int | str] = {
    "seed": 2014, "number": 80, "low": 2000, "high": 8000, "transactions": 250, "read": 3,
    "create": 6, "read_bytes": 1000, "write_bytes": 700,
    "subdirectories": "set subdirectories 3",
}  # fmt: skip

# created, deleted, read, appended, bytes read and written; kilobytes and megabytes as it prints
# them. (calls: open, read, write and unlink of the same runs, counted by strace, without calls that
# move no byte.)
REPORTED = [
    (FIRST, (249, 249, 145, 155), "948.32 kilobytes", "1.57 megabytes", 98, 6180),
    (SECOND, (278, 278, 277, 123), "4.42 megabytes", "4.74 megabytes", 96, 3666),
    (THIRD, (232, 232, 65, 183), "373.18 kilobytes", "1.29 megabytes", 134, 3279),
]


def case(values: dict[str, int | str], pattern: str) -> Case:
    return Case(
        experiment="x/y", board="emulated", kernel="6.1", fs="jffs2", read_ahead_kib=0,
        pattern=pattern, requests=int(values["transactions"]),
        request_bytes=int(values["read_bytes"]), file_bytes=int(values["high"]),
        seed=int(values["seed"]),
    )  # fmt: skip


def counted(text: str) -> tuple[PostmarkCounts, int]:
    """What a report would say of operations, and how many calls they are."""
    counts, calls = PostmarkCounts(), 0
    for operation in parse(text):
        calls += operation.name in ("open", "read", "write", "unlink")
        if operation.name == "open":
            flags = str(operation.fields[2]).split(",")
            counts.created += "create" in flags
            counts.appended += "append" in flags
            counts.read += flags[0] == "ro"
        elif operation.name == "read":
            counts.bytes_read += int(operation.fields[2])
        elif operation.name == "write":
            counts.bytes_written += int(operation.fields[2])
        counts.deleted += operation.name == "unlink"
    return counts, calls


def scaled(count: int) -> str:
    if count >= 2**20:
        return f"{count / 2**20:.2f} megabytes"
    return f"{count / 2**10:.2f} kilobytes"


@pytest.mark.parametrize(("values", "files", "read", "written", "left", "calls"), REPORTED)
def test_operations_count_what_postmark_reports(
    values: dict[str, int | str],
    files: tuple[int, int, int, int],
    read: str,
    written: str,
    left: int,
    calls: int,
) -> None:
    prepare, body = operations(case(values, "all"), 1000, SCRIPT.format(**values))
    counts, made = counted(body)
    assert (counts.created, counts.deleted, counts.read, counts.appended) == files
    assert (scaled(counts.bytes_read), scaled(counts.bytes_written)) == (read, written)
    assert made == calls
    _, deletion = operations(case(values, "deletion"), 1000, SCRIPT.format(**values))
    measured = deletion.split("mark\n")[1]
    assert Counter(line.split()[0] for line in measured.splitlines())["unlink"] == left
    folders = str(values["subdirectories"]).split()[-1:] or ["0"]
    assert prepare.count("mkdir ") == int(folders[0])


def test_the_phases_make_up_the_whole() -> None:
    script = SCRIPT.format(**SECOND)
    bodies = {
        pattern: operations(case(SECOND, pattern), 1000, script)[1].split("mark\n")[1]
        for pattern in ("creation", "transactions", "deletion", "all")
    }
    assert bodies["all"] == bodies["creation"] + bodies["transactions"] + bodies["deletion"]
    prepare, body = operations(case(SECOND, "transactions"), 1000, script)
    assert bodies["creation"] in prepare
    assert "unlink" not in prepare
    assert body.startswith("flashbed-ops 2\nmark\n")


def test_caches_are_dropped_before_the_phases_that_ask_for_it() -> None:
    script = "set drop transactions true\n" + SCRIPT.format(**FIRST)
    _, body = operations(case(FIRST, "transactions"), 1000, script)
    assert body.startswith("flashbed-ops 2\nsync\ndrop_caches\nmark\n")
    _, whole = operations(case(FIRST, "all"), 1000, script)
    assert whole.count("drop_caches") == 1
    assert whole.index("mark") < whole.index("drop_caches")


def test_a_page_compresses_as_postmarks_text_does() -> None:
    """Debian's postmark wrote 73 pages of 95 different bytes; zlib made 3,424.6 bytes of each."""
    script = "set size 8192 8193\n" + SCRIPT.format(**FIRST)
    prepare, _ = operations(case(FIRST, "transactions"), 1000, script)
    writes = [one for one in parse(prepare) if one.name == "write"]
    names: tuple[Literal["zlib", "lzo"], ...] = ("zlib", "lzo")
    sizes: dict[str, list[int]] = {name: [] for name in names}
    for first in (at for at, one in enumerate(writes) if int(str(one.fields[1])) == 4096):
        fields = [one.fields for one in writes[first : first + 8]]
        page = b"".join(
            generated_pieces(int(str(at)), int(str(length)), int(str(seed)), str(fill)).tobytes()
            for _, at, length, seed, fill in fields
        )
        if len(page) == 4096:
            for name in names:
                sizes[name].append(compressed_size(name, page))
    assert len(sizes["zlib"]) > 20
    assert fmean(sizes["zlib"]) == pytest.approx(3424.6, rel=0.01)
    assert min(sizes["lzo"]) >= 4096


def test_a_write_across_pages_has_a_piece_for_each() -> None:
    values = FIRST | {"write_bytes": 5000}
    prepare, _ = operations(case(values, "transactions"), 1000, SCRIPT.format(**values))
    fills = [str(one.fields[4]) for one in parse(prepare) if str(one.fields[2:3]) == "(5000,)"]
    assert {fill.count(",") for fill in fills} == {1}


def test_buffered_requests_are_those_of_the_c_library() -> None:
    script = SCRIPT.format(**FIRST).replace("buffering false", "buffering true")
    _, body = operations(case(FIRST, "all"), 1000, script)
    lengths = {int(str(one.fields[2])) for one in parse(body) if one.name == "read"}
    assert max(lengths) == 4096
    assert (
        counted(body)[0].bytes_read
        == counted(operations(case(FIRST, "all"), 1000, SCRIPT.format(**FIRST))[1])[0].bytes_read
    )


def test_a_script_says_what_the_program_would_take_it_for() -> None:
    settings = read_script(
        "show\n\nset size 512 10240\nset number 5000\nset transactions 15000\n"
        "set subdirectories 50\nset drop creation true\nset fill creation valid 0.5\n"
        "set fill creation invalid 0.25\nset flashmon true\nset bias read -1\nrun\nset number 1\n"
    )
    assert settings == Settings(
        number=5000, size_low_bytes=512, size_high_bytes=10_240, transactions=15_000,
        subdirectories=50, drop_creation=True, fill_valid=0.5, fill_invalid=0.25, bias_read=-1,
        said=settings.said,
    )  # fmt: skip
    assert settings.said >= {"number", "fill_valid"}
    assert "seed" not in settings.said
    assert read_script("set size 700").size_high_bytes == 700


@pytest.mark.parametrize(
    "line",
    [
        "set colour red",
        "set number many",
        "set number 0",
        "set size 10 5",
        "set bias read 11",
        "set fill transaction valid 0.5",
        "set location + /mnt/a 3",
        "!rm -r /",
        "set",
    ],
)
def test_a_command_that_cannot_be_meant_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(InputError, match="script: line 2: "):
        read_script(f"set number 5\n{line}\n")


def test_a_pool_that_runs_dry_is_refused() -> None:
    """Postmark stops with `out of files!`; its report would be of another workload."""
    values = FIRST | {"number": 3, "create": 0}
    with pytest.raises(InputError, match=r"out of files|deletes the last"):
        operations(case(values, "all"), 1000, SCRIPT.format(**values))


@pytest.mark.parametrize(
    ("script", "file_bytes", "why"),
    [
        ("set number 5", 2**31, "larger than the partition"),
        ("set number 1000000000000", 8_192, "do not fit on the partition"),
        ("set size 512\nset number 1", 256, "the smallest file"),
    ],
)
def test_files_that_cannot_be_are_refused_before_any_is_made_up(
    script: str, file_bytes: int, why: str
) -> None:
    """Drawing the text of 2 GiB had taken minutes."""
    with pytest.raises(InputError, match=why):
        operations(replace(case(FIRST, "all"), file_bytes=file_bytes), 0, script)
