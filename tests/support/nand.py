"""A guest that tries kernel/flashbed_nand: the harness of tests/layers/kernel.

The guest is the kernel of `find_kernel` with tests/support/guest/nand_guest.c as process 1, which
obeys a script and writes a line of result for each of its lines; the host's folder is the guest's
/host. Time travel makes a guest's time its waits and nothing else, so times are compared to
arithmetic.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from flashbed.base.paths import cache_folder
from flashbed.targets.guest import yaffs2
from flashbed.targets.guest.initramfs import archive
from flashbed.targets.guest.module import BuildTree, ModuleNotBuilt
from flashbed.targets.uml.uml_kernel import cached_kernel
from tests.support import PROJECT, built_once

DEBUGFS = "/sys/kernel/debug/flashbed_nand"
CLOCK_NS = 256  # one reading of the guest's clock costs this, and is rounded down to it
FILE_SYSTEMS = ("jffs2", "ubifs")
UBIFS_BLOCK_BYTES = 16384  # it takes no smaller ones
ARGUMENTS = ("initrd=initramfs", "time-travel=inf-cpu", "time-travel-start=1577836800")
CONSOLE = ("con=null", "con0=fd:0,fd:1", "ssl=null")


def find_kernel() -> Path:
    """The tree of user-mode Linux (with `linux` in it) that tests with the marker `uml` have."""
    kernel = cached_kernel(cache_folder(), os.environ.get("FLASHBED_UML_SERIES", "6.1"))
    assert kernel, "conftest.py skips tests without one"
    return kernel.tree


@dataclass(frozen=True)
class Result:
    """What the guest says of one line of the script."""

    command: str
    error: int
    took_ns: int
    detail: str

    @property
    def lines(self) -> list[str]:
        """A text that was shown, by lines."""
        return [line for line in self.detail.split("|") if line]


@dataclass(frozen=True)
class Operation:
    """A record of the module's log."""

    start_ns: int
    duration_ns: int
    page: int
    column: int
    length: int
    kind: int
    flags: int
    task: str


READ, PROGRAM, ERASE = range(3)
FAILED, CORRECTED, BREACH = 1, 2, 4


@dataclass(frozen=True)
class Booted:
    """A boot that is over."""

    results: list[Result]
    console: str
    host: Path

    def operations(self, name: str = "log") -> list[Operation]:
        """The log that the script copied to /host/NAME."""
        data = (self.host / name).read_bytes()
        assert len(data) % 48 == 0
        found = []
        for row in struct.iter_unpack("<QQIIIBBH16s", data):
            start_ns, duration_ns, page, column, length, kind, flags, zero, task = row
            assert zero == 0
            name = task.split(b"\0")[0].decode()
            found.append(
                Operation(
                    start_ns=start_ns,
                    duration_ns=duration_ns,
                    page=page,
                    column=column,
                    length=length,
                    kind=kind,
                    flags=flags,
                    task=name,
                )
            )
        return found

    def module_lines(self) -> list[str]:
        """What the module printed."""
        return re.findall(r"flashbed_nand: ([^\r\n]*)", self.console)


Boot = Callable[..., Booted]
BOARD: Mapping[str, object] = {
    "page_bytes": 2048,
    "oob_bytes": 64,
    "pages_per_block": 64,
    "blocks": 128,
    "first_block": 0,
    "partition_blocks": 128,
    "read_array_ns": 25_000,
    "program_array_ns": 200_000,
    "erase_array_ns": 500_000,
    "bus_read_ns": 105_000,
    "bus_program_ns": 105_001,
    "transfer": "bytes",
    "column_change_ns": 700,
    "ecc": "hardware-page",
    "ecc_step_bytes": 512,
    "ecc_strength_bits": 4,
    "wait": "busy",
}
SOFTWARE: Mapping[str, object] = {"ecc": "software-subpage", "ecc_step_bytes": 256}
NONE: Mapping[str, object] = {"ecc": "none"}
HARDWARE: Mapping[str, object] = {}
ECCS = {"software": SOFTWARE, "hardware": HARDWARE, "none": NONE}


def load(*changes: Mapping[str, object], **more: object) -> str:
    """The line that loads the module, without parameters that are None."""
    given: dict[str, object] = dict(BOARD)
    for change in (*changes, more):
        given.update(change)
    words = [f"{key}={value}" for key, value in given.items() if value is not None]
    return " ".join(["load /modules.d/flashbed_nand.ko", *words])


def numbers(shown: Result) -> dict[str, int]:
    """`counts`."""
    return {line.split()[0]: int(line.split()[1]) for line in shown.lines}


