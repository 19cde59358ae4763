"""Writes today's numbers into the texts of experiments, as `flashbed verdicts --check` finds them.

    python -m tests.support.restated STUDY... [--results DIR]

Only `value = …` of a number changes. Whether the sentence around it still holds is for its author.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from flashbed.base.paths import experiment_file
from flashbed.plan.experiment import load_experiment
from flashbed.plan.study import load_study
from flashbed.report.judged import JudgedRun, judged_run
from flashbed.report.numbers import outdated_numbers

_SECTION = re.compile(r"^\[\[(figure|claim)(\.differs)?]]$")
_ID = re.compile(r'^id = "(.*)"$')
_VALUE = re.compile(r"value = -?[0-9_.]+")
_NUMBER = re.compile(r"^(?:numbers\.)?([a-z][a-z0-9_]*) = \{ value = (-?[0-9_.]+)")
_TABLE = re.compile(r"^\[(?:figure|claim)(?:\.differs)?\.numbers\.([a-z][a-z0-9_]*)]$")


def keys_of(lines: list[str]) -> Iterator[str | None]:
    """For each line the key of its number, as `numbers_of` names it; None for other lines.

    A number is a line, `NAME = { value = … }`, or a table of its own with a line `value = …`.
    """
    kind, identity, differs, name = "", "", 0, ""
    for line in lines:
        section, named, number = _SECTION.match(line), _ID.match(line), _NUMBER.match(line)
        table = _TABLE.match(line)
        if section:
            kind, differs = section.group(1), differs + 1 if section.group(2) else 0
        elif named and not differs:
            identity = named.group(1)
        if line.startswith("["):
            name = table.group(1) if table else ""
        part = f"differs.{differs}." if differs else ""
        own = number.group(1) if number else name if _VALUE.match(line) else ""
        yield f"{kind} {identity}: {part}numbers.{own}" if own else None


def restated(text: str, now: Mapping[str, str]) -> str:
    """An experiment's file with these values."""
    lines = text.split("\n")
    for place, key in enumerate(keys_of(lines)):
        value = None if key is None else now.get(key)
        if value is not None:
            lines[place] = _VALUE.sub(f"value = {value}", lines[place], count=1)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("studies", nargs="+", metavar="STUDY")
    parser.add_argument("--results", type=Path, default=Path("results"))
    given = parser.parse_args()
    runs: dict[str, JudgedRun] = {}
    for name in given.studies:
        study = load_study(name)
        for one in study.experiments if study else ():
            folder = given.results / name / one
            if (folder / "cases.parquet").is_file():
                runs[f"{name}/{one}"] = judged_run(folder, load_experiment(f"{name}/{one}"))
    found: dict[str, dict[str, str]] = {}
    for outdated in outdated_numbers(runs):
        experiment, _, key = outdated.where.partition(": ")
        print(f"{outdated.where}: {outdated.said} is now {outdated.now}")
        if outdated.now is not None:
            found.setdefault(experiment, {})[key] = outdated.now
    for experiment, now in found.items():
        file = experiment_file(experiment)
        file.write_text(restated(file.read_text(encoding="utf-8"), now), encoding="utf-8")


if __name__ == "__main__":
    main()
