"""Reports link to the playground: which cases have an address, and where the page is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flashbed.base import paths
from flashbed.base.errors import InputError
from flashbed.plan.case import Case
from flashbed.plan.experiment import SETTLE_NS, WorkloadTable
from flashbed.report.playground import ADDRESS, BESIDE, address, page_for
from flashbed.stack.changes import ChipChange, PartitionChange
from flashbed.stack.conditions import Faults, State

READS = WorkloadTable(
    kind="micro-read", request_bytes=4096, file_bytes=1 << 20, settle_ns=SETTLE_NS
)
GIT = paths.root() / "experiments/programs/git.parquet"


def case(**other: Any) -> Case:
    usual: dict[str, Any] = {
        "experiment": "a/b", "board": "emulated", "kernel": "6.1", "fs": "jffs2",
        "pattern": "sequential", "requests": 64, "read_ahead_kib": "default", "seed": 1,
        "pause_ns": 0, "advice": "none", "mount": "default", "file_bytes": 1 << 20,
        "request_bytes": 4096,
    }  # fmt: skip
    return Case(**usual | other)


def program(recording: Path) -> WorkloadTable:
    return WorkloadTable(kind="program", recording=str(recording), request_bytes=1,
                         settle_ns=SETTLE_NS)  # fmt: skip


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (case(), "program=micro-read&fs=jffs2&requests=64&fileKib=1024&order=sequential"),
        (case(requests=256, pattern="random", file_bytes=4 << 20), "program=micro-read&fs=jffs2"),
        (case(seed=7), "program=micro-read&fs=jffs2&requests=64&fileKib=1024&order=sequential"),
        (
            case(fs="ubifs", kernel="3.12", read_ahead_kib=0, mount="ubifs:bulk_read",
                 compressor="zlib", board="emulated-4k", partition=PartitionChange(blocks=200),
                 faults=Faults(bad_blocks=(50, 150)), state=State(worn=9),
                 chip=ChipChange(erase_array_ns=9, page_bytes=8192)),
            "program=micro-read&fs=ubifs&bulkRead=true&kernel=3.12&readAhead=0&compressor=zlib"
            "&board=emulated-4k&blocks=200&badBlocks=2&worn=9&requests=64&fileKib=1024"
            "&order=sequential&page_bytes=8192&erase_array_ns=9",
        ),
    ],
)  # fmt: skip
def test_an_address_names_what_is_not_usual(given: Case, written: str) -> None:
    assert address(given, READS) == written


@pytest.mark.parametrize(
    "other",
    [
        {"pattern": "random", "seed": 2}, {"pause_ns": 5}, {"advice": "random"},
        {"pattern": "backwards"}, {"file_bytes": 1000, "requests": 1, "request_bytes": 512},
        {"mount": "jffs2:all_slack_checks"}, {"state": State(valid=0.5)},
        {"state": State.model_validate({"worn": {"mean": 9, "spread": 2}})},
        {"faults": Faults(bad_blocks=(3,))}, {"faults": Faults(endurance_erases=5)},
        {"chip": ChipChange(blocks=900)}, {"partition": PartitionChange(first_block=8)},
        {"fs": "mtd"},
    ],
)  # fmt: skip
def test_what_the_page_cannot_express_has_no_address(other: dict[str, Any]) -> None:
    assert address(case(**other), READS) is None


def test_recordings_that_ship_have_an_address_and_others_none(tmp_path: Path) -> None:
    recorded = case(pattern="flat-out", file_bytes=0, request_bytes=1, requests=1)
    assert address(recorded, program(GIT)) == "program=git&think=false&fs=jffs2"
    assert address(recorded, program(tmp_path / "git.parquet")) is None
    layout = READS.model_copy(update={"kind": "read-layout"})
    assert address(case(), layout) is None
    assert address(case(), READS.model_copy(update={"settle_ns": 0})) is None


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A playground of another checkout."""
    page = tmp_path / "checkout/build/playground/index.html"
    page.parent.mkdir(parents=True)
    page.write_text("the page")
    monkeypatch.setenv("FLASHBED_ROOT", str(tmp_path / "checkout"))
    monkeypatch.delenv(ADDRESS, raising=False)
    return page


def test_the_page_stands_beside_the_report(built: Path, tmp_path: Path) -> None:
    out = tmp_path / "results/report.html"
    for _ in range(2):
        assert page_for(out) == BESIDE
    beside = out.with_name(BESIDE)
    assert beside.samefile(built), "takes no space where the file system has hard links"
    built.unlink()
    built.write_text("a newer one")
    page_for(out)
    assert beside.read_text() == "a newer one"
    built.unlink()
    assert page_for(out) is None


def test_a_file_system_without_hard_links_gets_a_copy(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refused)
    out = tmp_path / "results/report.html"
    assert page_for(out) == BESIDE
    assert out.with_name(BESIDE).read_text() == built.read_text()
    assert not out.with_name(BESIDE).samefile(built)


def test_links_lead_to_an_address_where_one_is_given(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert built.is_file()
    out = tmp_path / "results/report.html"
    monkeypatch.setenv(ADDRESS, "https://flash.example.org/try.html")
    assert page_for(out) == "https://flash.example.org/try.html"
    monkeypatch.setenv(ADDRESS, "")
    assert page_for(out) is None
    monkeypatch.setenv(ADDRESS, "javascript:alert(1)")
    with pytest.raises(InputError, match="FLASHBED_PLAYGROUND: 'javascript"):
        page_for(out)
    assert not out.with_name(BESIDE).exists()
