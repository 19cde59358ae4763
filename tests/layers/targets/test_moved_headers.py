"""Headers of the board's kernel that came from another checkout's cache.

The package's Makefile had the path where it was unpacked first. In a clone that took the cache over
no module could be built: "No such file or directory".
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from flashbed.targets.emulator.debian_kernel import KernelFiles, fetch_headers

KERNEL = KernelFiles(
    series="6.1", package="linux-image-6.1.0-50-armmp", version="6.1.176-1",
    image=Path("zImage"), modules=Path("modules"),
)  # fmt: skip


@pytest.mark.parametrize("folder", ["/check/elsewhere/build/cache/headers/usr/src", "/usr/src"])
def test_headers_find_what_they_share_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    source = tmp_path / "linux-headers-6.1.0-50-armmp_6.1.176-1" / "usr" / "src"
    makefile = source / "linux-headers-6.1.0-50-armmp" / "Makefile"
    makefile.parent.mkdir(parents=True)
    makefile.write_text(f"include {folder}/linux-headers-6.1.0-50-common/Makefile\n")
    for _ in range(2):
        tree = fetch_headers(tmp_path, KERNEL, print)
        assert tree.path == makefile.parent
        assert makefile.read_text() == "include ../linux-headers-6.1.0-50-common/Makefile\n"


def test_headers_of_7_3_have_their_output_beside_them_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    newer = replace(KERNEL, series="7.3", package="linux-image-7.3-armmp", version="7.3.4-1")
    source = tmp_path / "linux-headers-7.3-armmp_7.3.4-1" / "usr" / "src"
    makefile = source / "linux-headers-7.3-armmp" / "Makefile"
    makefile.parent.mkdir(parents=True)
    output = "KBUILD_OUTPUT=/usr/src/linux-headers-7.3-armmp\n"
    makefile.write_text(f"{output}include /usr/src/linux-headers-7.3-common/Makefile\n")
    fetch_headers(tmp_path, newer, print)
    beside = "KBUILD_OUTPUT=$(CURDIR)\ninclude ../linux-headers-7.3-common/Makefile\n"
    assert makefile.read_text() == beside
