"""The playground in headless Chromium: every number is the native simulator's, to the digit."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import polars as pl
import pytest

from flashbed.answers.energy.fold import energy_of
from flashbed.answers.lifetimes.estimate import Observed, dispersion, estimate
from flashbed.plan.case import Case
from flashbed.plan.experiment import SETTLE_NS
from flashbed.plan.workloads import operations
from flashbed.stack.changes import ChipChange, PartitionChange
from flashbed.stack.conditions import Faults, State
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Batch, Program, RunOptions
from flashbed.targets.sim import SimTarget
from tests.support.chromium import CHROMIUM, Browser

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "build/playground/index.html"
PROGRAMS = ROOT / "experiments/programs"
CAUSES = ("data", "metadata", "padding", "collection", "wear_levelling")
SAME = (
    "time_ns", "flash_time_ns", "elapsed_ns", "bytes", "bytes_written", "flash_reads",
    "flash_programs", "flash_erases", "cache_hits", "cache_misses", "cache_adds",
    "erase_count_max", "bad_blocks", "ecc_corrected", "ecc_failed",
)  # fmt: skip

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is missing: apt-get install chromium"),
    pytest.mark.skipif(not PAGE.is_file(), reason="make playground makes the page"),
]


@dataclass(frozen=True)
class Chosen:
    """What is chosen on the page, as the case of a workload has it."""

    fs: str
    program: str = "sqlite-wal"
    kernel: str = "6.1"
    board: str = "emulated"
    compressor: str = "default"
    window: int | None = None
    think: bool = True
    bulk: bool = False
    chip: tuple[tuple[str, int], ...] = ()
    blocks: int = 0
    bad: int = 0
    worn: int = 0
    requests: int = 256
    size: int = 4096
    file_kib: int = 4096
    order: str = "random"

    @property
    def address(self) -> str:
        words: dict[str, object] = {
            "program": self.program, "fs": self.fs, "kernel": self.kernel, "board": self.board,
            "compressor": self.compressor, "blocks": self.blocks, "badBlocks": self.bad,
            "worn": self.worn, "requests": self.requests, "requestBytes": self.size,
            "fileKib": self.file_kib, "order": self.order, "think": str(self.think).lower(),
            "bulkRead": str(self.bulk).lower(),
            "readAhead": -1 if self.window is None else self.window, **dict(self.chip),
        }  # fmt: skip
        return urlencode(words)

    @property
    def is_micro(self) -> bool:
        return self.program.startswith("micro-")

    def native_case(self) -> Case:
        """The same as the case of a run."""
        changed = PartitionChange(blocks=self.blocks) if self.blocks else PartitionChange()
        blocks = self.blocks or load_board(self.board).partition.blocks
        bad = tuple(int((index + 0.5) * blocks / self.bad) for index in range(self.bad))
        pattern = self.order if self.is_micro else "recorded" if self.think else "flat-out"
        return Case(
            experiment="playground", board=self.board, kernel=self.kernel, fs=self.fs,
            pattern=pattern, requests=self.requests if self.is_micro else 1,
            read_ahead_kib="default" if self.window is None else self.window, seed=1, pause_ns=0,
            advice="none", mount="ubifs:bulk_read" if self.bulk else "default",
            compressor=self.compressor, chip=ChipChange.model_validate(dict(self.chip)),
            partition=changed,
            state=State(worn=self.worn), faults=Faults(bad_blocks=bad),
            file_bytes=self.file_kib * 1024 if self.is_micro else 0,
            request_bytes=self.size if self.is_micro else 1,
        )  # fmt: skip

    def native(self) -> Program:
        """The same, made by the package as a run makes it."""
        case = self.native_case()
        given = None if self.is_micro else str(PROGRAMS / f"{self.program}.parquet")
        kind = self.program if self.is_micro else "program"
        prepare, body = operations(kind, case, SETTLE_NS, given)
        board = case.profile()
        return Program(
            case_id=case.case_id,
            stack=case.stack(board, load_kernel(self.kernel)),
            prepare=prepare,
            body=body,
            record_wear=True,
            record_flush=True,
        )


def changed(**keys: int) -> tuple[tuple[str, int], ...]:
    return tuple(keys.items())


SHIPPED = [
    Chosen(fs, path.stem)
    for path in sorted(PROGRAMS.glob("*.parquet"))
    for fs in ("jffs2", "yaffs2", "ubifs")
]
OTHERS = [
    Chosen("ubifs", "sqlite-delete", kernel="2.6.29"),
    Chosen("jffs2", "config", kernel="2.6.37-64bit"),
    Chosen("yaffs2", "postmark", kernel="3.12"),
    Chosen("ubifs", "config", kernel="6.12", window=512),
    Chosen("jffs2", "config", kernel="4.0", think=False),
    Chosen("ubifs", compressor="none"),
    Chosen("ubifs", compressor="zlib", think=False),
    Chosen("ubifs", "logger", compressor="zstd"),
    Chosen("jffs2", "unpack", compressor="none"),
    Chosen("jffs2", "logger", board="apf27", kernel="2.6.29"),
    Chosen("yaffs2", "postmark", board="omap3evm", kernel="2.6.37"),
    Chosen("ubifs", "git", board="emulated-4k", bulk=True),
    Chosen("ubifs", chip=changed(read_array_ns=60_000, program_array_ns=900_000), blocks=200),
    Chosen("jffs2", "logger", bad=8, worn=1000),
    Chosen("yaffs2", "update", blocks=128, bad=2),
    Chosen("ubifs", "git", board="emulated-4k",
           chip=changed(page_bytes=8192, oob_bytes=256, bus_read_ns=330_000)),
    Chosen("jffs2", "micro-read", window=0, order="sequential"),
    Chosen("jffs2", "micro-read", window=128, requests=1024, order="random"),
    Chosen("yaffs2", "micro-read", size=16384, requests=64),
    Chosen("ubifs", "micro-read", bulk=True, order="sequential", requests=1000),
    Chosen("jffs2", "micro-write", requests=2048, size=2048),
    Chosen("yaffs2", "micro-write", requests=4096, worn=100),
    Chosen("ubifs", "micro-write", requests=512, order="sequential"),
    Chosen("jffs2", "micro-read", board="omap3evm", kernel="2.6.37", window=0, requests=64),
    Chosen("jffs2", "logger", board="omap3evm", kernel="2.6.37"),
    Chosen("jffs2", "config", board="omap3evm", think=False,
           chip=changed(read_array_ns=60_000)),
]  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as browser:
        browser.open(f"{PAGE.as_uri()}#program=config&fs=ubifs")
        settled(browser)
        yield browser
        assert browser.wrong == []


def settled(browser: Browser, seconds: float = 300) -> None:
    """Waits until every answer is shown."""
    browser.until("window.playground && playground.state.settled", seconds)


def notice(browser: Browser) -> str:
    said: str = browser.run("notice.hidden ? '' : notice.textContent")
    return said


ANSWER = """JSON.stringify({
  counts: playground.state.shown.answer.counts, flush: playground.state.shown.answer.flush,
  unpriced: playground.state.shown.answer.unpriced,
  latency: Array.from(playground.state.shown.answer.columns.request_latency),
  flash: ['start', 'page', 'kind', 'task'].map(
    name => Array.from(playground.state.shown.answer.columns['flash_' + name])),
  erases: Array.from(playground.state.shown.answer.columns.wear_erases),
  tasks: playground.state.shown.answer.task_names,
  energies: Object.fromEntries(Object.entries(playground.state.shown.energies).map(
    ([name, nj]) => [name, nj === null ? null : String(nj)])),
  tiles: Object.fromEntries([...document.querySelectorAll('.tile')].map(
    tile => [tile.dataset.key, tile.dataset.value])),
})"""


def shown_at(browser: Browser, address: str) -> None:
    """Goes to an address of the page and waits for what it shows."""
    browser.run(
        "(hash => new Promise(done => {"
        "  if (location.hash === hash) return done();"
        "  addEventListener('hashchange', () => setTimeout(done), { once: true });"
        "  location.hash = hash;"
        f"}}))({json.dumps('#' + address)})"
    )
    settled(browser)


def chosen(browser: Browser, given: Chosen) -> dict[str, Any]:
    """What the page answers to its address."""
    shown_at(browser, given.address)
    assert notice(browser) == ""
    answer: dict[str, Any] = json.loads(browser.run(ANSWER))
    return answer


def measured(given: Chosen) -> Batch:
    (batch,) = SimTarget().run([given.native()], RunOptions(trace_flash=True, threads=1))
    assert not batch.failures, batch.failures
    return batch


@pytest.mark.parametrize("given", SHIPPED + OTHERS, ids=lambda given: given.address[:80])
def test_every_number_is_the_native_simulators(browser: Browser, given: Chosen) -> None:
    answer, batch = chosen(browser, given), measured(given)
    case = batch.cases.to_dicts()[0]
    counts = answer["counts"]
    for name in SAME:
        if case[name] is None:
            assert answer["unpriced"] is not None, name
        else:
            assert counts[name] == case[name], name
    assert [counts["causes"][name] for name in CAUSES] == [case[f"bytes_{name}"] for name in CAUSES]
    for name in ("reads", "programs", "erases"):
        assert answer["flush"][f"flash_{name}"] == case[f"flush_{name}"], name
    if case["time_ns"] is not None:
        assert answer["latency"] == batch.requests["latency_ns"].to_list()
    start, page, kind, task = answer["flash"]
    kinds = [("read", "program", "erase")[code] for code in kind]
    tasks = [answer["tasks"][code] for code in task]
    shown = {"start_ns": start, "page": page, "kind": kinds, "task": tasks}
    for name, values in shown.items():
        assert values == (batch.flash[name].to_list() if batch.flash.width else []), name
    assert answer["erases"] == batch.wear["erases"].to_list()
    held_energies(answer, batch, given)
    shown_tiles(answer, case, batch, given)


def held_energies(answer: dict[str, Any], batch: Batch, given: Chosen) -> None:
    """Energies to the nanojoule, unknown where the package does not know them."""
    case = given.native_case()
    shipped_kib = load_kernel(case.kernel).shipped_kib(case.fs)
    axes = {
        "board": case.board, "fs": case.fs, "pattern": case.pattern, "chip": str(case.chip),
        "read_ahead_kib": shipped_kib if case.forced_kib is None else case.forced_kib,
    }  # fmt: skip
    cases = batch.cases.with_columns(pl.lit(value).alias(name) for name, value in axes.items())
    boards = {case.board: load_board(case.board).energy}
    flash = batch.flash if batch.flash.width else None
    (energies,) = energy_of(
        cases, batch.requests, boards=boards, given_activity=None, flash=flash
    ).to_dicts()
    for name, shown in answer["energies"].items():
        assert shown == (None if energies[name] is None else str(energies[name])), name
    tile = answer["tiles"].get("energy")
    known = energies["energy_nj"]
    if known is not None:
        assert tile == str(known)
    elif boards[case.board] is None or case.chip.values:
        assert tile is None


REFUSED = [
    Chosen("ubifs", kernel="2.6.29"),
    Chosen("jffs2", kernel="2.6.37-64bit"),
    Chosen("ubifs", blocks=8),
]


@pytest.mark.parametrize("given", REFUSED, ids=lambda given: given.address[:80])
def test_what_the_native_simulator_refuses_is_refused_in_its_words(
    browser: Browser, given: Chosen
) -> None:
    shown_at(browser, given.address)
    (batch,) = SimTarget().run([given.native()])
    (failure,) = batch.failures
    assert notice(browser) == f"Not simulated: {failure.message}"


def shown_tiles(answer: dict[str, Any], case: dict[str, Any], batch: Batch, given: Chosen) -> None:
    """What stands in the page's tiles, by its own arithmetic."""
    tiles = answer["tiles"]
    assert tiles["reads"] == str(case["flash_reads"])
    assert tiles["programs"] == str(case["flash_programs"])
    assert tiles["erases"] == str(case["flash_erases"])
    programmed = sum(case[f"bytes_{name}"] + case[f"flush_bytes_{name}"] for name in CAUSES)
    if case["bytes_written"]:
        assert float(tiles["amplification"]) == programmed / case["bytes_written"]
    board = given.native().stack.board
    erases = (batch.wear["erases_measured"] + batch.wear["erases_flush"]).to_list()
    if case["elapsed_ns"] is None or board.endurance is None:
        return
    programs = case["flash_programs"] + case["flush_programs"]
    seen = Observed(
        seconds=case["elapsed_ns"] / 1e9, blocks=len(erases), erases=float(sum(erases)),
        worst=max(erases), dispersion=dispersion(erases),
        programmed_blocks=programs / board.chip.pages_per_block,
    )  # fmt: skip
    lasts = estimate(seen, board.endurance.cycles)
    if lasts is None or case["failed"]:
        assert tiles["lifetime"] == ""
        return
    levelled = lasts.perfect_levelling
    years = levelled.value if lasts.steady else levelled.high
    assert years is not None
    assert math.isclose(float(tiles["lifetime"]), years, rel_tol=1e-12)


