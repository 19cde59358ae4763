"""The commands on policies: list, new, check."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.base.errors import InputError, RunError
from flashbed.base.files import begin_file
from flashbed.base.human import aligned
from flashbed.base.paths import new_policy_file, policy_files, shown
from flashbed.cli.command_group import add_group
from flashbed.cli.options import Format
from flashbed.cli.progress import bar
from flashbed.stack.file_systems import FILE_SYSTEMS
from flashbed.stack.names import escaped
from flashbed.stack.policies import BASES, built_in, own_policies, policies_of

if TYPE_CHECKING:
    from flashbed.api.policy_check import Checked

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Adds the commands to the program."""
    add_group(
        app,
        "policy",
        about="Lists, begins and checks policies of your own for the simulator.",
        commands={
            "list": (list_, ""),
            "new": (new, "mine"),
            "check": (check, "mine.Greedy"),
        },
    )


def list_(output: Format = "text") -> None:
    """Lists what can decide in the kernel's place, for `--set policy.KEY=NAME`."""
    rows = list(_rows())
    keys = ("key", "name", "from", "what it does")
    if output == "json":
        names = ("decision", "name", "from", "does")
        print(json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=1))
        return
    for line in aligned([keys, *rows], left=len(keys)):
        print(escaped(line).rstrip())


def _rows() -> Iterator[tuple[str, str, str, str]]:
    own = own_policies()
    for decision in BASES:
        yield f"policy.{decision}", "kernel", "the kernel's profile", "Decides as that kernel does"
        for name, does in built_in(decision).items():
            yield f"policy.{decision}", name, "built in", does
        for name, kind in own.items():
            if kind.decision == decision:
                does = (kind.__doc__ or "").strip().partition("\n")[0].rstrip(".")
                file = shown(policy_files()[name.partition(".")[0]])
                yield f"policy.{decision}", name, file, does


class Kind(StrEnum):
    """What a new policy decides."""

    VICTIM = "victim"
    READ_AHEAD = "read_ahead"
    RECLAIM = "reclaim"


_BEGUN = {
    Kind.VICTIM: '''"""Policies of collection: `--set policy.victim={name}.Greedy`."""

from flashbed import Victim


class Greedy(Victim):
    """Takes the block with the least to move."""

    def choose(self, now_ns, why, blocks):
        dirty = [block for block in range(len(blocks)) if blocks.dirty_bytes[block] > 0]
        return min(dirty, key=lambda block: blocks.live_bytes[block], default=None)
''',
    Kind.READ_AHEAD: '''"""Policies of read-ahead: `--set policy.read_ahead={name}.Doubling`."""

from flashbed import ReadAhead, Window


class Doubling(ReadAhead):
    """Doubles its window while a file is read in order."""

    def on_miss(self, request):
        pages = request.wanted_pages
        if request.page == request.window_start + request.window_pages:
            pages = max(pages, 2 * request.window_pages)
        return Window(request.page, min(pages, request.max_pages))
''',
    Kind.RECLAIM: '''"""Policies of reclaim: `--set policy.reclaim={name}.CleanFirst`."""

from flashbed import Reclaim, Reclaimed


class CleanFirst(Reclaim):
    """Frees the oldest clean pages; dirty ones if there are none."""

    def choose(self, needed_pages, wanted_pages, pages):
        clean = [page for page, dirty in enumerate(pages.is_dirty) if not dirty]
        return Reclaimed((clean or range(len(pages)))[:wanted_pages])
''',
}
_BEGUN_CLASS = {Kind.VICTIM: "Greedy", Kind.READ_AHEAD: "Doubling", Kind.RECLAIM: "CleanFirst"}


def new(
    name: Annotated[str, typer.Argument(metavar="MODULE", help="Its file: policies/MODULE.py.")],
    kind: Annotated[Kind, typer.Option("--kind", help="What it decides.")] = Kind.VICTIM,
    *,
    rust: Annotated[
        bool, typer.Option("--rust", help="A folder with a Rust program that links the simulator.")
    ] = False,
) -> None:
    """Begins a file of policies in policies/ of the working folder, with one that works."""
    if not name.isidentifier():
        raise InputError(f"{name}: a module's name has letters, digits and _")
    if rust:
        from flashbed.api.rust_policy import begin

        begin(Path(name), kind)
        print(f"{name}/src/main.rs")
        print(f"next: cargo run --release --manifest-path {name}/Cargo.toml")
        return
    path = new_policy_file(name)
    begin_file(path, _BEGUN[kind].format(name=name))
    begun = _BEGUN_CLASS[kind]
    print(shown(path))
    print(f"next: flashbed policy check {name}.{begun}")
    print(f"      flashbed run EXPERIMENT --set policy.{kind}=kernel,{name}.{begun}")


def check(
    name: Annotated[
        str, typer.Argument(metavar="MODULE.CLASS", help="A policy of yours, or a built-in one.")
    ],
    output: Format = "text",
    *,
    cuts: Annotated[
        int, typer.Option("--cuts", min=0, max=10_000, help="Power cuts on each file system.")
    ] = 20,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Draws the programs.")] = 1,
) -> None:
    """Runs a policy on each file system: it answers, twice alike, and power cuts are recovered.

    Ends with 1 if something does not hold.
    """
    from flashbed.api.policy_check import checked

    policy = policies_of({_decision(name): name})[0]
    found = []
    with bar(f"checking {name}", "file systems") as progress:
        for each in checked(policy, cuts=cuts, seed=seed):
            found.append(each)
            progress(each.fs, len(found), len(FILE_SYSTEMS))
    if output == "json":
        print(json.dumps([asdict(each) for each in found], indent=1))
    else:
        _show(found)
    if any(each.wrong for each in found):
        raise RunError(f"{name}: does not hold what a policy must")


def _decision(name: str) -> str:
    """What a policy decides, by its name. Raises `InputError`."""
    if "." in name:
        kind = own_policies().get(name)
        if kind is not None:
            return kind.decision
    for decision in BASES:
        if name in built_in(decision):
            return decision
    there_are = ", ".join([*own_policies(), *(each for kind in BASES for each in built_in(kind))])
    raise InputError(f"{name}: no such policy; there are {there_are}")


def _show(found: list[Checked]) -> None:
    heads = (
        "fs", "decisions", "None", "page reads", "kernel's", "page writes", "kernel's", "erases",
        "kernel's", "power cuts",
    )  # fmt: skip
    rows: list[tuple[str, ...]] = [heads]
    for each in found:
        asked = (f"{each.decisions:,}", f"{each.none:,}") if each.decisions else ("-", "-")
        pairs = [
            f"{counts[key]:,}"
            for key in ("flash_reads", "flash_programs", "flash_erases")
            for counts in (each.counts, each.kernels)
        ]
        recovered = f"{each.recovered} of {each.cuts} recovered" if each.cuts else "none made"
        rows.append((each.fs, *asked, *pairs, recovered))
    for line in aligned(rows):
        print(escaped(line))
    for each in found:
        for wrong in each.wrong:
            print(escaped(f"{each.fs}: {wrong}"))
    if not any(each.wrong for each in found):
        print("two runs are equal on each file system")
