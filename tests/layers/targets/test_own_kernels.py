"""Kernels that the user added: kept, found by name, refused and removed."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from flashbed.base.errors import InputError
from flashbed.base.paths import kernel_file, kernel_files
from flashbed.stack.imported.begun_kernel import begun_kernel_text
from flashbed.stack.profiles import kernel_names, load_board, load_kernel
from flashbed.targets.guest import spi_drivers, yaffs2
from flashbed.targets.guest.debian import _for_releases
from flashbed.targets.guest.module import BuildTree, ModuleNotBuilt, OtherKernel
from flashbed.targets.uml.kernel_added import add_kernel
from flashbed.targets.uml.kernel_changes import CHANGES, apply_changes
from flashbed.targets.uml.own_kernels import OwnKernel, own_kernel, own_kernel_names, remove_kernel
from flashbed.targets.uml.programs_kernel import program_kernels
from flashbed.targets.uml.uml_kernel import (
    KERNELS,
    VARIANTS,
    cached_kernel,
    kernels,
    plain_recipe,
)
from flashbed.targets.unavailable import Unavailable

LISTS = """Types: deb
URIs: http://mirror/debian
Suites: bookworm bookworm-updates
Components: main

Types: deb
URIs: http://mirror/debian-security
Suites: bookworm-security
Components: main

Types: deb
URIs: http://elsewhere/
Suites: nodistro
Components: main
"""


def _say(_what: str) -> None:
    pass


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLASHBED_CACHE", str(tmp_path))
    return tmp_path


def _added(cache: Path, name: str) -> OwnKernel:
    """A kernel as `kernel add` keeps it, without what was built."""
    folder = cache / "kernels" / name
    build = folder / f"uml-{name}-0123"
    build.mkdir(parents=True)
    (build / "uml.json").write_text('{"series": "mine", "version": "6.1.9"}', encoding="utf-8")
    kernel = OwnKernel(
        name=name, release="6.1.9", source="/vendor/linux", sources_sha256="0", like="6.1",
        builds={"uml": build.name},
    )  # fmt: skip
    kernel.save(folder)
    text = begun_kernel_text(name, "6.1.9", "a test", facts={}, like=load_kernel("6.1"))
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return kernel


def test_a_kernel_that_was_added_is_found_by_its_name(cache: Path) -> None:
    added = _added(cache, "mine")
    assert own_kernel(cache, "mine") == added
    assert own_kernel_names(cache) == ["mine"]
    assert kernels(cache) == (*KERNELS, *VARIANTS, "mine")
    assert "mine" in kernel_names()
    assert load_kernel("mine").kernel.like == "6.1"
    built = cached_kernel(cache, "mine")
    assert built is not None
    assert built.tree == cache / "kernels" / "mine" / "uml-mine-0123"
    assert "mine" not in program_kernels(cache)


def test_a_kernel_that_was_removed_is_gone(cache: Path) -> None:
    _added(cache, "mine")
    remove_kernel(cache, "mine")
    assert own_kernel_names(cache) == []
    assert "mine" not in kernel_names()


def test_a_foreign_manifest_is_no_kernel(cache: Path) -> None:
    (cache / "kernels" / "odd").mkdir(parents=True)
    (cache / "kernels" / "odd" / "kernel.json").write_text("[1]", encoding="utf-8")
    assert own_kernel(cache, "odd") is None
    assert cached_kernel(cache, "odd") is None


@pytest.mark.parametrize(
    ("name", "source", "why"),
    [
        ("6.1", ".", "there is a kernel of this name"),
        ("../x", ".", "not a kernel's name"),
        ("mine", "nowhere", "no such folder or archive"),
        ("mine", ".", "its Makefile names no version"),
    ],
)
def test_what_is_no_kernel_is_refused(name: str, source: str, why: str, cache: Path) -> None:
    empty = cache / "empty"
    empty.mkdir()
    given = empty if source == "." else empty / source
    with pytest.raises(InputError, match=why):
        add_kernel(cache, name, given, config=None, programs=False, say=_say)
    assert own_kernel_names(cache) == []


def test_a_kernel_without_virtual_time_is_refused(cache: Path) -> None:
    tree = cache / "tree"
    (tree / "arch" / "um").mkdir(parents=True)
    (tree / "arch" / "um" / "Kconfig").write_text("config HZ\n", encoding="utf-8")
    (tree / "Makefile").write_text("VERSION = 4\nPATCHLEVEL = 19\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"Linux 4\.19 has no virtual time"):
        add_kernel(cache, "old", tree, config=None, programs=False, say=_say)


def test_an_archive_with_one_folder_is_unpacked_into_a_tree(cache: Path) -> None:
    tree = cache / "work" / "linux-4.19"
    (tree / "arch" / "um").mkdir(parents=True)
    (tree / "arch" / "um" / "Kconfig").write_text("config HZ\n", encoding="utf-8")
    (tree / "Makefile").write_text("VERSION = 4\nPATCHLEVEL = 19\n", encoding="utf-8")
    archive = cache / "linux.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(tree, arcname=tree.name)
    with pytest.raises(InputError, match=r"Linux 4\.19 has no virtual time"):
        add_kernel(cache, "old", archive, config=None, programs=False, say=_say)
    assert sorted(path.name for path in tree.iterdir()) == ["Makefile", "arch"]


def test_a_change_without_its_place_is_named_by_file(tmp_path: Path) -> None:
    """5.10 has no getrandom() of the host, so it needs no change; a vendor's may be another."""
    for name, before, _ in CHANGES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        with (tmp_path / name).open("a", encoding="utf-8") as file:
            file.write(f"{before}\n")
    (tmp_path / "arch/um/os-Linux/util.c").write_text("nothing\n", encoding="utf-8")
    (tmp_path / "arch/um/kernel/skas/syscall.c").write_text("IS_ERR_VALUE(x)\n", encoding="utf-8")
    (tmp_path / "drivers/spi/Kconfig").unlink()
    assert [str(one) for one in apply_changes(tmp_path, CHANGES)] == [
        "arch/um/kernel/skas/syscall.c: no if (IS_ERR_VALUE(ret) &&",
        "drivers/spi/Kconfig: no such file",
    ]
    assert "have_xstate_support = 0;" in (tmp_path / CHANGES[0][0]).read_text(encoding="utf-8")


