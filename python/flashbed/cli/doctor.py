"""The command `doctor`: lists what is installed, what is missing, and how to install it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.base.errors import InputError
from flashbed.base.paths import new_board_file, shown
from flashbed.cli.options import Format
from flashbed.cli.progress import say
from flashbed.cli.remarks import say_unlike
from flashbed.stack.bounds import MHZ_MAX
from flashbed.stack.names import escaped

if TYPE_CHECKING:
    from flashbed.stack.nearest_kernel import Nearest
    from flashbed.targets.ssh.board_profile import Like
    from flashbed.targets.ssh.facts import FoundBoard

__all__ = ["Check", "checks", "register", "write_profile"]


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
        epilog="Examples: `flashbed doctor --format json` · "
        "`flashbed doctor --profile mine --like emulated --mhz 528` · "
        "`flashbed doctor --on ssh://root@board` · "
        "`flashbed doctor --on ssh://root@board --profile mine --partition mtd5`",
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
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            help="Write a first boards/NAME.toml of --on's board; without: `flashbed board new`.",
        ),
    ] = None,
    partition: Annotated[
        str | None,
        typer.Option("--partition", metavar="mtdN", help="The partition to describe in it."),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            "--like", metavar="BOARD", help="Give it this board's prices of software, by --mhz."
        ),
    ] = None,
    mhz: Annotated[
        int | None,
        typer.Option("--mhz", metavar="N", help="The clock of the CPU that --like scales to."),
    ] = None,
) -> None:
    """Lists what is installed, what is missing, what needs it, and how to install it.

    With --on, lists what a board has and which of its partitions flashbed can use
    (docs/reference/boards-over-ssh.md).
    """
    known = _known_prices(profile, like, mhz)
    if on is not None:
        _board(on, output, name=profile, partition=partition, like=known)
        return
    if partition:
        raise InputError("--partition: needs a board; --on ssh://USER@HOST names one")
    if profile:
        from flashbed.targets.ssh.board_profile import blank_profile_text

        print(escaped(shown(write_profile(profile, blank_profile_text(profile, known)))))
        better = f"flashbed board new {profile} --chip CHIP --processor CORE@NMHz"
        say(f"flashbed: `{better}` does it with a chip of the catalogue")
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


def _known_prices(profile: str | None, like: str | None, mhz: int | None) -> Like | None:
    """Raises `InputError` unless `--like` and `--mhz` stand together, with `--profile`."""
    from flashbed.targets.ssh.board_profile import Like

    if like is None and mhz is None:
        return None
    if profile is None or like is None or mhz is None:
        raise InputError("--like BOARD, --mhz N: need each other and --profile NAME")
    if not 0 < mhz <= MHZ_MAX:
        raise InputError(f"--mhz {mhz}: a clock of 1 to {MHZ_MAX:,} MHz")
    return Like.of(like, mhz)


def _board(
    on: str, output: str, *, name: str | None, partition: str | None, like: Like | None
) -> None:
    from flashbed.cli.boards import facts_of
    from flashbed.stack.nearest_kernel import nearest
    from flashbed.stack.profiles import board_path
    from flashbed.targets.ssh.address import is_address, parse_address

    if not is_address(on):
        raise InputError(f"--on {on}: not a board, ssh://USER@HOST; omit --on for this machine")
    address = parse_address(on)
    if name is not None:
        board_path(name)  # refuses an impossible name before the board is connected to
    facts = facts_of(address)
    near = nearest(facts.kernel)
    if name is not None:
        print(escaped(shown(_begin_profile(name, facts, partition, like))))
        say_unlike([facts.kernel])
    elif output == "json":
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


def _begin_profile(name: str, facts: FoundBoard, partition: str | None, like: Like | None) -> Path:
    """Writes boards/NAME.toml, which must not exist yet."""
    from flashbed.targets.ssh.address import parse_partition
    from flashbed.targets.ssh.board_profile import profile_text

    if partition is None:
        known = ", ".join(f"mtd{number}" for number in facts.partitions) or "none"
        raise InputError(f"--profile {name}: --partition must name one of {known}")
    number = parse_partition(partition, f"--partition {partition}").number
    if number not in facts.partitions:
        raise InputError(f"--partition {partition}: the board has no such partition")
    return write_profile(name, profile_text(name, facts, facts.partitions[number], like))


def write_profile(name: str, text: str) -> Path:
    """Writes boards/NAME.toml, which must not exist yet."""
    from flashbed.stack.profiles import board_path

    path = board_path(name)
    if not path.exists():
        path = new_board_file(name)
    try:
        path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8") as out:
            out.write(text)
    except OSError as why:
        raise InputError(f"{shown(path)}: {why.strerror}") from None
    return path
