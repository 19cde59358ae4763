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
    app.command("doctor", epilog="Example: `flashbed doctor --format json`")(doctor)


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
) -> None:
    """Says what is installed, what is missing, what for, and how to get it."""
    if output not in ("text", "json"):
        raise InputError(f"--format {output}: text or json")
    results = checks()
    if output == "json":
        print(json.dumps({"checks": [asdict(check) for check in results]}, indent=1))
        return
    for check in results:
        if check.found:
            print(f"ok       {check.name}: {check.detail}")
        else:
            print(f"missing  {check.name}: for {check.needed_for}; {check.how}")
