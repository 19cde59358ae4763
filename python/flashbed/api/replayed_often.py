"""Runs programs again until their free space was used up, so that a lifetime is measured.

It adds cases to a folder of results: each program `n` times, and `2 n` times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from flashbed.answers.lifetimes.ageing import PASSES, STEPS_MAX, rounds_to_use_up, steps_of
from flashbed.answers.lifetimes.subject import Subject
from flashbed.plan.experiment import Experiment
from flashbed.plan.planned import Plan, Planned, as_plan
from flashbed.plan.workloads.rounds import TEXT_BYTES_MAX
from flashbed.results.plausible import TIME_MAX_NS
from flashbed.running.programs import programs_of

__all__ = ["aged_by"]


def aged_by(
    experiment: Experiment,
    planned: Sequence[Planned],
    *,
    target: str,
    run: Callable[[Plan], object],
    read: Callable[[], list[Subject]],
    say: Callable[[str], None],
) -> list[Subject]:
    """The cases that `read` finds, after `run` ran them until erases kept up with page writes.

    All cases together have a bound, so that an answer does not take hours. It ends all that still
    have to run, so that those that are compared ran alike; they say so (`Subject.unaged`).
    """
    by_name = {each.case.case_id: each for each in planned}
    subjects = read()
    kept = {one.name: one.rounds_before for one in subjects if one.rounds_before}
    if kept:  # they may be of another program with the same name: then they run again
        run(as_plan(_cases(by_name, kept)))
        subjects = read()
    why: dict[str, str] = {}
    left = float(STEPS_MAX.get(target, 0))
    for _ in range(PASSES):
        again: dict[str, int] = {}
        long = False
        for subject in subjects:
            rounds, work = rounds_to_use_up(subject), subject.workload
            if rounds is None or work is None or subject.unaged or subject.name in why:
                continue
            if 2 * rounds * (work.seconds or 0) * 1e9 > TIME_MAX_NS:
                why[subject.name] = f"{2 * rounds:,} runs are longer than 31 years"
                continue
            (program,) = programs_of(experiment, [by_name[subject.name].case])
            left -= steps_of(rounds, program.body.count("\n"), work.programs or 0)
            long |= 2 * rounds * len(program.body) > TEXT_BYTES_MAX
            again[subject.name] = rounds
        if long or left < 0:
            why |= {name: _too_long(rounds) for name, rounds in again.items()}
            break
        if not again:
            break
        for name, rounds in again.items():
            say(f"{name}: runs {2 * rounds:,} times, to use up free space and measure")
        run(as_plan(_cases(by_name, again)))
        subjects = read()
    return [replace(one, unaged=why.get(one.name, one.unaged)) for one in subjects]


def _cases(by_name: Mapping[str, Planned], again: Mapping[str, int]) -> list[Planned]:
    """Each case so many times, and twice as often."""
    return [
        Planned(replace(by_name[name].case, rounds=often), by_name[name].targets)
        for name, rounds in again.items()
        for often in (rounds, 2 * rounds)
    ]


def _too_long(rounds: int) -> str:
    return (
        f"{2 * rounds:,} runs are too many unasked; `flashbed run` with `--trace wear --set"
        f" rounds=1,{rounds},{2 * rounds}` and `flashbed lifetime` of its folder do it"
    )