SHOW_COUNTS = f"show {DEBUGFS}/counts"
SHOW_BREACHES = f"show {DEBUGFS}/breaches"
COPY_LOG = f"copy {DEBUGFS}/log /host/log"
SUM_CHIP = f"sum {DEBUGFS}/chip"


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, Path]:
    """The kernel, and the module and the guest's program built for it."""
    tree = find_kernel()
    return made_for(tree, "flashbed_nand", tmp_path_factory)


def made_for(
    tree: Path, name: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, bytes, Path]:
    """The same for a kernel's tree."""
    folder = built_once(tmp_path_factory, name, lambda folder: _build(tree, folder))
    modules = [folder / "module" / "flashbed_nand.ko", tree / "drivers/mtd/nand/raw/nandsim.ko"]
    image = archive((folder / "guest").read_bytes(), modules, {})
    return tree / "linux", image, folder


def _build(tree: Path, folder: Path) -> None:
    """Compiles the module, without a warning, and the guest's program."""
    shutil.copytree(PROJECT / "kernel" / "flashbed_nand", folder / "module")
    built = subprocess.run(
        ["make", "-C", str(tree), "ARCH=um", f"M={folder / 'module'}", "W=1", "modules"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert "warning" not in built.stderr.replace("modpost: suppressed", "")
    sources = [
        PROJECT / "tests" / "support" / "guest" / name for name in ("nand_guest.c", "tree.c")
    ]
    for room in ("base", "fs"):
        sources += sorted((PROJECT / "agent" / room).glob("*.c"))
    flags = ["-static", "-O2", "-s", "-Wall", "-Wextra", "-Werror", "-std=gnu11"]
    target = ["-target", "x86_64-linux-musl", "-mcpu=baseline", f"-I{PROJECT / 'agent'}"]
    compiled = subprocess.run(
        [sys.executable, "-m", "ziglang", "cc", *flags, *target, "-o", str(folder / "guest")]
        + [str(source) for source in sources],
        capture_output=True,
        text=True,
        check=False,
    )
    assert compiled.returncode == 0, compiled.stderr


@pytest.fixture
def boot(made: tuple[Path, bytes, Path], tmp_path: Path) -> Boot:
    """Boots a guest with a script and returns when it is off."""
    linux, image, _ = made
    return booting(linux, image, tmp_path)


@pytest.fixture
def boot_yaffs2(made: tuple[Path, bytes, Path], tmp_path: Path) -> Boot:
    """The same with the YAFFS2 that is loaded on `uml`, /modules.d/yaffs2.ko."""
    linux, _, folder = made
    tree = BuildTree(find_kernel(), "um")
    modules = [folder / "module" / "flashbed_nand.ko"]
    try:
        modules += yaffs2.modules_of("yaffs2", cache_folder(), tree, print)
    except ModuleNotBuilt as why:
        pytest.skip(str(why))
    return booting(linux, archive((folder / "guest").read_bytes(), modules, {}), tmp_path)


def booting(linux: Path, image: bytes, tmp_path: Path) -> Boot:
    """What boots a guest with a script and returns when it is off."""

    def run(
        *script: str | Sequence[str], memory: str = "256M", fail: bool = False, loud: bool = False
    ) -> Booted:
        """`fail`: lines of the script may fail; `loud`: warnings go to the console as well."""
        lines = [line for part in script for line in ([part] if isinstance(part, str) else part)]
        host = tmp_path / "host"
        host.mkdir(exist_ok=True)
        (host / "script").write_text("\n".join(lines) + "\n")
        (host / "result").unlink(missing_ok=True)
        level = "loglevel=8" if loud else "quiet"
        (tmp_path / "initramfs").write_bytes(image)
        with (tmp_path / "console").open("wb") as console:
            subprocess.run(
                [str(linux), f"mem={memory}", f"host={host}", level, *ARGUMENTS, *CONSOLE],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                cwd=tmp_path,
                env={**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
                timeout=300,
                check=False,
            )
        said = (tmp_path / "console").read_text(errors="replace")
        results = []
        for row in (host / "result").read_text().splitlines():
            _, command, error, took_ns, detail = row.split(" ", 4)
            results.append(Result(command, int(error), int(took_ns), detail))
        assert len(results) == len(lines), said
        assert "Call Trace" not in said or fail, said
        for line, result in zip(lines, results, strict=True):
            code = errno.errorcode.get(result.error, "")
            assert fail or not result.error, f"{line}: {code} {result.detail}\n{said}"
        return Booted(results, said, host)

    return run