def test_operations_of_the_page_are_those_of_the_package(browser: Browser) -> None:
    """To the byte. Both have the micro-benchmarks' from common/src/micro.rs."""
    for given in (Chosen("jffs2", "git"), Chosen("ubifs", "logger"), OTHERS[5]):
        chosen(browser, given)
        made = json.loads(
            browser.run("(h => JSON.stringify([h.prepare, h.body]))(playground.state.header())")
        )
        native = given.native()
        assert made == [native.prepare, native.body]


def test_it_plays_to_the_end_and_scrubs_back(browser: Browser) -> None:
    chosen(browser, Chosen("jffs2", "postmark"))
    browser.run("speed.value = '4'; speed.dispatchEvent(new Event('change')); play.click()")
    browser.until("playground.state.playing && playground.state.place > 0.02")
    browser.until("!playground.state.playing && playground.state.place == 1", 60)
    at_end = browser.run("cell.textContent")
    browser.run("scrub.value = '0'; scrub.dispatchEvent(new Event('input'))")
    assert browser.run("playground.state.place") == 0
    assert browser.run("moment.textContent").startswith("0 of ")
    assert browser.run("cell.textContent") != at_end
    browser.run("scrub.value = '10000'; scrub.dispatchEvent(new Event('input'))")
    assert browser.run("cell.textContent") == at_end


