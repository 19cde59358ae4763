"""The commands that price SQL: cost fit, cost predict, cost advise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flashbed.answers.lifetimes.given import endurance_of, rate_per_day
from flashbed.base.errors import InputError
from flashbed.base.files import output as written_to
from flashbed.base.paths import shown
from flashbed.cli.advise import Goal, Now, SetOrTry
from flashbed.cli.lifetime import Endurance
from flashbed.cli.options import OUT, Format, FsName, Jobs, OnBoard, chosen
from flashbed.cli.options import Out as Folder
from flashbed.cli.own_command import What
from flashbed.cli.progress import say

if TYPE_CHECKING:
    from flashbed.answers.advice.settings import Combination
    from flashbed.answers.costs.device_model import DeviceModel
    from flashbed.answers.costs.predict import Prediction
    from flashbed.answers.lifetimes.estimate import Estimate
    from flashbed.answers.lifetimes.subject import Subject
    from flashbed.api.advising import Question
    from flashbed.plan.database import Database

__all__ = ["register"]

_GOALS = ("time", "lifetime")
_ALL = 100_000
"""Combinations that the model may predict."""

Directories = Annotated[
    list[Path],
    typer.Argument(
        metavar="DIR...|EXPERIMENT",
        help="Results of runs with SQL requests; or an experiment, for a model of any chip.",
    ),
]
Out = Annotated[Path | None, typer.Option(*OUT, metavar="FILE", help="Save the model (JSON).")]
Pattern = Annotated[
    str | None, typer.Option("--pattern", metavar="WORD", help="Kind of request: insert, select, …")
]
Requests = Annotated[
    int | None, typer.Option("--requests", metavar="N", help="Requests a transaction.")
]
RequestBytes = Annotated[
    int | None, typer.Option("--request-bytes", metavar="N", help="Bytes of text in a record.")
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model saved by `cost fit`.")]
PageBytes = Annotated[
    int | None, typer.Option("--page-bytes", metavar="N", help="SQLite's page size. Default: 1024.")
]
DatabaseWord = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="WORD",
        help="The database's settings: page4096-cache500-wal (docs/guide/my-database.md).",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="AXIS=VALUE",
        help="Of fit: narrows the experiment. Of predict: picks a model, or sets a case.",
    ),
]
Rate = Annotated[
    str | None,
    typer.Option("--rate", metavar="N/UNIT", help="How often: 1/min, 10/h. Adds the lifetime."),
]


def register(app: typer.Typer) -> None:
    """Adds the commands to the program, also under their names before 0.1.0."""
    cost = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="markdown",
        help="Predicts time, flash operations and energy of SQL requests, without running them"
        " (docs/guide/predict.md).",
    )
    cost.command(
        "fit", epilog="Example: `flashbed cost fit results/models/sqlite --out model.json`"
    )(fit)
    cost.command(
        "predict",
        epilog="Examples: `flashbed cost predict model.json --pattern insert --requests 20000 "
        "--request-bytes 220 --fs ubifs` · `flashbed cost predict model.json --pattern update "
        "--requests 200 --request-bytes 150 --fs jffs2 --rate 1/min`",
    )(predict)
    cost.command(
        "advise",
        epilog="Example: `flashbed cost advise devices.json my.sql --now fs=ubifs --goal lifetime "
        "--set board=mine --set chip=W25N01GV,MT29F2G08ABAEA`",
    )(advise)
    app.add_typer(cost, name="cost")
    before = typer.Typer(no_args_is_help=True)

    @before.callback()
    def _group() -> None:
        """`cost fit` and `cost predict`, the names since 0.1.0."""

    before.command("sqlite")(fit)
    app.add_typer(before, name="model", hidden=True)
    app.command("predict", hidden=True)(predict)


def fit(directories: Directories, *, settings: Set = None, out: Out = None) -> None:
    """Fits the cost of an SQL request to runs: a price for each thing that takes time or flash.

    Prints the prices, and how well they explain the cases, held-out cases included. An experiment
    (models/devices) runs on the simulator, and becomes a model of any board and chip.
    """
    from flashbed.answers.costs.cost_fit import fit_runs
    from flashbed.answers.costs.device_text import devices_text
    from flashbed.answers.costs.model_text import model_text

    if len(directories) == 1 and not directories[0].is_dir():
        devices = _fit_devices(str(directories[0]), settings or [])
        print(devices_text(devices))
        saved = devices.model_dump_json(indent=1)
    elif settings:
        raise InputError("--set: narrows an experiment; results are what was run")
    else:
        fitted = fit_runs(directories)
        print(model_text(fitted))
        saved = fitted.model.model_dump_json(indent=1)
    if out is not None:
        with written_to(out) as new:
            new.write_text(saved + "\n", encoding="utf-8")
        say(f"model: wrote {shown(out)}")


def _fit_devices(name: str, settings: list[str]) -> DeviceModel:
    from flashbed.answers.costs.model import CostSource
    from flashbed.bench.calibration.counted_costs import fit_devices
    from flashbed.plan.experiment import load_experiment
    from flashbed.plan.narrowing import parse_settings
    from flashbed.plan.narrowing import plan as planned
    from flashbed.plan.patterns import SQLITE
    from flashbed.running.programs import programs_of
    from flashbed.running.runner import commit

    try:
        experiment = load_experiment(name)
    except InputError as why:
        if Path(name).exists():
            raise
        raise InputError(f"{name}: not the result of a run, and no experiment") from why
    if experiment.workload.kind != SQLITE:
        raise InputError(f"{experiment.id}: a device model is fitted to requests of SQL")
    cases = list(planned(experiment, parse_settings(settings)).cases)
    source = CostSource(
        experiment=experiment.id, experiment_sha256=experiment.sha256, commit=commit(),
        cases=len(cases),
    )  # fmt: skip
    return fit_devices(cases, programs_of(experiment, cases), source, _told)


def _told(line: str) -> None:
    say(f"flashbed: {line}")


def predict(
    model: ModelFile,
    what: What = None,
    *,
    pattern: Pattern = None,
    requests: Requests = None,
    request_bytes: RequestBytes = None,
    fs: FsName = None,
    page_bytes: PageBytes = None,
    database: DatabaseWord = None,
    settings: Set = None,
    rate: Rate = None,
    endurance: Endurance = None,
    output: Format = "text",
) -> None:
    """Predicts time, flash operations and energy of SQL requests; with --rate the lifetime.

    A model of any chip takes WHAT instead: an experiment with SQL, or a script of SQL.
    """
    from flashbed.answers.costs.cost_fit import word_of
    from flashbed.answers.costs.device_model import is_device_model
    from flashbed.answers.costs.model import load
    from flashbed.answers.costs.model_text import prediction_json, prediction_text
    from flashbed.answers.costs.predict import chosen as chosen_model
    from flashbed.answers.costs.predict import only_database
    from flashbed.answers.costs.predict import predict as apply
    from flashbed.answers.costs.terms import SqlLoad
    from flashbed.answers.lifetimes.estimate_text import as_json, text

    if endurance is not None and rate is None:
        raise InputError("--endurance: needs --rate")
    if is_device_model(model):
        if what is None:
            raise InputError("a model of any chip: what? An experiment, or a script of SQL (.sql)")
        if rate is not None:
            raise InputError("--rate: this model gives erases; `flashbed lifetime` years")
        _predict_device(model, what, chosen(settings, fs=fs), output)
        return
    if what is not None:
        raise InputError(f"{what}: the model is of --pattern, --requests and --request-bytes")
    if pattern is None or requests is None or request_bytes is None:
        raise InputError("--pattern, --requests and --request-bytes say what to predict")
    wanted = _settings(chosen(settings, fs=fs))
    known = load(model)
    settings_of_database = _database(page_bytes, database or only_database(known, pattern))
    of = chosen_model(known, pattern, wanted | {"database": word_of(settings_of_database)})
    sql_load = SqlLoad(
        pattern=pattern,
        requests=requests,
        request_bytes=request_bytes,
        page_bytes=settings_of_database.page_bytes,
        cache_pages=settings_of_database.cache_pages,
        records=settings_of_database.records,
        read_ahead_kib=of.setting.read_ahead_kib,
    )
    found = apply(of, sql_load)
    worn = None if rate is None else _worn(found, rate_per_day(rate), endurance)
    if output == "json":
        answer: dict[str, Any] = {"prediction": prediction_json(found)}
        if worn is not None:
            answer["lifetime"] = as_json(*worn)
        print(json.dumps(answer, indent=1))
        return
    print(prediction_text(found))
    if worn is not None:
        print(text(*worn))


def _predict_device(model: Path, what: str, settings: list[str], output: str) -> None:
    from flashbed.answers.costs.device_model import load_devices
    from flashbed.answers.costs.device_text import device_json, device_text
    from flashbed.api.advising import question_of
    from flashbed.api.cost_advising import predicted
    from flashbed.plan.experiment import load_experiment

    experiment = load_experiment(what)
    question = question_of(experiment, settings, [], goal="time", runs=1)
    case = question.planned(question.now).case
    found = predicted(load_devices(model), experiment, case)
    if output == "json":
        print(json.dumps(device_json(case.case_id, found), indent=1))
    else:
        print(device_text(case.case_id, found))


def advise(
    model: ModelFile,
    what: What = None,
    *,
    goal: Goal = "time",
    now: Now = None,
    settings: SetOrTry = None,
    board: OnBoard = None,
    out: Folder = None,
    jobs: Jobs = None,
    output: Format = "text",
) -> None:
    """Searches settings by a model of any chip, in milliseconds each, and checks the best by a run.

    The settings and words are those of `flashbed advise`, which runs every choice instead.
    """
    from flashbed.answers.costs.device_model import load_devices
    from flashbed.answers.costs.device_text import checked_lines
    from flashbed.api.advising import question_of
    from flashbed.api.cost_advising import ModelSearch
    from flashbed.cli.advice_text import CutChoices, advice_json, print_advice
    from flashbed.cli.show import RESULTS
    from flashbed.plan.experiment import load_experiment

    if what is None:
        raise InputError("cost advise: what? An experiment with SQL, or a script of SQL (.sql)")
    if goal not in _GOALS:
        raise InputError(f"--goal {goal}: the model predicts {' and '.join(_GOALS)}")
    experiment = load_experiment(what)
    question = question_of(
        experiment, chosen(settings, board=board), now or [], goal=goal, runs=_ALL
    )
    search = ModelSearch(question, load_devices(model))
    found = search.advice(search.best(_told), {}, _told)
    spent = search.spent
    _told(
        f"{spent.choices:,} configurations: SQLite took {spent.recording_s:.1f} s, the model"
        f" {spent.model_s:.1f} s, {1e3 * spent.model_s / spent.choices:.1f} ms each"
    )
    directory = out or RESULTS / "costs" / experiment.id
    simulated = _simulated(question, [found.advised, found.now], directory, jobs)
    none = CutChoices({}, {})
    if output == "json":
        answer = advice_json(found, [], none, directory)
        answer["checked"] = [
            {"set": dict(choice.sets), "predicted": found.rows[choice], "simulated": row}
            for choice, row in simulated.items()
        ]
        print(json.dumps(answer, indent=1))
        return
    print_advice(found, [], none, directory=directory, output=output)
    print("\nchecked by a run on the simulator:")
    for choice, row in simulated.items():
        for line in checked_lines(choice.label, found.rows[choice], row):
            print(f"  {line}")


def _simulated(
    question: Question, choices: Sequence[Combination], directory: Path, jobs: int | None
) -> dict[Combination, dict[str, Any]]:
    """The rows of choices that the simulator ran."""
    from flashbed.api.comparing import measured_cases
    from flashbed.cli.run import measure
    from flashbed.plan.planned import as_plan
    from flashbed.running.ways import Way

    cases = {choice: question.planned(choice) for choice in dict.fromkeys(choices)}
    measure(
        question.experiment, as_plan(list(cases.values())), targets=["sim"], out=directory,
        traces=(), way=Way(jobs),
    )  # fmt: skip
    names = [each.case.case_id for each in cases.values()]
    ran = measured_cases(directory, names, target="sim", ours=True)
    rows = {row["case_id"]: row for row in ran.to_dicts()}
    return {
        choice: rows[each.case.case_id]
        for choice, each in cases.items()
        if each.case.case_id in rows
    }


def _settings(texts: list[str]) -> dict[str, str]:
    wanted = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not value or "," in value:
            raise InputError(f"--set {text}: AXIS=VALUE, one value")
        if name in wanted:
            raise InputError(f"--set {text}: {name} is set twice")
        wanted[name] = value
    return wanted


def _database(page_bytes: int | None, word: str | None) -> Database:
    """The database's settings. Raises `InputError` for what SQLite does not have."""
    from flashbed.plan.database import PAPERS, Database

    parsed = PAPERS if word is None else Database.parse(word)
    if page_bytes is None:
        return parsed
    if word is not None and parsed.page_bytes not in (PAPERS.page_bytes, page_bytes):
        raise InputError(f"--page-bytes {page_bytes}: --database has {parsed.page_bytes}")
    return parsed.model_copy(update={"page_bytes": page_bytes})


def _worn(
    found: Prediction, rounds_per_day: float, endurance: int | None
) -> tuple[Subject, Estimate | None, int, str]:
    """The lifetime of the model's board. Raises `InputError` if its profile has changed."""
    from flashbed.answers.costs.model_text import name_of
    from flashbed.answers.costs.predict import subject_of
    from flashbed.answers.lifetimes.estimate import estimate
    from flashbed.stack.profiles import load_board

    board = load_board(found.model.setting.board)
    if board.sha256 != found.model.board_sha256:
        raise InputError(
            f"{shown(board.path)}: changed since the model was fitted; run and fit again, or"
            " predict without --rate"
        )
    subject = subject_of(found, name_of(found), rounds_per_day, board)
    cycles, source = endurance_of(subject, endurance)
    return subject, estimate(subject.observed, cycles), cycles, source
