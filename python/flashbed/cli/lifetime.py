"""The command `lifetime`: years until a block reaches its endurance."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.answers.budgets.budget import product_file
from flashbed.answers.lifetimes.given import (
    UPDATE,
    duration_s,
    endurance_of,
    rate_per_day,
    with_rate,
)
from flashbed.base.errors import InputError
from flashbed.base.files import TEXT_BYTES_MAX, read_bytes
from flashbed.base.paths import shown
from flashbed.cli.lifetime_of_product import print_compared, product_mixes
from flashbed.cli.options import CaseId, Format, Out, Set
from flashbed.cli.progress import say
from flashbed.cli.remarks import say_doubts
from flashbed.cli.show import RESULTS
from flashbed.cli.worn_cases import checked_boards, on_target, table_name, worn_cases
from flashbed.plan.of_recording import is_operations
from flashbed.program.recording.recognised import is_recording

if TYPE_CHECKING:
    from flashbed.answers.lifetimes.mix import Mix
    from flashbed.answers.lifetimes.subject import Subject
    from flashbed.stack.profiles import Board

__all__ = ["Endurance", "Rate", "check_endurance", "register"]

Rate = Annotated[
    str | None,
    typer.Option(
        "--rate", metavar="N/UNIT", help="How often the program runs: 1/min, 10/h, 1/5min."
        " Without it there are no years, but for a program that sleeps most of its time.",
    ),
]  # fmt: skip
Endurance = Annotated[
    int | None,
    typer.Option("--endurance", metavar="N", help="Erases a block lasts. Default: the board's."),
]
BoardName = Annotated[
    str | None, typer.Option("--board", metavar="NAME", help="The board of a reading or table.")
]
Age = Annotated[
    str | None,
    typer.Option(
        "--age", metavar="TIME", help="Age of the counters, or of the reading --before: 3y."
    ),
]
Before = Annotated[
    Path | None, typer.Option("--before", metavar="FILE", help="An earlier reading of counters.")
]
On = Annotated[
    str | None, typer.Option("--on", metavar="TARGET", help="Where to run it. Default: sim.")
]


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "lifetime",
        epilog="Examples: `flashbed lifetime lifetime/overwrite --rate 1/h` · "
        "`flashbed lifetime day.rec@1/d update.rec@1/mo logger.rec@6/h` · "
        "`flashbed lifetime product.toml --set corner=typical,maximum` · "
        "`flashbed lifetime results/lifetime/overwrite --case ID --rate 1/min` · "
        "`flashbed lifetime wear.parquet --rate 1/min --board emulated` · "
        "`ubinfo /dev/ubi0 | ssh ... flashbed lifetime - --age 3y --endurance 100000` · "
        "`flashbed lifetime june.txt --before may.txt --age 30d --endurance 100000`",
    )(lifetime)


def lifetime(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="WHAT...",
            help="A product's file, an experiment, a recording, operations, a run's directory, a"
            " wear table (.parquet), or a board's erase counters: a file with the output of ubinfo,"
            " sysfs, the kernel, ubidumpec or `mmc extcsd read`; - reads standard input."
            " WHAT@N/UNIT says how often it runs; several share the flash. `update:VOLUME@N/UNIT`"
            " is the update of a layout's volume.",
        ),
    ],
    rate: Rate = None,
    *,
    endurance: Endurance = None,
    board: BoardName = None,
    age: Age = None,
    before: Before = None,
    case: CaseId = None,
    stack: Annotated[
        str | None, typer.Option("--stack", metavar="NAME", help="Only this stack of a product.")
    ] = None,
    settings: Set = None,
    on: On = None,
    out: Out = None,
    output: Format = "text",
) -> None:
    """Estimates how long the flash lasts: years until a block reaches its endurance."""
    from flashbed.stack.profiles import load_board

    check_endurance(endurance)
    product = product_file(what[0]) if len(what) == 1 else None
    if product is not None:
        _refuse_options(board=board, age=age, before=before, case=case, rate=rate)
        mixes = product_mixes(
            product, settings or [], chosen=stack, on=on, out=out, endurance=endurance
        )
        _print([(mix, *endurance_of(mix.parts[0], endurance)) for mix in mixes], output)
        return
    _refuse_options(stack=stack)
    named = _named(what)
    if len(named) > 1:
        _refuse_options(board=board, age=age, before=before, case=case, rate=rate)
        mixes = _mixed(named, settings or [], on=on, out=out, endurance=endurance)
        _print([(mix, *endurance_of(mix.parts[0], endurance)) for mix in mixes], output)
        return
    (name, own_rate) = named[0]
    if own_rate is not None and rate is not None:
        raise InputError(f"--rate {rate}: {name} has a rate of its own, {own_rate}")
    given = own_rate or rate
    rounds = None if given is None else rate_per_day(given)
    known = None if board is None else load_board(board)
    path = Path(name)
    counters = path.is_file() and path.suffix not in (".parquet", ".toml")
    if name == "-" or (counters and not is_recording(path) and not is_operations(path)):
        _refuse_options(rate=given, case=case, set=settings, on=on, out=out)
        reading = _text(None if name == "-" else path)
        of_chips = {"endurance": endurance, "board": board}
        if _print_disk(name, reading, age=age, before=before, output=output, **of_chips):
            return
        subjects = [_counters(name, reading, age=age, before=before, board=known)]
    else:
        _refuse_options(age=age, before=before)
        subjects = _worn(
            name, case, settings=settings or [], on=on, out=out, rounds=rounds, board=known,
            endurance=endurance,
        )  # fmt: skip
    _print([(subject, *endurance_of(subject, endurance)) for subject in subjects], output)


def check_endurance(endurance: int | None) -> None:
    """Raises `InputError` for what can be no number of erases."""
    if endurance is not None and not 0 < endurance < 2**31:
        raise InputError(f"--endurance {endurance}: not a number of erases")


def _named(what: Sequence[str]) -> list[tuple[str, str | None]]:
    """Programs and updates with their rates. Raises `InputError` for a file that is missing."""
    named = [_with_rate(word) for word in what]
    for name, _ in named:
        if name.startswith(UPDATE):
            _refuse_lone_update(named)
        elif Path(name).suffix not in ("", ".toml") and not Path(name).exists():
            raise InputError(f"{shown(Path(name))}: no such file")
    return named


def _with_rate(word: str) -> tuple[str, str | None]:
    """A program and the rate behind its `@`, unless that is part of a file's name."""
    return (word, None) if Path(word).exists() else with_rate(word)


