"""`flashbed kernel` as a user meets it: listing, showing and removing; what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flashbed.base.errors import InputError
from flashbed.cli import kernels
from flashbed.cli.remarks import say_unlike
from flashbed.targets.uml.own_kernels import OwnKernel


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLASHBED_CACHE", str(tmp_path))
    folder = tmp_path / "kernels" / "slow-gc"
    folder.mkdir(parents=True)
    OwnKernel(
        name="slow-gc", release="6.1.192", source="/vendor/linux", sources_sha256="0", like="6.1",
        builds={"uml": "uml-slow-gc-0"}, lost_options=["CONFIG_UML_RTC=y"],
        not_applied={"uml": ["arch/um/kernel/time.c: no / TIMER_MULTIPLIER;"], "uml-programs": []},
        differing={"fs/jffs2/gc.c": ["jffs2_find_gc_block"], "fs/jffs2/super.c": ["jffs2_sync"]},
    ).save(folder)  # fmt: skip
    return tmp_path


def test_the_list_has_kernels_of_debian_and_of_the_user(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernels.list_("json")
    rows = json.loads(capsys.readouterr().out)
    of_debian = ["6.1", "6.12", "5.10", "7.3", "6.1-wbuf-verify", "6.1-no-summary"]
    assert [row["kernel"] for row in rows] == [*of_debian, "slow-gc"]
    assert rows[-1] == {
        "kernel": "slow-gc", "linux": "6.1.192", "runs": "experiments", "from": "/vendor/linux"
    }  # fmt: skip
    assert rows[0]["linux"] == "not built yet"


def test_a_kernel_that_differs_is_shown_with_what_differs(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernels.show("slow-gc")
    said = capsys.readouterr().out
    assert "begun as 6.1" in said
    assert "does not apply: arch/um/kernel/time.c: no / TIMER_MULTIPLIER;" in said
    assert "not for `flashbed exec`; add it with --exec" in said
    assert "this kernel does not have CONFIG_UML_RTC=y" in said
    assert "2 functions and constants of 2 modelled files are not those of Linux 6.1" in said
    assert "the simulator mirrors fs/jffs2/gc.c: jffs2_find_gc_block\n" in said


def test_a_removed_kernel_and_an_unknown_one_are_not_shown(cache: Path) -> None:
    kernels.remove("slow-gc")
    for name in ("slow-gc", "6.1", "../x"):
        with pytest.raises(InputError, match="no kernel that you added; there are none"):
            kernels.show(name)
    assert not (cache / "kernels" / "slow-gc").exists()


def test_a_board_whose_kernel_has_no_profile_is_warned_of_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say_unlike(["5.19.3", "5.19.3", "6.1.0-50-armmp"])
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith("flashbed: WARNING: Linux 5.19.3 has no profile of its own")
    assert "readahead.past_end_reads_last_page" in said[0]
