"""The command that says what is installed, what is missing, and how to get it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Annotated

import typer

from flashbed.errors import InputError

__all__ = ["Check", "checks", "register"]


@dataclass(frozen=True)
class Check:
    """One thing that is there or not: what needs it, and how to get it."""

    name: str
    found: bool
    detail: str
    needed_for: str
    how: str


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "doctor",
        epilog="Examples: `flashbed doctor --format json` · `flashbed doctor --on ssh://root@board`",
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
    return Check(name, path is not None, detail, needed_for, how)


def _python() -> Check:
    version = sys.version.split()[0]
    return Check(
        "python", sys.version_info >= (3, 11), version, "everything", "Python 3.11 or later"
    )


def _simulator() -> Check:
    found = find_spec("flashbed._sim") is not None
    detail = "compiled" if found else "not compiled"
    return Check("simulator", found, detail, "target sim", "make build (needs Rust)")


def _guests() -> list[Check]:
    from flashbed.targets.emulator.doctor import check as emulator
    from flashbed.targets.uml.doctor import check as uml

    needs = [(finding, "target emulator") for finding in emulator()]
    needs += [(finding, "target uml") for finding in uml()]
    found: dict[str, Check] = {}
    for finding, needed in needs:
        before = found.get(finding.name)
        both = f"{before.needed_for}, {needed}" if before else needed
        found[finding.name] = Check(finding.name, finding.found, finding.detail, both, finding.how)
    return list(found.values())


def checks() -> list[Check]:
    """Everything that is looked for, in the order in which it is needed."""
    return [
        _python(),
        _simulator(),
        _program("cargo", "compiling the simulator", "install Rust 1.85 or later (rustup)"),
        *_guests(),
        _program("chromium", "tests of the report only", "apt-get install chromium"),
    ]


def doctor(
    output: Annotated[str, typer.Option("--format", metavar="text|json")] = "text",
    on: Annotated[
        str | None,
        typer.Option("--on", metavar="ssh://USER@HOST", help="Of a board instead."),
    ] = None,
) -> None:
    """Says what is installed, what is missing, what for, and how to get it.

    With --on, what a board has, and which of its partitions could be used (docs/boards.md).
    """
    if output not in ("text", "json"):
        raise InputError(f"--format {output}: text or json")
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
    from flashbed.targets.ssh.address import is_address, parse_address
    from flashbed.targets.ssh.facts import kernel_profile

    if not is_address(on):
        raise InputError(f"--on {on}: a board, ssh://USER@HOST; without --on it is this machine")
    facts = facts_of(parse_address(on))
    profile = kernel_profile(facts.kernel)
    if output == "json":
        print(json.dumps({**asdict(facts), "kernel_profile": profile}, indent=1))
        return
    for key, value in facts.facts.items():
        print(f"{key:10} {value}")
    print(f"{'profile':10} {f'--set kernel={profile}' if profile else 'none of so old a kernel'}")
    for key, why in {**facts.can, **facts.file_systems}.items():
        print(f"{'missing' if why else 'ok':8} {key}{f': {why}' if why else ''}")
    for there in facts.partitions.values():
        use = f"not used: {there.refused}" if there.refused else "--erase could be told of it"
        pages = (
            f"{there.page_bytes}+{there.oob_bytes} B pages, {there.block_bytes >> 10} KiB blocks"
        )
        size = f"{there.size_bytes >> 10:,} KiB"
        print(f"mtd{there.number}     {there.name}, {there.kind}, {size}, {pages}: {use}")
    if facts.mounted:
        flash = "no flash" if facts.mounted.mtd is None else f"mtd{facts.mounted.mtd}"
        print(f"{'directory':10} {facts.mounted.fs} on {flash}")
