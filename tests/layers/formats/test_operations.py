"""The reader of flashbed-ops 1 refuses what docs/reference/operations.md refuses."""

from __future__ import annotations

import pytest

from flashbed.program.operations import HEADER, OperationError, canonical, parse


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("#" * 4097, "line-too-long"),
        ("# caf\u00e9", "bad-character"),
        ("sync\r", "bad-character"),
        ("sing", "unknown-operation"),
        (" sync", "unknown-operation"),
        ("sync ", "wrong-arguments"),
        ("read 0 0", "wrong-arguments"),
        ("read 0  0 1", "wrong-arguments"),
        ("read 64 0 1", "bad-number"),
        ("read 0 00 1", "bad-number"),
        ("read 0 0 0", "bad-number"),
        ("read 0 0 1073741825", "bad-number"),
        ("read 0 9223372036854775807 1", "bad-number"),
        ("pause 9223372036854775808", "bad-number"),
        ("write 0 0 1 0 101", "bad-number"),
        ("mkdir /a", "bad-path"),
        ("mkdir a/../b", "bad-path"),
        ("mkdir " + "a" * 256, "bad-path"),
        ("mkdir " + "/".join(["a" * 200] * 6), "bad-path"),
        ("open 0 a rw,rw", "bad-flags"),
        ("open 0 a create", "bad-flags"),
        ("open 0 a rw,create,create", "bad-flags"),
        ("fadvise 0 0 0 often", "bad-advice"),
        ("close 0", "slot-closed"),
        ("sql a.db ", "wrong-arguments"),
        ("sql a.db", "wrong-arguments"),
    ],
)
def test_a_bad_line_is_refused_with_its_code(line: str, code: str) -> None:
    with pytest.raises(OperationError) as refused:
        parse(f"{HEADER}\n# before\n{line}\nsync\n")
    assert (refused.value.line, refused.value.code) == (3, code)


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        ("", 1, "bad-header"),
        ("flashbed-ops 3\n", 1, "bad-header"),
        (f"{HEADER}\nopen 0 a ro\nopen 0 b ro", 3, "slot-open"),
        (f"{HEADER}\nopen 0 a ro\nprepared", 3, "slot-open"),
        (f"{HEADER}\nmark\nmark", 3, "repeated"),
        (f"{HEADER}\nprepared\nprepared", 3, "repeated"),
        (f"{HEADER}\nmark\nprepared", 3, "repeated"),
    ],
)
def test_a_file_has_to_be_closed(text: str, line: int, code: str) -> None:
    with pytest.raises(OperationError) as refused:
        parse(text)
    assert (refused.value.line, refused.value.code) == (line, code)


def test_canonical_text_is_read_as_the_same_operations() -> None:
    text = f"{HEADER}\n\n# a comment\nopen 3 d/a.b rw,create\nwrite 3 0 10 7 50\n"
    text += "sql_open x.db 1 fsync PRAGMA cache_size = 10\nsql x.db select  1"
    operations = parse(text)
    again = canonical(operations)
    lines = ["open 3 d/a.b rw,create", "write 3 0 10 7 50"]
    lines += ["sql_open x.db 1 fsync PRAGMA cache_size = 10", "sql x.db select  1"]
    assert again == "\n".join((HEADER, *lines, ""))
    assert parse(again) == operations
    assert [operation.line for operation in operations] == [4, 5, 6, 7]


def test_the_limits_themselves_are_allowed() -> None:
    lines = [
        "open 63 a ro,create,excl,trunc,append,sync,dsync,direct",
        "read 63 9223372035781033983 1073741824",
        "fadvise 63 0 0 noreuse",
        "erase 63 0 1073741824",
        "truncate 63 9223372036854775807",
        "write 63 0 1 9223372036854775807 100",
        "mkdir " + "a" * 255,
        "#" * 4096,
    ]
    assert len(parse("\n".join([HEADER, *lines]))) == 7
