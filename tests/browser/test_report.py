"""The report in headless Chromium: no error, every figure drawn, nothing asked of a network."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import polars as pl
import pytest

from flashbed.bench import validation
from flashbed.bench.tracing.trace import keep
from flashbed.bench.validation import results_table as kept
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import plan
from flashbed.plan.study import load_study
from flashbed.report import write_report
from flashbed.report.traced_run import write_trace_report
from flashbed.results.run_directory import RunDirectory
from flashbed.running.runner import run_target
from tests.layers.plan.test_study import CLAIM, FIGURE, STUDY
from tests.layers.tracing.test_trace import traced
from tests.support.chromium import CHROMIUM, dumped
from tests.support.fake import FakeTarget

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is missing: apt-get install chromium"),
]

# Added to the page before everything else: keeps whatever goes wrong, and at the end writes it and
# the number of marks of each figure into the page, where the test reads them.
TRAP = """<script>
window.wrong = [];
for (const level of ["error", "warn"]) {
  const before = console[level];
  console[level] = (...words) => {
    window.wrong.push(level + ": " + words.join(" "));
    before(...words);
  };
}
addEventListener("error", event => window.wrong.push("error: " + event.message), true);
addEventListener("unhandledrejection", event => window.wrong.push("rejected: " + event.reason));
addEventListener("load", async () => {
  try { await window.figuresDrawn; } catch (why) { window.wrong.push("figure: " + why); }
  const kinds = ["symbol", "line", "rect"].flatMap(kind =>
    [`svg .mark-${kind} path`, `svg .mark-${kind} use`]).join(", ");
  const marks = [...document.querySelectorAll(".plot")].map(plot =>
    plot.id + "=" + plot.querySelectorAll(kinds).length);
  const wide = Math.max(0, document.documentElement.scrollWidth - innerWidth);
  const cut = [...document.querySelectorAll(".plot svg, .bars")].filter(svg =>
    svg.getBoundingClientRect().right > innerWidth + 1).length;
  const asked = performance.getEntriesByType("resource").map(entry => entry.name);
  const said = document.createElement("pre");
  said.id = "said";
  const odd = [wide, cut].map(String);
  said.textContent = JSON.stringify({marks, asked, wrong: window.wrong, odd});
  document.body.append(said);
});
</script>"""


def look(page: Path, folder: Path, width: int = 1400) -> dict[str, list[str]]:
    """What the trap says of a page in a window of so many pixels."""
    trapped = folder / "trapped.html"
    trapped.write_text(page.read_text().replace("<head>", f"<head>{TRAP}", 1))
    shown = dumped(trapped.as_uri(), folder / "profile", width)
    found = re.search(r'<pre id="said">(.*?)</pre>', shown, re.DOTALL)
    assert found, shown[-2000:]
    said: dict[str, list[str]] = json.loads(html.unescape(found.group(1)))
    return said


def report(targets: list[str], folder: Path, *, record_wear: bool = False) -> Path:
    experiment = load_experiment("one")
    directory = RunDirectory.create(folder / "run", experiment.id)
    for name in targets:
        run_target(
            experiment,
            plan(experiment),
            FakeTarget(name),
            directory,
            trace_flash=False,
            record_wear=record_wear,
            progress=lambda *_: None,
        )
    return write_report([directory.path], folder / "report.html")


def test_every_figure_is_drawn_without_an_error(small: Path, tmp_path: Path) -> None:
    said = look(report(["sim", "emulator"], tmp_path), tmp_path)
    assert said["wrong"] == []
    assert said["asked"] == []
    drawn = dict(mark.split("=") for mark in said["marks"])
    assert list(drawn) == [
        "small-one-figure-3-a", "small-one-figure-3-b", "small-one-shown-agreement",
    ]  # fmt: skip
    # Three stacks on two file systems, two patterns and two numbers of requests, and more.
    assert all(int(marks) >= 24 for marks in drawn.values()), drawn


def test_a_report_without_the_kernel_is_drawn_as_well(small: Path, tmp_path: Path) -> None:
    said = look(report(["sim"], tmp_path), tmp_path)
    assert said["wrong"] == []
    assert [mark.split("=")[0] for mark in said["marks"]] == [
        "small-one-figure-3-a", "small-one-figure-3-b",
    ]  # fmt: skip


def test_wear_is_drawn_as_maps_of_the_first_cases(small: Path, tmp_path: Path) -> None:
    report(["sim"], tmp_path, record_wear=True)
    said = look(report(["emulator"], tmp_path), tmp_path)
    assert said["wrong"] == []
    drawn = dict(mark.split("=") for mark in said["marks"])
    # Twelve maps of a partition of 800 blocks; a case without wear does no harm.
    assert int(drawn["small-one-shown-wear"]) >= 12 * 800


def test_power_over_time_is_drawn_and_energy_told_by_convention(tmp_path: Path) -> None:
    experiment = load_experiment("readahead/figure5")
    directory = RunDirectory.create(tmp_path / "run", experiment.id)
    run_target(
        experiment, plan(experiment), FakeTarget("sim"), directory, trace_flash=False,
        progress=lambda *_: None,
    )  # fmt: skip
    page = write_report([directory.path], tmp_path / "report.html")
    said = look(page, tmp_path)
    assert said["wrong"] == []
    drawn = dict(mark.split("=") for mark in said["marks"])
    # Two rails on two file systems, with read-ahead and without; and the legends.
    assert {name: int(marks) >= 8 for name, marks in drawn.items()} == {
        "readahead-figure5-figure-5": True,
        "readahead-figure5-figure-5-component": True,
    }
    text = page.read_text()
    energy = text[text.index(">Energy</h3>") : text.index(">What was run</h3>")]
    assert energy.count("<caption>") == 2
    assert "By component: each component's work" in energy


def test_what_validate_has_kept_is_a_section_of_its_own(small: Path, tmp_path: Path) -> None:
    values = {"flash_reads": 5, "flash_programs": 5, "flash_erases": 0, "flash_time_ns": 9}
    simulated = pl.DataFrame([{"case_id": "validate-jffs2-one", **values, "time_ns": 150}])
    real = simulated.with_columns(time_ns=pl.lit(100))
    limits = validation.LIMITS["writes"]["emulator"]
    table = validation.compare(simulated, real, {"validate-jffs2-one": (3, 90, 127)})
    compared = validation.ComparedSuite(
        table=table, kinds={"validate-jffs2-one": "kind"}, limits=limits, refused={}, failed={}
    )
    run = {"board": "emulated", "kernel": "6.1", "target": "emulator", "suite": "writes"}
    kept.keep(tmp_path, run, compared, {"flashbed_version": "1", "commit": "c"})
    page = write_report([], tmp_path / "report.html", tmp_path)
    text = page.read_text()
    assert "How far the simulator is from real kernels</h1>" in text
    assert '<td class="n off">50.00</td>' in text
    assert "not kept" in text
    assert "There the simulator replayed 3 recorded choices of JFFS2" in text
    assert look(page, tmp_path)["wrong"] == []


def test_a_figure_over_axes_and_a_study_are_drawn(small: Path, tmp_path: Path) -> None:
    (small / "experiments" / "small.toml").write_text(STUDY)
    file = small / "experiments" / "small" / "one.toml"
    text = file.read_text()
    file.write_text(text[: text.index("[[claim]]")] + CLAIM + FIGURE)
    report(["sim", "emulator"], tmp_path)
    page = write_report([tmp_path / "run"], tmp_path / "study.html", study=load_study("small"))
    said = look(page, tmp_path)
    assert said["wrong"] == []
    drawn = dict(mark.split("=") for mark in said["marks"])
    # Two kernels, file systems, patterns and numbers of requests, and the paper's cross.
    assert int(drawn["small-one-figure-axes"]) >= 17


def test_a_traces_layers_are_drawn(tmp_path: Path) -> None:
    keep(traced(), tmp_path / "trace")
    said = look(write_trace_report(tmp_path / "trace", tmp_path / "trace.html"), tmp_path)
    assert said["wrong"] == []
    assert said["asked"] == []
    drawn = dict(mark.split("=") for mark in said["marks"])
    assert list(drawn) == ["figure-0", "figure-1", "figure-2"]
    # A call of the VFS, the cache's line, two calls and one's pages, seven of the driver.
    assert int(drawn["figure-1"]) >= 11


@pytest.mark.parametrize("width", [1400, 500])
def test_no_figure_and_no_page_is_wider_than_the_window(
    small: Path, tmp_path: Path, width: int
) -> None:
    """A window of Chromium has 500 pixels at least; the narrow figures have 330."""
    said = look(report(["sim", "emulator"], tmp_path), tmp_path, width)
    assert said["odd"] == ["0", "0"]
    page = (tmp_path / "report.html").read_text()
    narrow = page.split('<div class="on-narrow">')[1:]
    assert narrow
    widths = [int(found) for one in narrow for found in re.findall(r'width="(\d+)', one)[:1]]
    assert len(widths) == len(narrow)
    assert max(widths) <= 358


def test_the_trap_notices(tmp_path: Path) -> None:
    """A test that could not fail would be none: a page with three faults has them all reported."""
    page = tmp_path / "bad.html"
    page.write_text(
        "<html><head></head><body><div class=plot id=p></div><script>"
        "console.error('one'); window.figuresDrawn = Promise.reject('two'); three();"
        "</script></body></html>"
    )
    said = look(page, tmp_path)
    assert [word for word in ("one", "two", "three") if any(word in w for w in said["wrong"])] == [
        "one",
        "two",
        "three",
    ]
    assert said["marks"] == ["p=0"]
