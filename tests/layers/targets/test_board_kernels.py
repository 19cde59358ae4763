"""The emulated board's kernels: which package is one, what is kept, tools of a newer Debian."""

from __future__ import annotations

import lzma
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from flashbed.base.errors import InputError
from flashbed.cli import prepare
from flashbed.stack.profiles import load_kernel
from flashbed.targets.emulator import debian_kernel, kernel_tools
from flashbed.targets.guest import initramfs
from flashbed.targets.uml import uml_kernel
from flashbed.targets.unavailable import Unavailable

NAMES = (
    "linux-image-6.1.0-9-armmp", "linux-image-6.1.0-50-armmp", "linux-image-6.1.0-50-rt-armmp",
    "linux-image-6.1.0-50-armmp-dbg", "linux-image-6.12.107+deb13-armmp",
    "linux-image-6.12.117+deb13-armmp", "linux-image-7.3-armmp", "linux-image-7.3-armmp-unsigned",
)  # fmt: skip
MODULE = b"\x7fELF a module"


class FakeApt:
    """Packages by name; each is a file whose name `unpacked` knows."""

    def __init__(self, _folder: Path, _architecture: str, *, releases: bool = False) -> None:
        self.known = NAMES if releases else NAMES[:3]

    def names(self, prefix: str) -> list[str]:
        return [name for name in self.known if name.startswith(prefix)]

    def depends(self, package: str) -> list[str]:
        release = package.removeprefix("linux-image-")
        parts = [f"linux-{part}-{release}" for part in ("base", "binary", "modules")]
        return ["linux-base", "dracut", *parts] if release == "7.3-armmp" else ["linux-base"]

    def download(self, package: str, folder: Path) -> tuple[Path, str]:
        (folder / package).touch()
        return folder / package, "7.3.4-1"


def unpacked(package: Path, folder: Path) -> None:
    modules = folder / "usr" / "lib" / "modules" / "7.3-armmp"
    files: Mapping[str, Mapping[Path, bytes]] = {
        "linux-image-7.3-armmp": {folder / "usr" / "share" / "doc": b""},
        "linux-base-7.3-armmp": {modules / "modules.builtin": b""},
        "linux-binary-7.3-armmp": {modules / "vmlinuz": b"image"},
        "linux-modules-7.3-armmp": {modules / "kernel" / "jffs2.ko.xz": lzma.compress(MODULE)},
    }
    for path, content in files[package.name].items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    if package.name == "linux-image-7.3-armmp":
        (folder / "usr" / "lib").mkdir(parents=True, exist_ok=True)
        (folder / "usr" / "lib" / "linux-image-7.3").symlink_to("modules")


@pytest.mark.parametrize(
    ("series", "name"),
    [("6.1", NAMES[1]), ("6.12", NAMES[5]), ("7.3", NAMES[6]), ("5.10", None)],
)
def test_the_newest_image_of_a_series_is_no_other_flavour(
    series: str, name: str | None, tmp_path: Path
) -> None:
    apt = FakeApt(tmp_path, "armhf", releases=True)
    assert debian_kernel._newest(apt, series) == name  # type: ignore[arg-type]


def test_an_image_in_parts_is_put_together_and_its_modules_are_as_a_boot_needs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian_kernel, "Apt", FakeApt)
    monkeypatch.setattr(debian_kernel, "unpack", unpacked)
    kernel = debian_kernel.fetch_kernel(tmp_path, "7.3", print)
    assert (kernel.series, kernel.version) == ("7.3", "7.3.4-1")
    assert kernel.image.read_bytes() == b"image"
    assert (kernel.modules / "kernel" / "jffs2.ko").read_bytes() == MODULE
    assert not list(kernel.modules.rglob("*.xz"))
    assert sorted(path.name for path in (kernel.modules.parents[1]).iterdir()) == ["modules"]
    assert debian_kernel.cached_kernel(tmp_path, "7.3") == kernel
    assert debian_kernel.cached_kernel(tmp_path) is None


def test_a_kernel_that_no_release_has_is_said_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian_kernel, "Apt", FakeApt)
    with pytest.raises(Unavailable, match=r"no linux-image-5.10 for armhf"):
        debian_kernel.fetch_kernel(tmp_path, "5.10", print)


def test_the_board_boots_what_user_mode_does_and_profiles_say_so() -> None:
    assert debian_kernel.KERNELS == uml_kernel.KERNELS
    assert all("emulator" in load_kernel(name).kernel.targets for name in debian_kernel.KERNELS)
    with pytest.raises(InputError, match=r"kernel 4.0: the emulated board has Linux 6.1, 6.12"):
        prepare.prepare("emulator-4.0")


def test_a_module_that_newer_kernels_have_built_in_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "modules.builtin").write_text("kernel/crypto/lzo.ko\n")
    assert initramfs.load_order(tmp_path, ["crc32c_generic", "lzo"]) == []


def loader_and_library() -> Sequence[Path]:
    said = subprocess.run(["ldd", "/bin/true"], capture_output=True, text=True, check=False).stdout
    paths = [Path(word) for word in said.split() if word.startswith("/")]
    return [path.resolve() for path in paths if "ld-linux" in path.name or "libc" in path.name]


def test_a_tool_of_a_newer_debian_runs_with_its_own_library_wherever_it_is_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    (tools / "scripts" / "basic").mkdir(parents=True)
    (tools / "scripts" / "Makefile").write_text("all:\n")
    shutil.copy("/bin/echo", tools / "scripts" / "basic" / "fixdep")

    def library(_package: Path, folder: Path) -> None:
        (folder / "lib").mkdir(parents=True)
        for path in loader_and_library():
            name = "libc.so.6" if "libc" in path.name else "ld-linux-x86-64.so.2"
            shutil.copy(path, folder / "lib" / name)

    if len(loader_and_library()) != 2:
        pytest.skip("this machine's C library is not where ldd says")
    monkeypatch.setattr(kernel_tools, "unpack", library)
    monkeypatch.setattr(kernel_tools, "_said", lambda _program: "`GLIBC_2.38' not found")
    apt: Any = FakeApt(tmp_path, "amd64")
    kernel_tools.made_runnable(tools, apt, tmp_path)
    tools.rename(tmp_path / "moved")
    program = tmp_path / "moved" / "scripts" / "basic" / "fixdep"
    assert program.read_text().startswith("#!/bin/sh\n")
    done = subprocess.run([program, "a b", "c"], capture_output=True, text=True, check=True)
    assert done.stdout == "a b c\n"


def test_tools_that_run_here_stay_as_they_are(tmp_path: Path) -> None:
    shutil.copy("/bin/echo", tmp_path / "fixdep")
    apt: Any = FakeApt(tmp_path, "amd64")
    kernel_tools.made_runnable(tmp_path, apt, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["fixdep"]
