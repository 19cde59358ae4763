"""Headers of the board's kernel that came from another checkout's cache.

The package's Makefile had the path where it was unpacked first. In a clone that took the cache over
no module could be built: "No such file or directory".
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from flashbed.targets.emulator.debian_kernel import KernelFiles, fetch_headers

KERNEL = KernelFiles("linux-image-6.1.0-50-armmp", "6.1.176-1", Path("zImage"), Path("modules"))


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
