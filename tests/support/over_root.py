"""Programs over a root that holds their files: those that ship, and random ones.

`python -m tests.support.over_root [NAME|CLASS:FIRST:END ...] [KEY=VALUE ...]` prints what each does
to the flash on user-mode Linux and in the simulator. The preparation of a program that ships is its
own calls as far as they succeed and change files; then it runs again. Random programs are those of
the fuzzer (`any:0:64`). Keys are the layout's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace

from flashbed.bench.fuzz.generator import generate
from flashbed.plan.stacks import one_stack
from flashbed.program.operations import HEADER_2
from flashbed.targets import load_target
from flashbed.targets.base import Program, RunOptions
from tests.support import PROJECT
from tests.support.overlay_prices import LAYER, PLAIN, on_layout

__all__ = ["COUNTS", "NAMES", "counted", "drawn", "over_root"]

CHANGES = {
    "mkdir", "open", "write", "close", "truncate", "unlink", "rmdir", "rename", "link", "symlink",
    "copy", "mmap", "store", "munmap",
}  # fmt: skip
OTHER = {"task", "mark"}
"""What is no measured operation."""
COUNTS = ("flash_reads", "flash_programs", "flash_erases", "flush_programs")
NAMES = sorted(path.stem for path in (PROJECT / "experiments" / "programs").glob("*.toml"))


def over_root(name: str, *settings: str) -> Program:
    """A program that ships, on the layer over what it left; `settings` are words of the layout."""
    (plain,) = on_layout(name, PLAIN)
    layout = "+".join((LAYER, "files=root", *settings))
    (layered,) = on_layout(name, layout)
    return replace(layered, case_id=f"{name} {layout}", prepare=first_run(plain))


def drawn(kind: str, seeds: Iterable[int], *settings: str) -> list[Program]:
    """Random programs that have files before they begin."""
    words = [f"layout={LAYER}", "layout.files=root", *(f"layout.{one}" for one in settings)]
    stack = one_stack(words)
    cases = [generate(kind, "ubifs", seed) for seed in seeds]
    made = [case.program(stack.board, stack.kernel) for case in cases if case.prepare]
    return [replace(each, stack=stack, record_flush=True) for each in made]


def first_run(program: Program) -> str:
    """The calls of a program that change files, as far as they succeed, as a preparation."""
    (batch,) = load_target("sim-chip").run([program], RunOptions())
    results = dict(batch.requests.select("seq", "result").iter_rows())
    lines = [HEADER_2]
    slots: dict[str, None] = {}
    calls = [line for line in program.body.splitlines()[1:] if line.split(" ", 1)[0] not in OTHER]
    for seq, line in enumerate(calls):
        word, *fields = line.split(" ")
        if word not in CHANGES or results[seq] < 0:
            continue
        lines.append(line)
        if word == "open":
            slots[fields[0]] = None
        elif word == "close":
            slots.pop(fields[0], None)
    lines += [f"close {slot}" for slot in slots]
    return "\n".join([*lines, "prepared\n"])


def counted(target: str, programs: list[Program]) -> dict[str, tuple[object, ...]]:
    """Case -> its flash operations, or why there are none."""
    found: dict[str, tuple[object, ...]] = {}
    for batch in load_target(target).run(programs, RunOptions()):
        found |= {failure.case_id: (failure.message,) for failure in batch.failures}
        if batch.cases.height:
            rows = batch.cases.select("case_id", *COUNTS).iter_rows()
            found |= {row[0]: row[1:] for row in rows}
    return found


def main(words: list[str]) -> None:
    """Prints both counts of each program."""
    settings = [word for word in words if "=" in word]
    programs = []
    for name in [word for word in words if "=" not in word] or NAMES:
        if ":" in name:
            kind, first, end = name.split(":")
            programs += drawn(kind, range(int(first), int(end)), *settings)
        else:
            programs.append(over_root(name, *settings))
    kernel, model = (counted(target, programs) for target in ("uml", "sim-chip"))
    for program in programs:
        real, ours = kernel[program.case_id], model[program.case_id]
        name = program.case_id.split(" ")[0]
        print(f"{'  ' if real == ours else '* '}{name:20} {real} {ours}")
    print(sum(kernel[each.case_id] == model[each.case_id] for each in programs), "equal")


if __name__ == "__main__":
    main(sys.argv[1:])