def test_it_greets_a_reader_who_has_chosen_nothing(tmp_path: Path) -> None:
    with Browser(tmp_path / "profile") as browser:
        browser.open(PAGE.as_uri())
        settled(browser)
        browser.until("playground.state.playing && playground.state.place > 0")
        assert "JFFS2" in browser.run("sentence.textContent")
        assert browser.wrong == []


def test_the_chip_ends_as_the_simulators_chip(browser: Browser) -> None:
    """Pages that operations filled are those that the last look of the simulator saw."""
    chosen(browser, Chosen("jffs2", "postmark"))
    page = """(() => {
      const { columns } = playground.state.shown.answer;
      const { partition, chip } = playground.state.shown.board;
      const last = (columns.live_at.length - 1) * partition.blocks;
      let pages = 0;
      for (let block = 0; block < partition.blocks; block += 1) {
        pages += Math.floor(columns.programmed[last + block] * chip.pages_per_block / 255);
      }
      return pages;
    })()"""
    seen = browser.run(page)
    shown = int(browser.run("cell.textContent").split(" of ")[0].replace(",", ""))
    assert abs(shown - seen) <= 2
    assert seen > 100


def test_the_keyboard_reaches_a_call_and_a_block(browser: Browser) -> None:
    chosen(browser, Chosen("ubifs", "config"))
    everything = browser.run("request.textContent")
    assert everything.startswith("All ")
    browser.run("timeline.focus()")
    for _ in range(3):
        browser.key("ArrowRight")
    assert ", call 3 at " in browser.run("request.textContent")
    browser.run("chip.focus()")
    browser.key("ArrowRight")
    assert browser.run("cell.textContent").startswith("Block 1:")
    browser.run("all.click()")
    assert browser.run("request.textContent") == everything