def _print(judged: Sequence[tuple[Subject | Mix, int, str]], output: str) -> None:
    """Prints each subject or mix with its endurance and where that is from."""
    from flashbed.answers.lifetimes.estimate_text import as_json, row, text
    from flashbed.answers.lifetimes.mix import Mix

    mixes = [each for each in judged if isinstance(each[0], Mix)]
    if output == "json":
        found = [
            item.json(cycles, source)
            if isinstance(item, Mix)
            else as_json(item, item.lasting(cycles), cycles, source)
            for item, cycles, source in judged
        ]
        print(json.dumps({"lifetime": found}, indent=1))
    elif len(mixes) > 1:
        print_compared([(mix, cycles) for mix, cycles, _ in judged if isinstance(mix, Mix)])
    elif mixes or len(judged) == 1:
        for item, cycles, source in judged:
            if isinstance(item, Mix):
                print(item.text(cycles, source))
            else:
                print(text(item, item.lasting(cycles), cycles, source))
    else:
        cases = [(item, cycles) for item, cycles, _ in judged if not isinstance(item, Mix)]
        _list([row(item, item.lasting(cycles)) for item, cycles in cases])


def _mixed(
    named: Sequence[tuple[str, str | None]], settings: Sequence[str], *, on: str | None,
    out: Path | None, endurance: int | None,
) -> list[Mix]:  # fmt: skip
    """Programs with their rates, on each flash that all of them ran on. Raises `InputError`."""
    from flashbed.answers.lifetimes.mix import mixes_of
    from flashbed.api.product_runs import update_on

    programs: dict[str, list[Subject]] = {}
    updates = [each for each in named if each[0].startswith(UPDATE)]
    named = [each for each in named if each not in updates]
    rates = [None if rate is None else rate_per_day(rate) for _, rate in named]
    for (name, _), rounds in zip(named, rates, strict=True):
        path = Path(name)
        experiment = not path.is_file() or path.suffix == ".toml" or is_operations(path)
        if name == "-" or not (experiment or is_recording(path, named=True)):
            raise InputError(f"{name}: only experiments, recordings and runs can share a flash")
        if name in programs:
            raise InputError(f"{name}: is named twice; add up its rates")
        own = None if out is None or path.is_dir() else out / f"{len(programs) + 1}-{path.stem}"
        programs[name] = _worn(
            name,
            None,
            settings=settings,
            on=on,
            out=own,
            rounds=rounds,
            board=None,
            endurance=endurance,
        )
    flashes = next(iter(programs.values()))
    for name, rate in updates:
        if rate is None:
            raise InputError(f"{name}: says no rate; {name}@1/mo is once a month")
        programs[name] = [update_on(name, rate, subject) for subject in flashes]
    return mixes_of(programs)


