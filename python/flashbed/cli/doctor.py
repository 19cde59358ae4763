"""The command `doctor`: lists what is installed, what is missing, and how to install it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.base.errors import InputError
from flashbed.cli.options import Format
from flashbed.cli.progress import say

if TYPE_CHECKING:
    from flashbed.stack.nearest_kernel import Nearest
    from flashbed.targets.ssh.facts import FoundBoard

__all__ = ["Check", "checks", "register"]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that is installed or missing: what needs it, and how to install it."""

    name: str
    found: bool
    detail: str
    needed_for: str
    how: str


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "doctor",
        epilog="Examples: `flashbed doctor` · `flashbed doctor --on ssh://root@board`",
    )(doctor)


def _first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return (done.stdout.splitlines() or [""])[0].strip()


def _program(name: str, needed_for: str, how: str) -> Check:
    path = shutil.which(name)
    detail = _first_line([path, "--version"]) or path if path else "not found"
    return Check(name=name, found=path is not None, detail=detail, needed_for=needed_for, how=how)


def _python() -> Check:
    version = sys.version.split()[0]
    return Check(
        name="python",
        found=sys.version_info >= (3, 11),
        detail=version,
        needed_for="everything",
        how="Python 3.11 or later",
    )


def _simulator() -> Check:
    found = find_spec("flashbed._sim") is not None
    detail = "compiled" if found else "not compiled"
    return Check(
        name="simulator",
        found=found,
        detail=detail,
        needed_for="target sim",
        how="make build (needs Rust)",
    )


def _guests() -> list[Check]:
    from flashbed.targets.emulator.emulator_requirements import check as emulator
    from flashbed.targets.uml.uml_requirements import check as uml

    needs = [(finding, "target emulator") for finding in emulator()]
    needs += [(finding, "target uml") for finding in uml()]
    found: dict[str, Check] = {}
    for finding, needed in needs:
        before = found.get(finding.name)
        both = f"{before.needed_for}, {needed}" if before else needed
        found[finding.name] = Check(
            name=finding.name,
            found=finding.found,
            detail=finding.detail,
            needed_for=both,
            how=finding.how,
        )
    return list(found.values())


def checks() -> list[Check]:
    """All checks, in the order in which a new user needs what they check."""
    return [
        _python(),
        _simulator(),
        _program("cargo", "compiling the simulator", "install Rust 1.85 or later (rustup)"),
        *_guests(),
        _program("chromium", "tests of the report only", "apt-get install chromium"),
    ]


def doctor(
    output: Format = "text",
    on: Annotated[
        str | None,
        typer.Option(
            "--on", metavar="ssh://USER@HOST", help="Check this board. Default: this machine."
        ),
    ] = None,
    *,
    profile: Annotated[str | None, typer.Option("--profile", hidden=True)] = None,
    partition: Annotated[str | None, typer.Option("--partition", hidden=True)] = None,
    like: Annotated[str | None, typer.Option("--like", hidden=True)] = None,
    mhz: Annotated[int | None, typer.Option("--mhz", hidden=True)] = None,
) -> None:
    """Lists what is installed, what is missing, what needs it, and how to install it.

    With --on, lists what a board has and which of its partitions flashbed can use
    (docs/reference/boards-over-ssh.md).
    """
    if profile is not None:
        from flashbed.cli.board_files import begin_blank

        say("flashbed: doctor --profile NAME is called board new NAME --blank now")
        begin_blank(profile, on=on, partition=partition, like=like, mhz=mhz)
        return
    for name, given in (("partition", partition), ("like", like), ("mhz", mhz)):
        if given is not None:
            raise InputError(f"--{name}: an option of `flashbed board new NAME --blank`")
    if on is not None:
        _board(on, output)
        return
    results = checks()
    if output == "json":
        print(json.dumps({"checks": [asdict(check) for check in results]}, indent=1))
        return
    for check in results:
        if check.found:
            print(f"ok       {check.name}: {check.detail}")
        else:
            print(f"missing  {check.name}: for {check.needed_for}; {check.how}")


def _board(on: str, output: str) -> None:
    from flashbed.cli.boards import facts_of
    from flashbed.stack.nearest_kernel import nearest
    from flashbed.targets.ssh.address import is_address, parse_address

    if not is_address(on):
        raise InputError(f"--on {on}: not a board, ssh://USER@HOST; omit --on for this machine")
    facts = facts_of(parse_address(on))
    near = nearest(facts.kernel)
    if output == "json":
        known = {
            "kernel_profile": near.before,
            "newer_kernel_profile": near.after,
            "kernel_warning": near.unlike,
        }
        print(json.dumps({**asdict(facts), **known}, indent=1))
    else:
        _show_board(facts, near)


def _show_board(facts: FoundBoard, near: Nearest) -> None:
    for key, value in facts.facts.items():
        print(f"{key:10}{value}")
    kernel = f"--set kernel={near.before}" if near.before else "none for a kernel as old as this"
    print(f"profile   {kernel}")
    if near.unlike:
        print(f"warning   {near.unlike}")
    for key, why in {**facts.can, **facts.file_systems}.items():
        print(f"{'missing' if why else 'ok':10}{key}{f': {why}' if why else ''}")
    for there in facts.partitions.values():
        use = f"not used: {there.refused}" if there.refused else f"--erase mtd{there.number}"
        pages = f"pages of {there.page_bytes} + {there.oob_bytes} bytes"
        size = f"{there.size_bytes >> 10:,} KiB in blocks of {there.block_bytes >> 10}"
        print(f"mtd{there.number:<7}{there.name}, {there.kind}, {size}, {pages}: {use}")
    if facts.mounted:
        flash = "no flash" if facts.mounted.mtd is None else f"mtd{facts.mounted.mtd}"
        print(f"mounted   {facts.mounted.fs} on {flash}")