def test_layers_of_a_call_add_up_to_it(browser: Browser) -> None:
    sums = """(() => {
      const { columns, op_names } = playground.state.shown.answer;
      const asleep = op_names.indexOf('pause');
      return Array.from(columns.request_latency).every((latency, at) =>
        columns.request_flash[at] <= columns.request_driver[at] &&
        columns.request_driver[at] + columns.request_ubi[at] <= columns.request_fs[at] &&
        (columns.request_fs[at] <= latency || columns.request_op[at] === asleep));
    })()"""
    names = "[...document.querySelectorAll('.layer b')].map(name => name.textContent)"
    for given, own in (
        (Chosen("jffs2", "git"), ["JFFS2"]),
        (Chosen("yaffs2", "postmark"), ["YAFFS2"]),
        (Chosen("ubifs", "sqlite-wal", board="emulated-4k"), ["UBIFS", "UBI"]),
    ):
        chosen(browser, given)
        assert browser.run(sums), given
        fallen = ["System call and page cache", *own, "NAND driver", "Bus", "Cells"]
        assert browser.run(names)[-len(fallen) :] == fallen
        browser.run("timeline.focus()")
        browser.key("ArrowRight")
        while browser.run("request.textContent").startswith("compute("):
            assert browser.run(names) == ["The program itself", *fallen[1:]]
            browser.key("ArrowRight")
        assert browser.run(names) == fallen
    ubi = "playground.state.shown.answer.columns.request_ubi.some(ns => ns > 0)"
    assert browser.run(ubi)


