"""A product's programs as cases, each in a folder of its own, and its updates beside them.

`flashbed check` and `flashbed lifetime` run them (docs/reference/product-file.md).
"""

from __future__ import annotations

import atexit
import hashlib
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flashbed.answers.analysis.compared_choices import label
from flashbed.answers.budgets.budget import BudgetProgram, BudgetStack, ProductBudget
from flashbed.answers.lifetimes.given import UPDATE, rate_per_day
from flashbed.answers.lifetimes.mix import Mix, mixes_of
from flashbed.answers.lifetimes.subject import Subject
from flashbed.answers.lifetimes.volume_update import image_bytes, update_of
from flashbed.api.recorded_command import record
from flashbed.base.errors import InputError, RunError
from flashbed.base.forks import remover
from flashbed.base.paths import sha256_of, shown
from flashbed.plan.case_profiles import Profiles
from flashbed.plan.experiment import Experiment, load_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.plan.planned import Plan
from flashbed.plan.workloads.space import leb_bytes
from flashbed.running.portion import code_sha256
from flashbed.targets.sim import SimTarget

__all__ = [
    "ProductRun",
    "choice_words",
    "digest_of",
    "mixes_with_updates",
    "product_runs",
    "update_on",
]

_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_PATHS_MAX = 10_000
_NAME_DIGITS = 12


def _name_of(budget: ProductBudget, program: BudgetProgram) -> str:
    """The file or experiment that a program is; a command is recorded here and now."""
    if program.command is None:
        return budget.what(program)
    folder = tempfile.mkdtemp(prefix="flashbed-check.")
    atexit.register(remover(folder))
    done = record(program.command, Path(folder) / f"{_slug(program.name)}.rec")
    if done.exit_status:
        raise RunError(f"{program.name}: {program.command[0]} exited with {done.exit_status}")
    return str(done.path)


@dataclass(frozen=True, kw_only=True)
class ProductRun:
    """A program on a stack: its cases, and the folder of its results."""

    stack: BudgetStack
    program: BudgetProgram
    experiment: Experiment
    planned: Plan
    directory: Path


def product_runs(
    budget: ProductBudget, *, settings: Sequence[str] = (), target: str, out: Path | None,
    usual: Path,
) -> Iterator[ProductRun]:  # fmt: skip
    """All programs on all stacks. Raises `InputError`, which names file and place.

    `settings` are those of `--set`, in the place of the file's. Results are kept in `out`, or in a
    folder of `usual`.
    """
    names = {program.name: _name_of(budget, program) for program in budget.program}
    above = out or usual / _slug(budget.title)
    for stack in budget.stack:
        for program in budget.program:
            where = f"{shown(budget.path)}: {stack.name}, {program.name}"
            try:
                experiment = load_experiment(names[program.name])
                chosen = budget.settings_of(stack, program, settings)
                planned = plan(experiment, parse_settings(chosen))
            except InputError as why:
                raise InputError(f"{where}: {str(why).replace('--set ', 'set ')}") from None
            if target not in planned.targets:
                named = "the simulator" if target == SimTarget.name else target
                raise InputError(f"{where}: none of its cases runs on {named}")
            _check_updates(budget, stack, planned)
            folder = above / _slug(stack.name) / _slug(program.name)
            yield ProductRun(
                stack=stack, program=program, experiment=experiment, planned=planned,
                directory=folder / _folder_name(experiment, planned),
            )  # fmt: skip


def _folder_name(experiment: Experiment, planned: Plan) -> str:
    """A name for the folder of results that changes with whatever the results depend on.

    Runs that aged a flash count for a lifetime if they are in its folder, so that those of another
    program or profile must be elsewhere.
    """
    found = hashlib.sha256(f"{code_sha256(SimTarget.name)} {digest_of(experiment)}".encode())
    cases = [each.case for each in planned]
    for case, stack in zip(cases, Profiles.of(cases).stacks(cases), strict=True):
        found.update(f" {case.case_id} {stack.sha256}".encode())
    return found.hexdigest()[:_NAME_DIGITS]


def _check_updates(budget: ProductBudget, stack: BudgetStack, planned: Plan) -> None:
    """Raises `InputError` for an update of a volume that a stack lacks, before anything runs."""
    for layout in {str(each.case.layout) for each in planned}:
        for each in budget.update:
            try:
                image_bytes(layout, each.volume)
            except InputError as why:
                said = str(why).replace("--set layout=NAME too", 'set = ["layout=NAME"]')
                raise InputError(f"{shown(budget.path)}: {stack.name}, {said}") from None


def mixes_with_updates(
    budget: ProductBudget, stack: BudgetStack, parts: Mapping[str, Sequence[Subject]]
) -> list[Mix]:
    """All programs of a product, and its updates, on each flash that they share on a stack."""
    flashes = next(iter(parts.values()))
    updates = {
        each.name: [update_on(each.name, each.rate, flash) for flash in flashes]
        for each in budget.update
    }
    try:
        mixes = mixes_of({**parts, **updates})
    except InputError as why:
        raise InputError(f"{shown(budget.path)}: {stack.name}: {why}") from None
    return [replace(mix, product=budget.title, stack=stack.name) for mix in mixes]


def choice_words(mixes: Sequence[Mix]) -> list[str]:
    """What tells each flash from the others: its stack's name, axes that differ on a stack."""
    stacks = {mix.stack for mix in mixes}
    values = {
        axis: [{str(mix.axes[axis]) for mix in mixes if mix.stack == stack} for stack in stacks]
        for axis in mixes[0].axes
    }
    axes = [axis for axis, found in values.items() if any(len(one) > 1 for one in found)]
    names = [mix.stack if len(stacks) > 1 else "" for mix in mixes]
    words = [label(mix.axes, axes) if axes else "" for mix in mixes]
    return [", ".join(filter(None, each)) for each in zip(names, words, strict=True)]


def update_on(name: str, rate: str, like: Subject) -> Subject:
    """The update of a volume, `update:VOLUME`, on the flash of a program. Raises `InputError`."""
    if like.board is None:
        raise InputError(f"{name}: on no known board")
    return update_of(
        name.removeprefix(UPDATE), like, leb_bytes=leb_bytes(like.board), rounds=rate_per_day(rate)
    )


def digest_of(experiment: Experiment) -> str:
    """A hash of what runs: a recording, operations, or an experiment."""
    work = experiment.workload
    if work.recording is not None:
        return _of_files(_files(Path(work.recording)))
    if work.operations is not None:
        return hashlib.sha256(work.operations.encode()).hexdigest()
    return experiment.sha256


def _files(path: Path) -> list[Path]:
    """A file, or the files of a folder."""
    return sorted(path.rglob("*"))[:_PATHS_MAX] if path.is_dir() else [path]


def _of_files(files: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for file in files:
        if file.is_file():
            found.update(sha256_of(file).encode())
    return found.hexdigest()


def _slug(name: str) -> str:
    return _ODD.sub("-", name).strip("-.") or "budget"
