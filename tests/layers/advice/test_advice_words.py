"""Words of advice: what a cut takes, what a setting does, what is written into a product."""

from __future__ import annotations

from typing import Any

import pytest

from flashbed.answers.advice.limits import parse_limits
from flashbed.answers.advice.paste import pasted
from flashbed.answers.advice.settings import Combination, settings_of
from flashbed.answers.advice.words import Durability, effects, headline, weaker_lines
from flashbed.answers.analysis.compared_choices import MEASURES
from flashbed.base.errors import InputError
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import plan

UBIFS = Combination((("fs", "ubifs"),))
JFFS2 = Combination((("fs", "jffs2"),))


def row(**values: Any) -> dict[str, Any]:
    return dict.fromkeys(MEASURES) | {"failed": 0, "page_reads": 0} | values


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (Durability(cuts=100), "keeps all"),
        (Durability(cuts=100, lost_ns=2_000_000_000), "may lose the last 2.000 s"),
        (Durability(cuts=100, lost_transactions=1), "may lose the last commit"),
        (Durability(cuts=100, lost_transactions=20), "may lose the last 20 commits"),
        (Durability(cuts=100, damaging=3, lost_ns=9), "may damage (3 of 100 cuts)"),
        (Durability(cuts=9, not_recovered=2), "may damage (2 of 9 cuts)"),
    ],
)
def test_the_word_is_of_the_worst_that_was_found(found: Durability, word: str) -> None:
    assert found.word == word


def test_damage_is_more_than_loss_and_a_second_is_no_difference() -> None:
    whole, loses, damages = (
        Durability(cuts=1),
        Durability(cuts=1, lost_ns=1),
        Durability(cuts=1, damaging=1),
    )
    assert damages.takes_more_than(loses)
    assert loses.takes_more_than(whole)
    assert not loses.takes_more_than(damages)
    assert not whole.takes_more_than(whole)
    assert not Durability(cuts=1, lost_ns=900_000_000).takes_more_than(loses)
    assert Durability(cuts=1, lost_ns=30_000_000_000).takes_more_than(loses)
    assert Durability(cuts=1, lost_transactions=5).takes_more_than(
        Durability(cuts=1, lost_transactions=1)
    )


def test_settings_without_effect_share_a_line_that_says_why() -> None:
    tried = [UBIFS.with_values({"read_ahead_kib": kib}) for kib in ("0", "128")]
    slower = UBIFS.with_values({"compressor": "zlib"})
    base = row(time_ns=100, page_writes=50)
    rows = {UBIFS: base, slower: row(time_ns=200, page_writes=25), **dict.fromkeys(tried, base)}
    lines = effects([*tried, slower], UBIFS, rows, calls={"write": 5}, measure="time_ns")
    assert lines == [
        "compressor zlib: 2.00 times fewer page writes, but 2.00 times more time in calls",
        "read_ahead_kib 0; read_ahead_kib 128: no effect, the program reads no file",
    ]


def test_a_weaker_choice_is_named_with_what_a_cut_took_where_that_is_known() -> None:
    other = JFFS2.with_values({"compressor": "none"})
    rows = {UBIFS: row(time_ns=300), JFFS2: row(time_ns=100), other: row(time_ns=150)}
    found = {JFFS2: Durability(cuts=100, damaging=5)}
    assert weaker_lines([JFFS2, other], UBIFS, rows, found, measure="time_ns") == [
        "jffs2: 3.00 times less time in calls: may damage (5 of 100 cuts)",
        "jffs2, compressor none: 2.00 times less time in calls",
    ]


def test_the_headline_says_what_to_take_or_to_keep() -> None:
    rows = {UBIFS: row(time_ns=100), JFFS2: row(time_ns=300)}
    taken = headline(UBIFS, JFFS2, rows, "time_ns")
    assert taken.startswith("take ubifs: 3.00 times less time in calls than now (jffs2)")
    assert headline(UBIFS, UBIFS, rows, "time_ns").startswith("keep ubifs: ")


def test_a_choice_is_pasted_where_it_is_set() -> None:
    choice = UBIFS.with_values(
        {
            "compressor": "lzo",
            "mount": "ubifs:bulk_read",
            "read_ahead_kib": "128",
            "vm.dirty_expire_centisecs": "500",
            "database.journal": "wal",
        }
    )
    assert pasted(choice) == [
        ("/etc/fstab", "ubi0:VOLUME /data ubifs noatime,compr=lzo,bulk_read 0 0"),
        ("mkfs", "mkfs.ubifs -x lzo …"),
        ("at boot", "echo 128 > /sys/class/bdi/ubifs_0_0/read_ahead_kb"),
        ("SQLite", "PRAGMA journal_mode = wal;"),
        ("/etc/sysctl.d/flash.conf", "vm.dirty_expire_centisecs = 500"),
    ]


def test_the_size_of_a_page_stands_before_the_journal() -> None:
    """In WAL mode PRAGMA page_size changes nothing."""
    choice = UBIFS.with_values({"database.journal": "wal", "database.page_bytes": "1024"})
    lines = [line for where, line in pasted(choice) if where == "SQLite"]
    assert lines == ["PRAGMA page_size = 1024;", "PRAGMA journal_mode = wal;"]


def test_limits_know_their_units() -> None:
    years, p99 = parse_limits("years>=10, p99_ms<=20")
    assert p99.holds(row(p99_ns=20_000_000))
    assert not p99.holds(row(p99_ns=20_000_001))
    assert years.holds(row(years_low=10.0))
    assert years.holds(row()) is None


@pytest.mark.parametrize("text", ["years=10", "minutes<=3", "p99_ms<20", "p99_ms<=", ""])
def test_a_limit_that_is_none_is_refused_with_what_there_is(text: str) -> None:
    with pytest.raises(InputError, match=r"NAME<=NUMBER or NAME>=NUMBER of years"):
        parse_limits(text)


def test_settings_are_those_that_the_program_has_a_use_for() -> None:
    (config,) = plan(load_experiment("programs/config"), {"fs": ("ubifs",)})

    def keys(calls: set[str], *, database: bool = False) -> set[str]:
        found = settings_of(
            config.case, "program", calls, ["jffs2", "ubifs"], keeps_database=database,
            taken=["vm.dirty_writeback_centisecs"],
        )  # fmt: skip
        return {setting.key for setting in found}

    plain = {"fs", "compressor", "mount", "vm.dirty_expire_centisecs"}
    assert keys({"write"}) == plain
    assert keys({"write", "read", "fsync"}) == plain | {"read_ahead_kib", "sync_every_s"}
    assert keys({"write", "fsync"}, database=True) == plain


def test_of_sqlite_only_what_promises_less_stands_apart() -> None:
    settings = {
        "fs": ("ubifs",), "board": ("emulated",), "kernel": ("6.1",), "pattern": ("insert",),
        "requests": (100,), "request_bytes": (300,), "database": ("page4096",),
    }  # fmt: skip
    planned = plan(load_experiment("sqlite/requests"), settings)[0]
    found = settings_of(
        planned.case, "sqlite", {"write"}, ["ubifs"], keeps_database=False, taken=[]
    )
    of_sqlite = [each for each in found if each.key.startswith("database.")]
    weaker = {each.key: each.values for each in of_sqlite if each.apart}
    assert weaker == {
        "database.journal": ("memory", "off"), "database.synchronous": ("normal", "off"),
    }  # fmt: skip
    same = {each.key: each.values for each in of_sqlite if not each.apart}
    assert same["database.page_bytes"] == ("1024", "2048", "8192")
    assert same["database.journal"] == ("truncate", "persist", "wal")
