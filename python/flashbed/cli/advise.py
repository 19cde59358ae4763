"""The command `advise`: what to set below a program, with the reason and the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.answers.advice.limits import GOALS, parse_limits
from flashbed.answers.lifetimes.given import rate_per_day
from flashbed.base.errors import InputError
from flashbed.cli.advice_text import CutChoices, in_short, print_advice
from flashbed.cli.lifetime import Endurance, Rate, check_endurance
from flashbed.cli.options import Jobs, KernelName, OnBoard, Out, chosen, formats, known
from flashbed.cli.own_command import AfterDashes, What, chosen_program
from flashbed.cli.progress import bar, say
from flashbed.cli.remarks import warn
from flashbed.cli.run import measure
from flashbed.cli.show import RESULTS
from flashbed.cli.worn_cases import aged_cases, checked_boards
from flashbed.plan.experiment import load_experiment
from flashbed.plan.planned import Plan, as_plan

if TYPE_CHECKING:
    from flashbed.answers.advice.settings import Combination
    from flashbed.answers.advice.words import Durability
    from flashbed.api.advising import Question

__all__ = ["register"]

_FRONT_CONFIRMED = 8
"""Choices of the front that run on the kernel too, best first."""
_KEEP = ("durability",)
_CONFIRM = ("uml", "emulator", "none")


Goal = Annotated[
    str,
    typer.Option(
        "--goal", metavar="|".join(GOALS), callback=known("--goal", [*GOALS]),
        help="What is best.",
    ),
]  # fmt: skip
Within = Annotated[
    str | None,
    typer.Option("--within", metavar="LIMITS", help="Limits: `years>=10,p99_ms<=20`."),
]
Keep = Annotated[
    str | None,
    typer.Option(
        "--keep", metavar="|".join(_KEEP), callback=known("--keep", _KEEP),
        help="Try nothing that changes what a power cut takes.",
    ),
]  # fmt: skip
Now = Annotated[
    list[str] | None,
    typer.Option("--now", metavar="KEY=VALUE", help="What the product has today."),
]
SetOrTry = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE,...", help="Hold at a value; several: try these."),
]
Confirm = Annotated[
    str,
    typer.Option(
        "--confirm", metavar="|".join(_CONFIRM), callback=known("--confirm", _CONFIRM),
        help="The real kernel that the best configurations run on.",
    ),
]  # fmt: skip
CutsEach = Annotated[
    int, typer.Option("--cuts", metavar="N", min=0, help="Power cuts of each configuration.")
]
Runs = Annotated[
    int, typer.Option("--runs", metavar="N", min=1, help="Combinations to run at most.")
]


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "advise",
        cls=AfterDashes,
        context_settings={"allow_extra_args": True},  # to say how a program is given
        epilog="Examples: `flashbed advise programs/logger --goal lifetime --rate 1/h` · "
        "`flashbed advise program.rec --now fs=jffs2 --goal latency --within 'p99_ms<=20'` · "
        "`flashbed advise program.rec --set fs=ubifs --set chip=W25N01GV --keep durability` · "
        "`flashbed advise --goal lifetime --rate 1/h -- ./my-program`",
    )(advise)


def advise(
    context: typer.Context,
    what: What = None,
    *,
    goal: Goal = "time",
    within: Within = None,
    keep: Keep = None,
    now: Now = None,
    settings: SetOrTry = None,
    board: OnBoard = None,
    kernel: KernelName = None,
    rate: Rate = None,
    endurance: Endurance = None,
    confirm: Confirm = "uml",
    cuts: CutsEach = 100,
    runs: Runs = 200,
    out: Out = None,
    jobs: Jobs = None,
    output: Annotated[str, formats("markdown")] = "text",
) -> None:  # fmt: skip
    """Searches what to set below a program, says what to take and why, and confirms it.

    All choices run on the simulator, the best ones on real kernel code, where power cuts say what
    each may lose. docs/guide/what-should-i-set.md is the guide, docs/models/advice.md the search.
    """
    from flashbed.api.advising import question_of
    from flashbed.api.comparing import with_requests

    check_endurance(endurance)
    rounds = None if rate is None else rate_per_day(rate)
    limits = parse_limits(within)
    if rounds is None and any(limit.measure == "years_low" for limit in limits):
        raise InputError("--within years: how often does it run? --rate 1/h says once an hour")
    experiment = with_requests(load_experiment(chosen_program(context, "advise", what)))
    question = question_of(
        experiment, chosen(settings, board=board, kernel=kernel), now or [], goal=goal,
        limits=tuple(limits), runs=runs, apart=keep is None,
    )  # fmt: skip
    asked = _Asked(
        question=question, directory=out or RESULTS / "advice" / experiment.id, jobs=jobs,
        rounds=rounds, endurance=endurance, target=confirm, cuts=cuts,
    )  # fmt: skip
    _answer(asked, output)


def _answer(asked: _Asked, output: str) -> None:
    """Runs the search, cuts, confirms and prints."""
    from flashbed.api.advising import Search

    question, rounds = asked.question, asked.rounds
    first = as_plan([question.planned(question.now)])
    warn(first.doubts())
    if rounds is not None:
        checked_boards(first, asked.endurance)
    search = Search(
        question, asked.directory, asked.simulated, None if rounds is None else asked.years
    )
    for choice in search.first():
        say(f"flashbed: {choice.label}: {in_short(search.rows[choice])}")
    best = search.best(_told)
    lost = asked.cut(search.to_cut(best))
    found = search.advice(best, lost.found, _told)
    lost = lost.with_more(asked.cut(search.not_cut(found, lost.found)))
    several = [question.now, found.advised, *found.front[:_FRONT_CONFIRMED], *found.weaker]
    orders = asked.confirmed(list(dict.fromkeys([*several, *found.apart])))
    print_advice(found, orders, lost, directory=asked.directory, output=output)


def _told(line: str) -> None:
    say(f"flashbed: {line}")


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """Runs cases of a question, with progress on standard error.

    `target` is the kernel that confirms, `cuts` the power cuts of a choice, `rounds` a day.
    """

    question: Question
    directory: Path
    jobs: int | None
    rounds: float | None
    endurance: int | None
    target: str
    cuts: int

    def _run(self, planned: Plan, target: str, traces: Sequence[str] = ()) -> dict[str, str] | None:
        """Why cases of a target have no row; None if it cannot run here."""
        from flashbed.running.ways import Way

        outcomes, unavailable = measure(
            self.question.experiment, planned, targets=[target], out=self.directory,
            traces=traces, way=Way(self.jobs),
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
            self.question.experiment, planned, target="sim", directory=self.directory,
            rounds=self.rounds, names=names,
        )  # fmt: skip
        found = {}
        for subject in subjects:
            lasting = subject.lasting(endurance_of(subject, self.endurance)[0])
            found[subject.name] = (lasting.low, lasting.high) if lasting else (None, None)
        return found

    def confirmed(self, choices: Sequence[Combination]) -> list[str]:
        """Whether a real kernel puts choices in the same order."""
        from flashbed.api.comparing import compared_run

        target, question = self.target, self.question
        if target == "none":
            return []
        planned = [question.planned(choice) for choice in choices]
        able = as_plan([each for each in planned if target in each.targets])
        if not able:
            return [f"not confirmed: none of these configurations runs on {target}"]
        failed = self._run(able, target)
        if failed is None:
            return [f"not confirmed: {target} cannot run here; flashbed prepare --on {target}"]
        names = [each.case.case_id for each in able if each.case.case_id not in failed]
        compared = compared_run(self.directory, names, targets=["sim", target])
        said = [f"{name} on {target}: {why}" for name, why in failed.items()]
        if compared is None or not compared.orders:
            return [*said, f"not confirmed: nothing differs by 2 % on sim and {target}"]
        return [*said, *(f"{line} ({len(names)} configurations)" for line in compared.orders)]

    def cut(self, choices: Sequence[Combination]) -> CutChoices:
        """What a power cut takes of each choice."""
        from flashbed.api.durability import cut
        from flashbed.targets.unavailable import Unavailable

        on = "sim" if self.target == "none" else "uml"
        question = self.question
        planned = {choice: question.planned(choice) for choice in choices if self.cuts}
        able = {choice: each for choice, each in planned.items() if on in each.targets}
        if not able:
            return CutChoices({}, {})
        try:
            with bar(f"power cuts on {on}") as progress:
                judged = cut(
                    question.experiment, list(able.values()), on=on, samples=self.cuts,
                    directory=self.directory / "cuts", progress=progress,
                )  # fmt: skip
        except Unavailable as why:
            return CutChoices({}, {f"{on}: {why}": None})
        found: dict[Combination, Durability] = {}
        failed: dict[str, None] = {}
        for choice, each in able.items():
            result = judged.get(each.case.case_id)
            if isinstance(result, str):
                failed[result] = None
            elif result is not None:
                found[choice] = result
        return CutChoices(found, failed)
