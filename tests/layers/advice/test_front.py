"""The front and the steps of a search, on rows that are made up."""

from __future__ import annotations

import itertools
import random
from typing import Any

from flashbed.answers.advice.front import bases, combined, front, gain, helping, one_at_a_time
from flashbed.answers.advice.settings import Combination, Factor

MEASURES = ("time_ns", "page_writes")


def choice(**sets: str) -> Combination:
    return Combination(()).with_values(
        {key.replace("__", "."): value for key, value in sets.items()}
    )


def row(time_ns: int, page_writes: int, failed: int = 0) -> dict[str, Any]:
    return {"time_ns": time_ns, "page_writes": page_writes, "failed": failed}


def test_what_another_beats_in_one_measure_and_equals_in_the_rest_is_not_on_the_front() -> None:
    rows = {
        choice(fs="jffs2"): row(1000, 100),
        choice(fs="ubifs"): row(500, 200),
        choice(fs="yaffs2"): row(1000, 300),
        choice(fs="ubifs", compressor="lzo"): row(500, 250),
    }
    assert set(front(rows, MEASURES)) == {choice(fs="jffs2"), choice(fs="ubifs")}


def test_within_two_percent_the_choice_that_sets_less_stays() -> None:
    rows = {
        choice(fs="ubifs", compressor="lzo"): row(1000, 100),
        choice(fs="ubifs"): row(1015, 100),
    }
    assert front(rows, MEASURES) == [choice(fs="ubifs")]


def test_a_choice_in_which_calls_failed_is_on_no_front() -> None:
    rows = {choice(fs="jffs2"): row(1, 1, failed=1), choice(fs="ubifs"): row(9, 9)}
    assert front(rows, MEASURES) == [choice(fs="ubifs")]


def test_nothing_beats_a_front_and_a_front_beats_all_else() -> None:
    """By its definition alone, over drawn rows."""
    draw = random.Random(1)

    def beats(one: dict[str, Any], two: dict[str, Any]) -> bool:
        gains = [gain(one, two, measure) for measure in MEASURES]
        return max(gains) > 1 and all(
            gain(two, one, measure) == 1 or one[measure] < two[measure] for measure in MEASURES
        )

    for _ in range(200):
        rows = {
            choice(fs="ubifs", read_ahead_kib=str(at)): row(
                draw.choice((100, 150, 220, 330)), draw.choice((10, 20, 40))
            )
            for at in range(8)
        }
        found = front(rows, MEASURES)
        for one, two in itertools.permutations(found, 2):
            assert not beats(rows[one], rows[two])
        for other in set(rows) - set(found):
            equal = any(
                all(gain(rows[one], rows[other], name) == 1 for name in MEASURES) for one in found
            )
            assert equal or any(beats(rows[one], rows[other]) for one in found)


def test_another_file_system_begins_without_what_is_the_firsts_alone() -> None:
    now = choice(fs="ubifs", compressor="lzo", mount="ubifs:bulk_read", vm__dirty_ratio="5")
    assert bases(now, ["ubifs", "jffs2"]) == [now, choice(fs="jffs2", vm__dirty_ratio="5")]


def test_a_setting_is_tried_where_its_file_system_has_it() -> None:
    settings = [
        Factor(key="fs", values=("ubifs", "jffs2")),
        Factor(key="mount", values=("ubifs:bulk_read",), only=frozenset({"ubifs"})),
        Factor(key="read_ahead_kib", values=("0", "128")),
        Factor(key="vm.dirty_ratio", values=("5",), apart=True),
    ]
    tried = one_at_a_time(choice(fs="jffs2"), settings, apart=False)
    assert tried == [choice(fs="jffs2", read_ahead_kib=kib) for kib in ("0", "128")]
    weaker = one_at_a_time(choice(fs="jffs2"), settings, apart=True)
    assert weaker == [choice(fs="jffs2", vm__dirty_ratio="5")]


def test_only_what_helps_alone_is_combined_and_no_more_than_allowed() -> None:
    base = choice(fs="ubifs")
    rows = {
        base: row(1000, 100),
        choice(fs="ubifs", compressor="lzo"): row(900, 100),
        choice(fs="ubifs", compressor="none"): row(950, 100),
        choice(fs="ubifs", read_ahead_kib="0"): row(1200, 100),
        choice(fs="ubifs", read_ahead_kib="32"): row(1000, 90),
        choice(fs="jffs2", read_ahead_kib="32"): row(10, 10),
    }
    levels = helping(base, rows, MEASURES)
    assert levels == {"compressor": ["lzo", "none"], "read_ahead_kib": ["32"]}
    whole = combined(base, rows, levels, goal="time_ns", most=6)
    assert len(whole) == 6
    assert choice(fs="ubifs", compressor="lzo", read_ahead_kib="32") in whole
    few = combined(base, rows, levels, goal="time_ns", most=3)
    assert few == [base, *(choice(fs="ubifs", compressor=name) for name in ("lzo", "none"))]
    by_writes = combined(base, rows, levels, goal="page_writes", most=2)
    assert by_writes == [base, choice(fs="ubifs", read_ahead_kib="32")]


def test_of_bytes_left_more_is_better() -> None:
    full, roomy = {"left_bytes": 100, "failed": 0}, {"left_bytes": 200, "failed": 0}
    assert gain(roomy, full, "left_bytes") == 2.0
    rows = {choice(fs="ubifs"): full, choice(fs="jffs2"): roomy}
    assert front(rows, ["left_bytes"]) == [choice(fs="jffs2")]