DROP = """((name, bytes) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name));
  dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, cancelable: true }));
})"""


def test_a_dropped_program_is_run(browser: Browser) -> None:
    """As the package runs it, which adds a settling to its preparation."""
    lines = ("flashbed-ops 1", "mkdir d", "prepared", "open 0 d/f rw,create", "mark")
    text = "\n".join((*lines, "write 0 0 9000 1 30", "fsync 0", ""))
    given = Chosen("ubifs").native()
    chosen(browser, Chosen("ubifs"))
    browser.run(f"{DROP}('mine.ops', {json.dumps(text)})")
    browser.until("playground.state.config.program == 'own'")
    settled(browser)
    assert notice(browser) == ""
    prepare, body = operations("operations", _any_case(), SETTLE_NS, text)
    program = Program(
        case_id="own",
        stack=Stack(
            board=given.stack.board, kernel=given.stack.kernel, fs="ubifs", read_ahead_kib=None
        ),
        prepare=prepare,
        body=body,
        record_wear=True,
        record_flush=True,
    )
    (batch,) = SimTarget().run([program])
    counts = json.loads(browser.run(ANSWER))["counts"]
    assert counts["time_ns"] == batch.cases["time_ns"][0]
    assert counts["flash_programs"] == batch.cases["flash_programs"][0]
    assert "mine.ops" in browser.run("sentence.textContent")


def _any_case() -> Case:
    return Case(
        experiment="playground", board="emulated", kernel="6.1", fs="ubifs", pattern="as-written",
        requests=1, read_ahead_kib="default", seed=1, pause_ns=0, advice="none", mount="default",
        file_bytes=0, request_bytes=1,
    )  # fmt: skip