def _refuse_lone_update(named: Sequence[tuple[str, str | None]]) -> None:
    """Raises `InputError` where only updates are named: no program says which flash that is."""
    if all(name.startswith(UPDATE) for name, _ in named):
        raise InputError(f"{named[0][0]}: a program of the product comes first, as logger.rec@6/h")


def _refuse_options(**options: object) -> None:
    """Raises `InputError` for options that do not apply to what was given."""
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name}: does not apply here (see flashbed lifetime --help)")


def _list(rows: list[list[str]]) -> None:
    heads = ["case", "target", "mean", "worst", "amplification", "lifetime"]
    widths = [max(len(line[n]) for line in [heads, *rows]) for n in range(len(heads))]
    for line in [heads, *rows]:
        cells = zip(line, widths, strict=True)
        print("  ".join(cell.ljust(width) for cell, width in cells).rstrip())
    print("mean, worst: erases per block and day; * with a warning: --case shows it")


def _worn(
    what: str, case: str | None, *, settings: Sequence[str], on: str | None, out: Path | None,
    rounds: float | None, board: Board | None, endurance: int | None,
) -> list[Subject]:  # fmt: skip
    """The worn cases: of an experiment that is run now, of an earlier run, or of a table."""
    from flashbed.answers.lifetimes.observed import cases_of, wear_table_of

    path = Path(what)
    if path.suffix == ".parquet" and not is_recording(path, named=True):
        _refuse_options(case=case, set=settings or None, on=on, out=out)
        if rounds is None:
            raise InputError(f"{shown(path)}: how often does it happen? Use --rate, as in 1/min")
        return wear_table_of(path, rounds, board)
    _refuse_options(board=board)
    if path.is_dir() and not is_recording(path):
        _refuse_options(out=out)
        named = _chosen_case_ids(path, case, settings)
        if rounds is None:
            _say_times(path, named)
        return cases_of(path, rounds, case_ids=named, target=None if on is None else table_name(on))
    return _run(what, case, settings=settings, on=on, out=out, rounds=rounds, endurance=endurance)


def _say_times(directory: Path, named: Sequence[str] | None) -> None:
    """Prints what the run that made a folder said of time, as far as its files are still there."""
    from flashbed.api.replays import time_notes
    from flashbed.plan.experiment import read_experiment
    from flashbed.results.run_directory import read_table

    file = directory / "experiment.toml"
    if not file.is_file():
        return
    experiment = read_experiment(file)
    recording = experiment.workload.recording
    if recording is not None and not is_recording(Path(recording), named=True):
        return
    names = read_table(directory, "cases")["case_id"].to_list() if named is None else named
    for note in time_notes(directory, experiment, experiment.planned, names):
        say(f"flashbed: {note}")