def test_an_option_of_the_user_replaces_ours() -> None:
    options = plain_recipe(["# CONFIG_JFFS2_LZO is not set"]).options
    assert "CONFIG_JFFS2_LZO=y" not in options
    assert options[-1] == "# CONFIG_JFFS2_LZO is not set"
    assert plain_recipe().digest != plain_recipe(["CONFIG_JFFS2_ZLIB=y"]).digest


def test_yaffs2_is_refused_on_a_kernel_that_it_is_not_written_for(tmp_path: Path) -> None:
    (tmp_path / "include" / "config").mkdir(parents=True)
    release = tmp_path / "include" / "config" / "kernel.release"
    release.write_text("5.10.262\n", encoding="utf-8")
    with pytest.raises(OtherKernel, match=r"Linux 6\.1 to 6\.12, this is 5\.10\.262"):
        yaffs2.modules_of("yaffs2", tmp_path, BuildTree(tmp_path, "um"), _say)


def test_a_driver_that_is_not_built_is_no_failure_of_yaffs2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SPI-NAND driver's failure was told as `fs ubifs: ...` in YAFFS2's exception."""

    def offline(*_: object) -> None:
        raise Unavailable("Linux 6.1 could not be fetched")

    monkeypatch.setattr(spi_drivers, "fetched_source", offline)
    board, tree = (
        load_board("emulated").changed({"chip": {"part": "W25N01GV"}}),
        BuildTree(tmp_path, "arm"),
    )
    with pytest.raises(ModuleNotBuilt, match=r"^Linux 6\.1 could not be fetched$"):
        spi_drivers.modules_of(board, "6.1", cache=tmp_path, tree=tree, say=_say)


def test_a_profile_is_listed_if_it_can_be_read(cache: Path) -> None:
    """A folder of that name was listed, and then there was no such kernel."""
    _added(cache, "mine")
    (cache / "kernels" / "other" / "other.toml").mkdir(parents=True)
    assert kernel_file("mine") == kernel_files()["mine"]
    assert kernel_file("other").is_relative_to(cache) is ("other" in kernel_files()) is False


def test_the_lists_of_apt_become_those_of_all_releases() -> None:
    """5.10 is bullseye's kernel and 7.3 that of backports; a machine's lists name its own."""
    debian, security = _for_releases(LISTS, ".sources").strip().split("\n\n")
    assert "URIs: http://mirror/debian\n" in debian
    assert "Suites: bullseye bookworm trixie trixie-backports sid experimental" in debian
    assert "Suites: bullseye-security bookworm-security trixie-security" in security
    lines = _for_releases(
        "deb [signed-by=/k] http://m/d bookworm main\ndeb http://x a b\n", ".list"
    )
    assert lines.splitlines()[0] == "deb [signed-by=/k] http://m/d bullseye main"
    assert "http://x" not in lines