GARBAGE = {
    "noise.bin": "new Uint8Array([255, 0, 1, 2, 200, 13, 10])",
    "empty": "''",
    "letter.txt": "'Dear sir or madam'",
    "cut.ops": "'flashbed-ops 1\\nopen 0 f rw,create\\nwrite 0 0 40'",
    "future.ops": "'flashbed-ops 9\\nsync\\n'",
    "PAR1.parquet": "'PAR1 and so on'",
    "not-utf8.ops": "new Uint8Array([...new TextEncoder().encode('flashbed-ops 1\\n# '), 255, 10])",
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_ends_in_one_line_and_the_page_goes_on(browser: Browser, name: str) -> None:
    before = chosen(browser, Chosen("ubifs", "config"))["counts"]
    browser.run(f"{DROP}({json.dumps(name)}, {GARBAGE[name]})")
    said = browser.until("!notice.hidden && playground.state.settled && notice.textContent")
    assert "\n" not in said
    assert len(said) < 240
    assert chosen(browser, Chosen("ubifs", "config"))["counts"] == before


def test_an_address_that_means_nothing_is_said_and_left_out(browser: Browser) -> None:
    browser.run("location.hash = '#fs=ext4&nonsense=1&requests=-5&program=micro-read'")
    said = browser.until("!notice.hidden && playground.state.settled && notice.textContent")
    for odd in ("fs=ext4", "nonsense", "requests=-5"):
        assert odd in said
    assert browser.run("playground.state.config.program") == "micro-read"


def test_an_address_may_be_made_of_anything(browser: Browser) -> None:
    """`toString=1` ended the page, a hundred thousand words filled it for half a minute."""
    for words in ("toString=1&__proto__=2", "&".join(f"a{number}" for number in range(100_000))):
        browser.open(f"{PAGE.as_uri()}#program=git&fs=jffs2&{words}")
        settled(browser)
        said = notice(browser)
        assert said.startswith("The address has ")
        assert len(said) < 240
        assert browser.run("sentence.textContent").startswith("git")


@pytest.mark.parametrize("claim", ["requests=1000000000", "fileKib=1000000000", "requestBytes=0"])
def test_an_address_that_claims_too_much_is_refused_at_once(browser: Browser, claim: str) -> None:
    """The page wrote a line for each request, and did not answer any more."""
    browser.open(f"{PAGE.as_uri()}#program=micro-read&fs=ubifs&{claim}")
    settled(browser, 60)
    assert notice(browser).startswith("Not simulated: ")


def test_a_link_shows_the_same_elsewhere(browser: Browser, tmp_path: Path) -> None:
    given = Chosen("jffs2", "git", chip=changed(read_array_ns=60_000), window=0)
    here = chosen(browser, given)
    address = browser.run("location.href")
    with Browser(tmp_path / "elsewhere") as other:
        other.open(address)
        settled(other)
        assert json.loads(other.run(ANSWER)) == here
        assert other.wrong == []


@pytest.mark.parametrize("view", ["answer", "compare", "chip", "time", "stack"])
def test_a_part_stands_alone_in_a_frame(tmp_path: Path, view: str) -> None:
    with Browser(tmp_path / "profile", 640, 500) as browser:
        browser.open(f"{PAGE.as_uri()}#fs=jffs2&view={view}")
        settled(browser)
        shown = "[...document.querySelectorAll('[data-part]')].filter(part => !part.hidden)"
        assert browser.run(f"{shown}.map(part => part.dataset.part)") == [view]
        assert browser.run("panel.offsetParent") is None
        assert browser.run("foot.querySelector('a').hash") == "#fs=jffs2"
        assert browser.wrong == []


def test_a_kept_configuration_is_compared_in_words(browser: Browser) -> None:
    chosen(browser, Chosen("ubifs"))
    browser.run("pin.click()")
    chosen(browser, Chosen("jffs2"))
    said = browser.run("pinned.textContent")
    assert "UBIFS" in said
    assert "JFFS2 writes" in said


@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_is_wider_than_the_window(tmp_path: Path, width: int) -> None:
    with Browser(tmp_path / "profile", width, 900) as browser:
        for scheme in ("light", "dark"):
            browser.resize(width, 900, scheme)
            browser.open(PAGE.as_uri())
            settled(browser)
            assert browser.run("document.documentElement.scrollWidth") <= width
            assert browser.run("document.documentElement.dataset.theme") == scheme
            assert browser.run("getComputedStyle(document.body).backgroundColor")
        assert browser.wrong == []


def test_a_program_of_a_million_calls_says_how_far_it_is_and_can_be_ended(
    browser: Browser,
) -> None:
    chosen(browser, Chosen("ubifs", "config"))
    lines = """['flashbed-ops 1', 'open 0 f rw,create', 'mark',
      ...Array.from({ length: 1e6 }, (_, at) => `write 0 ${(at * 4096) % 8388608} 4096 1 0`)]"""
    browser.run(f"{DROP}('long.ops', {lines}.join('\\n') + '\\n')")
    said = browser.until("!working.hidden && working.textContent.includes('so far') && "
                         "working.firstElementChild.textContent")  # fmt: skip
    assert int(said.split()[0].replace(",", "")) > 0
    browser.run("cancel.click()")
    browser.until("playground.state.settled")
    assert "Cancelled" in notice(browser)
    assert chosen(browser, Chosen("ubifs", "config"))["counts"]["flash_programs"] > 0


def test_the_page_is_one_small_file() -> None:
    """1.2 MB on the wire, which compresses base64 away."""
    import gzip

    assert len(gzip.compress(PAGE.read_bytes())) < 1_200_000
    text = PAGE.read_text(encoding="utf-8")
    assert 'src="' not in text.split("<script")[0]
    assert shutil.which("npm") or "https://" not in text
