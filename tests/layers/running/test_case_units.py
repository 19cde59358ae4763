"""Units follow from the cases alone, and shares from units."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from flashbed.base.errors import InputError
from flashbed.plan.case import Case
from flashbed.plan.case_units import UNIT_CASES, Share, Together, portions, units
from flashbed.plan.experiment import load_experiment
from flashbed.plan.planned import Cases


@pytest.fixture
def cases(small: Path) -> Cases:
    return load_experiment("one").planned.cases


def flat(lists: Iterable[Iterable[Case]]) -> list[Case]:
    return [case for some in lists for case in some]


@pytest.mark.parametrize("together", ["preparation", "board", "everything"])
def test_every_case_is_in_one_unit(cases: Cases, together: Together) -> None:
    found = list(units(cases, together))
    assert sorted(case.case_id for case in flat(found)) == sorted(case.case_id for case in cases)
    for unit in found:
        assert together != "preparation" or len(unit) <= UNIT_CASES
        assert together == "everything" or len({case.board for case in unit}) == 1
        if together == "preparation":
            assert len({(case.fs, case.kernel) for case in unit}) == 1
    kinds = {"everything": 1, "board": len({case.board for case in cases})}
    assert len(found) == kinds.get(together, len(found))


@pytest.mark.parametrize("of", [1, 2, 3, 7, 100])
def test_every_unit_is_in_one_share(cases: Cases, of: int) -> None:
    every = list(units(cases, "preparation"))
    shares = [list(Share(number, of).units(every)) for number in range(1, of + 1)]
    own = [case.case_id for share in shares for case in flat(share)]
    assert sorted(own) == sorted(case.case_id for case in cases)
    sizes = [len(flat(share)) for share in shares]
    assert max(sizes) - min(sizes) <= max(map(len, every))


@pytest.mark.parametrize("by_program", [False, True])
def test_portions_are_whole_units(cases: Cases, by_program: bool) -> None:
    every = list(units(cases, "preparation"))
    names = sorted(case.case_id for case in cases)
    for size in (1, 10, 1000):
        found = list(portions(every, size, 2 * size, by_program=by_program))
        assert sorted(case.case_id for case in flat(found)) == names
        assert by_program or flat(found) == flat(every)
        assert all(len(some) <= max(2 * size, *map(len, every)) for some in found)


def test_a_portion_has_all_stacks_of_its_programs() -> None:
    cases = load_experiment("sqlite/requests").planned.on("sim")
    every = list(units(cases, "preparation"))

    def programs(some: Iterable[Case]) -> set[tuple[object, ...]]:
        return {
            (case.pattern, case.requests, case.request_bytes, str(case.database)) for case in some
        }

    each = [programs(portion) for portion in portions(every, 300, 600, by_program=True)]
    distinct = len(programs(cases))
    assert len(each) > 8
    assert sum(map(len, each)) < 1.1 * distinct
    apart = [programs(portion) for portion in portions(every, 300)]
    assert sum(map(len, apart)) > 1.5 * distinct


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "1/0", "a/b", "1/2/3", "+1/2", "1/10001"])
def test_a_share_is_two_numbers(text: str) -> None:
    with pytest.raises(InputError, match="not I/N with I from 1 to N"):
        Share.parse(text)
    assert Share.parse("2/4") == Share(2, 4)
