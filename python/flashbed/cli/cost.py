"""The commands that price SQL requests: cost fit, cost predict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flashbed.answers.lifetimes.given import endurance_of, rate_per_day
from flashbed.base.errors import InputError
from flashbed.base.files import output as written_to
from flashbed.base.paths import shown
from flashbed.cli.lifetime import Endurance
from flashbed.cli.options import OUT, Format, FsName, chosen
from flashbed.cli.progress import say

if TYPE_CHECKING:
    from flashbed.answers.costs.predict import Prediction
    from flashbed.answers.lifetimes.estimate import Estimate
    from flashbed.answers.lifetimes.subject import Subject
    from flashbed.plan.database import Database

__all__ = ["register"]

Directories = Annotated[
    list[Path], typer.Argument(metavar="DIR...", help="Results of runs with SQL requests.")
]
Out = Annotated[Path | None, typer.Option(*OUT, metavar="FILE", help="Save the model (JSON).")]
Pattern = Annotated[
    str, typer.Option("--pattern", metavar="WORD", help="Kind of request: insert, select, …")
]
Requests = Annotated[int, typer.Option("--requests", metavar="N", help="Requests a transaction.")]
RequestBytes = Annotated[
    int, typer.Option("--request-bytes", metavar="N", help="Bytes of text in a record.")
]
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
    typer.Option("--set", metavar="AXIS=VALUE", help="Picks a model if the file holds several."),
]
Repeat = Annotated[
    str | None,
    typer.Option("--repeat", metavar="N/UNIT", help="How often: 1/min, 10/h. Adds the lifetime."),
]


def register(app: typer.Typer) -> None:
    """Adds the commands to the program, also under their names before 0.1.0."""
    cost = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="markdown",
        help="Prices of SQL requests: fitted to runs, and applied (docs/guide/predict.md).",
    )
    cost.command(
        "fit", epilog="Example: `flashbed cost fit results/models/sqlite --out model.json`"
    )(fit)
    cost.command(
        "predict",
        epilog="Examples: `flashbed cost predict model.json --pattern insert --requests 20000 "
        "--request-bytes 220 --fs ubifs` · `flashbed cost predict model.json --pattern update "
        "--requests 200 --request-bytes 150 --fs jffs2 --repeat 1/min`",
    )(predict)
    app.add_typer(cost, name="cost")
    before = typer.Typer(no_args_is_help=True)

    @before.callback()
    def _group() -> None:
        """`cost fit` and `cost predict`, the names since 0.1.0."""

    before.command("sqlite")(fit)
    app.add_typer(before, name="model", hidden=True)
    app.command("predict", hidden=True)(predict)


def fit(directories: Directories, out: Out = None) -> None:
    """Fits the cost of an SQL request to runs: a price for each thing that takes time or flash.

    Prints the prices, and how well they explain the cases, held-out cases included.
    """
    from flashbed.answers.costs.cost_fit import fit_runs
    from flashbed.answers.costs.model_text import model_text

    fitted = fit_runs(directories)
    print(model_text(fitted))
    if out is not None:
        with written_to(out) as new:
            new.write_text(fitted.model.model_dump_json(indent=1) + "\n", encoding="utf-8")
        say(f"model: wrote {shown(out)}")


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model saved by `cost fit`.")],
    pattern: Pattern,
    *,
    requests: Requests,
    request_bytes: RequestBytes,
    fs: FsName = None,
    page_bytes: PageBytes = None,
    database: DatabaseWord = None,
    settings: Set = None,
    repeat: Repeat = None,
    endurance: Endurance = None,
    output: Format = "text",
) -> None:
    """Predicts time, flash operations and energy of SQL requests; with --repeat the lifetime."""
    from flashbed.answers.costs.cost_fit import word_of
    from flashbed.answers.costs.model import load
    from flashbed.answers.costs.model_text import prediction_json, prediction_text
    from flashbed.answers.costs.predict import chosen as chosen_model
    from flashbed.answers.costs.predict import only_database
    from flashbed.answers.costs.predict import predict as apply
    from flashbed.answers.costs.terms import SqlLoad
    from flashbed.answers.lifetimes.estimate_text import as_json, text

    if endurance is not None and repeat is None:
        raise InputError("--endurance: needs --repeat")
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
    worn = None if repeat is None else _worn(found, rate_per_day(repeat), endurance)
    if output == "json":
        answer: dict[str, Any] = {"prediction": prediction_json(found)}
        if worn is not None:
            answer["lifetime"] = as_json(*worn)
        print(json.dumps(answer, indent=1))
        return
    print(prediction_text(found))
    if worn is not None:
        print(text(*worn))


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
            " predict without --repeat"
        )
    subject = subject_of(found, name_of(found), rounds_per_day, board)
    cycles, source = endurance_of(subject, endurance)
    return subject, estimate(subject.observed, cycles), cycles, source
