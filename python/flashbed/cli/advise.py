"""The command `advise`: what to set below a program, with the reason and the evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flashbed.answers.advice.limits import GOALS, parse_limits
from flashbed.answers.lifetimes.given import rate_per_day
from flashbed.base.errors import InputError
from flashbed.base.paths import shown
from flashbed.cli.laid_out import markdown_of, print_table
from flashbed.cli.lifetime import Endurance, Repeat, aged_cases, check_endurance, checked_boards
from flashbed.cli.options import Jobs, KernelName, OnBoard, Out, chosen, formats, known
from flashbed.cli.progress import bar, say
from flashbed.cli.remarks import warn
from flashbed.cli.run import measure, one_program
from flashbed.cli.show import RESULTS
from flashbed.plan.experiment import load_experiment
from flashbed.plan.planned import as_plan
from flashbed.stack.names import escaped

if TYPE_CHECKING:
    import polars as pl

    from flashbed.answers.advice.settings import Choice
    from flashbed.answers.advice.words import Durability
    from flashbed.api.advising import Advice, Question
    from flashbed.plan.planned import Plan

__all__ = ["register"]

_RECORD = "`flashbed record -o program.rec -- {}` records a program, and advise takes program.rec"
_FRONT_CONFIRMED = 8
"""Choices of the front that run on the kernel too, best first."""
_KEEP = ("durability",)
_CONFIRM = ("uml", "emulator", "none")
_UNCUT = "what changes what a power cut takes; no power was cut"


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "advise",
        context_settings={"allow_extra_args": True},  # to say how a program is given
        epilog="Examples: `flashbed advise programs/logger --goal lifetime --repeat 1/h` · "
        "`flashbed advise program.rec --now fs=jffs2 --goal latency --within 'p99_ms<=20'` · "
        "`flashbed advise program.rec --set fs=ubifs --set chip=W25N01GV --keep durability`",
    )(advise)


def advise(
    context: typer.Context,
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help="A recording, operations, or an experiment.")
    ],
    *,
    goal: Annotated[
        str,
        typer.Option(
            "--goal", metavar="|".join(GOALS), callback=known("--goal", [*GOALS]),
            help="What is best. Default: time.",
        ),
    ] = "time",
    within: Annotated[
        str | None,
        typer.Option("--within", metavar="LIMITS", help="Limits: `years>=10,p99_ms<=20`."),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep", metavar="|".join(_KEEP), callback=known("--keep", _KEEP),
            help="Try nothing that changes what a power cut takes.",
        ),
    ] = None,
    now: Annotated[
        list[str] | None,
        typer.Option("--now", metavar="KEY=VALUE", help="What the product has today."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE,...", help="Hold at a value; several: try these."
        ),
    ] = None,
    board: OnBoard = None,
    kernel: KernelName = None,
    repeat: Repeat = None,
    endurance: Endurance = None,
    confirm: Annotated[
        str,
        typer.Option(
            "--confirm", metavar="|".join(_CONFIRM), callback=known("--confirm", _CONFIRM),
            help="The real kernel that the best choices run on.",
        ),
    ] = "uml",
    cuts: Annotated[
        int, typer.Option("--cuts", metavar="N", min=0, help="Power cuts of each choice.")
    ] = 100,
    runs: Annotated[
        int, typer.Option("--runs", metavar="N", min=1, help="Combinations to run at most.")
    ] = 200,
    out: Out = None,
    jobs: Jobs = None,
    output: Annotated[str, formats("markdown", default="text")] = "text",
) -> None:  # fmt: skip
    """Searches what to set below a program, says what to take and why, and confirms it.

    All choices run on the simulator, the best ones on real kernel code, where power cuts say what
    each may lose. docs/guide/what-should-i-set.md is the guide, docs/models/advice.md the search.
    """
    from flashbed.api.advising import Search, question_of
    from flashbed.api.comparing import with_requests

    one_program("advise", [what, *context.args], _RECORD)
    check_endurance(endurance)
    rounds = None if repeat is None else rate_per_day(repeat)
    limits = parse_limits(within)
    if rounds is None and any(limit.measure == "years_low" for limit in limits):
        raise InputError("--within years: how often does it run? --repeat 1/h says once an hour")
    experiment = with_requests(load_experiment(what))
    question = question_of(
        experiment, chosen(settings, board=board, kernel=kernel), now or [], goal=goal,
        limits=tuple(limits), runs=runs, apart=keep is None,
    )  # fmt: skip
    directory = out or RESULTS / "advice" / experiment.id
    asked = _Asked(question, directory, jobs, rounds, endurance)
    first = as_plan([question.planned(question.now)])
    warn(first.doubts())
    if rounds is not None:
        checked_boards(first, endurance)
    search = Search(question, directory, asked.simulated, None if rounds is None else asked.years)
    for choice in search.first():
        say(f"flashbed: {choice.label}: {_in_short(search.rows[choice])}")

    def told(line: str) -> None:
        say(f"flashbed: {line}")

    best = search.best(told)
    lost = asked.cut(search.to_cut(best), confirm, cuts)
    found = search.advice(best, lost.found, told)
    lost = lost.with_more(asked.cut(search.not_cut(found, lost.found), confirm, cuts))
    several = [question.now, found.advised, *found.front[:_FRONT_CONFIRMED], *found.weaker]
    orders = asked.confirmed(list(dict.fromkeys([*several, *found.apart])), confirm)
    _print(found, orders, lost, directory=directory, output=output)


class _Asked:
    """Runs cases of a question, with progress on standard error."""

    def __init__(
        self, question: Question, directory: Path, jobs: int | None, rounds: float | None,
        endurance: int | None,
    ) -> None:  # fmt: skip
        self._question, self._directory, self._jobs = question, directory, jobs
        self._rounds, self._endurance = rounds, endurance

    def _run(self, planned: Plan, target: str, traces: Sequence[str] = ()) -> dict[str, str] | None:
        """Why cases of a target have no row; None if it cannot run here."""
        from flashbed.running.ways import Way

        outcomes, unavailable = measure(
            self._question.experiment, planned, targets=[target], out=self._directory,
            traces=traces, way=Way(self._jobs),
        )  # fmt: skip
        failed = {
            each.case_id: each.message
            for outcome in outcomes
            for each in (*outcome.failures, *outcome.not_measured)
        }
        return None if unavailable else failed

    def simulated(self, planned: Plan) -> dict[str, str]:
        """Runs cases on the simulator."""
        return self._run(planned, "sim") or {}

    def years(self, planned: Plan) -> dict[str, tuple[float | None, float | None]]:
        """How long the flash lasts with each case, as `lifetime` says it."""
        from flashbed.answers.lifetimes.given import endurance_of

        names = [each.case.case_id for each in planned]
        self._run(planned, "sim", traces=["wear"])
        subjects = aged_cases(
            self._question.experiment, planned, target="sim", directory=self._directory,
            rounds=self._rounds, names=names,
        )  # fmt: skip
        found = {}
        for subject in subjects:
            lasting = subject.lasting(endurance_of(subject, self._endurance)[0])
            found[subject.name] = (lasting.low, lasting.high) if lasting else (None, None)
        return found

    def confirmed(self, choices: Sequence[Choice], target: str) -> list[str]:
        """Whether a real kernel puts choices in the same order."""
        from flashbed.api.comparing import compared_run

        if target == "none":
            return []
        question = self._question
        planned = [question.planned(choice) for choice in choices]
        able = as_plan([each for each in planned if target in each.targets])
        if not able:
            return [f"not confirmed: none of these choices runs on {target}"]
        failed = self._run(able, target)
        if failed is None:
            return [f"not confirmed: {target} cannot run here; flashbed prepare --on {target}"]
        names = [each.case.case_id for each in able if each.case.case_id not in failed]
        compared = compared_run(self._directory, names, targets=["sim", target])
        said = [f"{name} on {target}: {why}" for name, why in failed.items()]
        if compared is None or not compared.orders:
            return [*said, f"not confirmed: nothing differs by 2 % on sim and {target}"]
        return [*said, *(f"{line} ({len(names)} choices)" for line in compared.orders)]

    def cut(self, choices: Sequence[Choice], target: str, cuts: int) -> _Cut:
        """What a power cut takes of each choice."""
        from flashbed.api.durability import cut
        from flashbed.targets.unavailable import Unavailable

        on = "sim" if target == "none" else "uml"
        question = self._question
        planned = {choice: question.planned(choice) for choice in choices if cuts}
        able = {choice: each for choice, each in planned.items() if on in each.targets}
        if not able:
            return _Cut({}, {})
        try:
            with bar(f"power cuts on {on}") as progress:
                judged = cut(
                    question.experiment, list(able.values()), on=on, samples=cuts,
                    directory=self._directory / "cuts", progress=progress,
                )  # fmt: skip
        except Unavailable as why:
            return _Cut({}, {f"{on}: {why}": None})
        found: dict[Choice, Durability] = {}
        failed: dict[str, None] = {}
        for choice, each in able.items():
            result = judged.get(each.case.case_id)
            if isinstance(result, str):
                failed[result] = None
            elif result is not None:
                found[choice] = result
        return _Cut(found, failed)


@dataclass(frozen=True)
class _Cut:
    """What power cuts found, and why some were not made, each reason once."""

    found: Mapping[Choice, Durability]
    failed: Mapping[str, None]

    def with_more(self, more: _Cut) -> _Cut:
        return _Cut({**self.found, **more.found}, {**self.failed, **more.failed})


def _in_short(row: Mapping[str, Any]) -> str:
    """A row in a few words, before the search is over."""
    from flashbed.base.human import count_text, time_text

    failed = f", {row['failed']:,} calls failed" if row["failed"] else ""
    time_ns = row["flash_time_ns"] if row["time_ns"] is None else row["time_ns"]
    return f"{time_text(time_ns)}, {count_text(row['page_writes'])} page writes{failed}"


def _print(
    found: Advice, orders: Sequence[str], lost: _Cut, *,
    directory: Path, output: str,
) -> None:  # fmt: skip
    if output == "json":
        print(json.dumps(_json(found, orders, lost, directory), indent=1))
        return
    from flashbed.answers.analysis.compared_choices import HEADS

    table = _table(found)
    sections = list(_sections(found, orders, lost))
    if output == "markdown":
        print(f"{escaped(_headline(found))}\n\n{markdown_of(table, HEADS)}")
        for title, lines in sections:
            print(f"\n**{title}**\n")
            print("\n".join(f"- {escaped(line)}" for line in lines))
        return
    print(escaped(_headline(found)))
    print_table(table, HEADS)
    for title, lines in sections:
        print(f"\n{title}:")
        print("\n".join(f"  {escaped(line)}" for line in lines))
    print(f"\n{escaped(shown(directory.absolute()))}")


def _headline(found: Advice) -> str:
    from flashbed.answers.advice.words import headline

    text = headline(found.advised, found.now, found.rows, found.measure)
    missed = [limit.text for limit in found.missed]
    return f"{text}; no choice keeps {', '.join(missed)}" if missed else text


def _table(found: Advice) -> pl.DataFrame:
    """The front, the best first, and now."""
    import polars as pl

    from flashbed.answers.advice.table import front_table
    from flashbed.answers.lifetimes.estimate_text import years_text

    rows = front_table(found.front, found.rows, found.advised, found.now)
    if "years_low" not in rows.columns:
        return rows
    words = [
        None if (low, high) == (None, None) else years_text(low, high)
        for low, high in rows.select("years_low", "years_high").rows()
    ]
    return rows.drop("years_low", "years_high").with_columns(pl.Series("years", words, pl.String))


def _sections(found: Advice, orders: Sequence[str], lost: _Cut) -> Iterator[tuple[str, list[str]]]:
    """Titles and lines below the table."""
    from flashbed.answers.advice.paste import pasted
    from flashbed.answers.advice.words import durability_lines, effects, weaker_lines

    base = found.base
    single = effects(found.alone, base, found.rows, calls=found.calls, measure=found.measure)
    if single:
        yield f"each setting alone, on {base.label}", single
    if found.weaker:
        yield (
            "better, but a power cut takes more than now",
            weaker_lines(
                found.weaker, found.advised, found.rows, lost.found, measure=found.measure
            ),
        )
    cut = durability_lines(
        lost.found, now=found.now, advised=found.advised, apart=found.apart, rows=found.rows,
        calls=found.calls, measure=found.measure,
    )  # fmt: skip
    if cut:
        most = max((each.cuts for each in lost.found.values()), default=0)
        yield f"what a power cut takes ({most:,} cuts each)" if most else _UNCUT, cut
    failed = [f"power was not cut: {why}" for why in lost.failed]
    if orders or failed:
        yield "confirmed by the kernel's own code", [*orders, *failed]
    lines = pasted(found.advised)
    yield "to set it", [f"{where}: {line}" for where, line in lines]
    if found.left_out:
        yield "left out", [f"{label}: {why}" for label, why in found.left_out.items()]


def _json(found: Advice, orders: Sequence[str], lost: _Cut, directory: Path) -> dict[str, Any]:
    from flashbed.answers.advice.paste import pasted

    def told(choice: Choice) -> dict[str, Any]:
        cut = lost.found.get(choice)
        words = None if cut is None else {**asdict(cut), "word": cut.word}
        return {"set": dict(choice.sets), **found.rows[choice], "power_cuts": words}

    return {
        "directory": str(directory),
        "goal": found.question.goal,
        "by": found.measure,
        "missed": [limit.text for limit in found.missed],
        "headline": _headline(found),
        "advised": told(found.advised),
        "now": told(found.now),
        "front": [told(choice) for choice in found.front],
        "alone": [told(choice) for choice in found.alone],
        "weaker": [told(choice) for choice in found.weaker],
        "apart": [told(choice) for choice in found.apart],
        "orders": list(orders),
        "to_set": [{"where": where, "line": line} for where, line in pasted(found.advised)],
        "left_out": dict(found.left_out),
    }