def _chosen_case_ids(
    directory: Path, case: str | None, settings: Sequence[str]
) -> list[str] | None:
    """The cases of a run that `--case` and `--set` choose; None for all."""
    import polars as pl

    from flashbed.plan.narrowing import parse_settings
    from flashbed.results.run_directory import read_table

    if case is None and not settings:
        return None
    there = read_table(directory, "cases")
    for axis, values in parse_settings(settings).items():
        if "." in axis:
            raise InputError(f"--set {axis}: an earlier run has it; --case chooses its cases")
        there = there.filter(pl.col(axis).cast(pl.String).is_in([str(value) for value in values]))
    chosen = [name for name in there["case_id"] if case in (None, name)]
    if not chosen:
        options = [f"--set {setting}" for setting in settings]
        options += [] if case is None else [f"--case {case}"]
        raise InputError(f"{' '.join(options)}: no such case in {shown(directory)}")
    return chosen


def _run(
    name: str, case: str | None, *, settings: Sequence[str], on: str | None, out: Path | None,
    rounds: float | None, endurance: int | None,
) -> list[Subject]:  # fmt: skip
    """Runs an experiment, or some of its cases, once and until free space was used, with wear."""
    from flashbed.plan.experiment import load_experiment
    from flashbed.plan.narrowing import parse_settings, plan

    experiment = load_experiment(name)
    planned = plan(experiment, parse_settings(settings))
    if case is not None:
        planned = planned.only(case)
        if not planned:
            raise InputError(f"--case {case}: no such case in {experiment.id}")
    directory = out or RESULTS / "lifetime" / experiment.id
    planned = on_target(experiment, planned, on)
    say_doubts(checked_boards(planned, endurance))
    return worn_cases(experiment, planned, on=on, directory=directory, rounds=rounds)


def _seconds(age: str | None) -> float:
    if age is None:
        raise InputError(
            "--age TIME: the age of the device, or of the reading --before, is missing"
        )
    return duration_s(age, "--age")


def _counters(
    what: str, reading: str, *, age: str | None, before: Path | None, board: Board | None
) -> Subject:
    from flashbed.answers.lifetimes.counters import parse_counters
    from flashbed.answers.lifetimes.observed import counters_of

    seconds = _seconds(age)
    name = _name_of(what)
    now = parse_counters(reading, name)
    earlier = None if before is None else parse_counters(_text(before), shown(before))
    return counters_of(now, earlier, seconds=seconds, name=name, board=board)


def _name_of(what: str) -> str:
    return "standard input" if what == "-" else shown(Path(what))


def _print_disk(
    what: str, reading: str, *, age: str | None, before: Path | None, output: str,
    **of_chips: object,
) -> bool:  # fmt: skip
    """Prints how long an eMMC lasts, by its EXT_CSD; says whether the reading is one."""
    from flashbed.answers.lifetimes.ext_csd import as_json, parse_ext_csd, text

    name = _name_of(what)
    now = parse_ext_csd(reading, name)
    if now is None:
        return False
    _refuse_options(**of_chips)
    earlier = None if before is None else parse_ext_csd(_text(before), shown(before))
    if before is not None and earlier is None:
        raise InputError(f"{shown(before)}: no EXT_CSD of an eMMC, as {name} is")
    years = now.years_left(_seconds(age), earlier)
    if output == "json":
        print(json.dumps({"lifetime": [as_json(name, now, years)]}, indent=1))
    else:
        print(text(name, now, years, since_before=before is not None))
    return True


def _text(path: Path | None) -> str:
    """Reads a file or standard input as text; bytes that are not text become one character."""
    standard_input = sys.stdin.buffer
    raw = read_bytes(path, TEXT_BYTES_MAX) if path else standard_input.read(TEXT_BYTES_MAX)
    return raw.decode("utf-8", "replace")
