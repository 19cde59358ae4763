"""`flashbed power fit` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flashbed.stack.profiles import load_board
from tests.smoke.conftest import Run
from tests.support.fake import FakeTarget
from tests.support.traces import LOAD_W, Synthetic, synthetic


def written(made: Synthetic, path: Path, *, marker: bool = True) -> str:
    """A table of two rails: the CPU's with the load, RAM and flash with an eighth of it."""
    lines = ["time (ms),cpu (mW),mem (mW)" + (",D0" if marker else "")]
    for time_s, power_w, high in zip(made.time_s, made.power_w, made.marker, strict=True):
        row = f"{time_s * 1e3:.0f},{power_w * 1e3:.5f},{power_w * 1e3 / 8:.5f}"
        lines.append(row + (f",{high:.0f}" if marker else ""))
    path.write_text("\n".join(lines))
    return str(path)


def json_of(run: Run, *arguments: str) -> list[dict[str, Any]]:
    status, out, _ = run("power", "fit", *arguments, "--format", "json")
    assert status == 0
    found: list[dict[str, Any]] = json.loads(out)["power"]
    return found


def test_powers_and_energies_are_printed(tmp_path: Path, run: Run) -> None:
    made = synthetic(31)
    trace = written(made, tmp_path / "trace.csv")
    status, out, err = run("power", "fit", trace)
    assert (status, err) == (0, "")
    assert "20,000 samples at 1,000 Hz, 5 windows by marker D0" in out
    (cpu,) = [line for line in out.splitlines() if line.startswith("cpu")]
    assert " +- " in cpu
    assert "20 dB" in cpu
    (found,) = json_of(run, trace)
    for rail, share in zip(found["rails"], (1, 1 / 8), strict=True):
        assert rail["mean_w"] == pytest.approx(LOAD_W * share, rel=0.01)
        for window, known in zip(rail["windows"], made.energy_j, strict=True):
            assert window["energy_j"] == pytest.approx(known * share, rel=0.01)
            assert window["problem"] is None


def test_pulses_and_files_of_windows_tell_the_same(tmp_path: Path, run: Run) -> None:
    made = synthetic(32)
    trace = written(made, tmp_path / "trace.csv", marker=False)
    (found,) = json_of(run, trace)
    assert found["windows_by"] == "load pulses"
    windows = tmp_path / "requests.csv"
    rows = [f"{a * 1_000_000 - 500_000},{(b - a) * 1_000_000},read" for a, b in made.edges]
    windows.write_text("\n".join(["start_ns,latency_ns,op", *rows]))
    (filed,) = json_of(run, trace, "--windows", str(windows))
    early = tmp_path / "early.csv"
    first, last = made.edges[0]
    early.write_text(f"start_s,end_s\n0,{(last - first) / 1000}\n")
    (aligned,) = json_of(run, trace, "--windows", str(early), "--offset", "edge")
    for each in (found, filed, aligned):
        energy_j = each["rails"][0]["windows"][0]["energy_j"]
        assert energy_j == pytest.approx(made.energy_j[0], rel=0.01)


def test_what_is_measured_goes_into_the_profile_and_nothing_else_changes(
    small: Path, tmp_path: Path, run: Run
) -> None:
    trace = written(synthetic(33), tmp_path / "reads.csv")
    path = load_board("emulated-small").path
    before = path.read_text()
    asked = ("--board", "emulated-small", "--write", "--activity", "read", "--fs", "jffs2")
    status, _, err = run("power", "fit", trace, *asked)
    assert status == 0
    assert "wrote [energy] of project/boards/emulated-small.toml" in err
    after = path.read_text()
    assert after.startswith(before.rstrip("\n"))
    energy = load_board("emulated-small").energy
    assert energy is not None
    assert energy.paper is not None
    (row,) = energy.paper.power
    assert (row.activity, row.fs, row.pattern, row.read_ahead) == ("read", "jffs2", None, None)
    assert row.cpu_uw == pytest.approx(200_000, rel=0.01)
    assert row.mem_uw == pytest.approx(25_000, rel=0.01)
    assert row.source is not None
    assert row.source.startswith("flashbed power fit reads.csv: cpu 199.76 +- 0.45 mW, mem ")
    # Again, from two recordings: the row is replaced. Another condition: a row is added.
    other = written(synthetic(34), tmp_path / "again.csv")
    assert run("power", "fit", trace, other, *asked)[0] == 0
    again = path.read_text()
    assert len(again.splitlines()) == len(after.splitlines())
    assert "flashbed power fit reads.csv, again.csv: " in again
    assert run("power", "fit", trace, *asked[:-1], "ubifs", "--read-ahead", "off")[0] == 0
    assert len(path.read_text().splitlines()) == len(after.splitlines()) + 1


def test_comments_of_a_profile_are_kept(small: Path, tmp_path: Path, run: Run) -> None:
    trace = written(synthetic(35), tmp_path / "reads.csv")
    path = load_board("omap3evm").path
    before = path.read_text().splitlines()
    asked = ("--activity", "read", "--fs", "jffs2", "--pattern", "random", "--read-ahead", "on")
    assert run("power", "fit", trace, "--board", "omap3evm", "--write", *asked)[0] == 0
    after = path.read_text().splitlines()
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert len(changed) == 1
    assert 'pattern = "random", read_ahead = "on", cpu_uw = 199_986' in changed[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("none.csv",), "none.csv: no such file"),
        (("t.csv", "--marker", "D7"), "no channel 'D7'; there are cpu, mem, D0"),
        (("t.csv", "--marker", "D0", "--windows", "w"), "--marker and --windows: one of them"),
        (("t.csv", "--windows", "w"), "w: no such file"),
        (("t.csv", "--rail", "cpu=cpu*1V"), "does not give watts"),
        (("t.csv", "--unit", "D0"), "CHANNEL=UNIT"),
        (("t.csv", "--rate", "fast"), "a frequency, as in 10kHz"),
        (("t.csv", "--offset", "soon"), "seconds, or edge"),
        (("t.csv", "--accuracy", "-1"), "a percentage"),
        (("t.csv", "--format", "yaml"), "text or json"),
        (("t.csv", "--write"), "needs --board and --activity"),
        (("t.csv", "--board", "emulated"), "only with --write"),
        (("t.csv", "--write", "--board", "no", "--activity", "read"), "no such board"),
        (("t.csv", "--write", "--board", "emulated", "--activity", "nap"), "read or write or"),
        (
            ("t.csv", "--write", "--board", "emulated", "--activity", "read", "--rail", "x=cpu"),
            "a profile takes cpu and mem, or supply",
        ),
        (
            ("t.csv", "--write", "--board", "omap3evm", "--activity", "read", "--rail",
             "supply=cpu"),
            "paper and supply: give one of them",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_one_line_and_status_2(
    small: Path, run: Run, arguments: tuple[str, ...], words: str
) -> None:
    written(synthetic(36), Path("t.csv"))
    status, _, err = run("power", "fit", *arguments)
    assert status == 2, err
    lines = err.splitlines()
    assert len(lines) == 1
    assert words in lines[0]


def test_what_cannot_be_told_is_one_line_and_status_1(tmp_path: Path, run: Run) -> None:
    trace = written(synthetic(37, snr_db=-35), tmp_path / "t.csv")
    status, out, err = run("power", "fit", trace, "--format", "json")
    assert status == 1
    assert len(err.splitlines()) == 1
    assert "cpu: signal to noise is too low" in err
    (found,) = json.loads(out)["power"]
    assert [rail["mean_w"] for rail in found["rails"]] == [None, None]
    assert "signal to noise" in found["rails"][0]["problem"]
    unmarked = written(synthetic(37, snr_db=-35), tmp_path / "u.csv", marker=False)
    status, out, err = run("power", "fit", unmarked)
    assert (status, out) == (1, "")
    assert len(err.splitlines()) == 1


def test_a_window_that_is_left_out_is_told_of(tmp_path: Path, run: Run) -> None:
    made = synthetic(38)
    path = Path(written(made, tmp_path / "t.csv"))
    lines = path.read_text().splitlines()
    first, _ = made.edges[1]
    path.write_text("\n".join(lines[: first + 300] + lines[first + 400 :]))
    status, out, err = run("power", "fit", str(path))
    assert status == 0
    assert "cpu: window 2 is left out: a gap of 100 ms in it" in err
    assert "5 windows" in out


def test_nothing_is_written_when_something_is_unknown(
    small: Path, tmp_path: Path, run: Run
) -> None:
    trace = written(synthetic(39, snr_db=-35), tmp_path / "t.csv")
    before = load_board("emulated").path.read_text()
    asked = ("--board", "emulated", "--write", "--activity", "read")
    assert run("power", "fit", trace, *asked)[0] == 1
    assert load_board("emulated").path.read_text() == before


@pytest.fixture
def drawn(small: Path, fakes: dict[str, FakeTarget], run: Run) -> str:
    """A run of two cases."""
    chosen = ("board=omap3evm", "fs=jffs2", "pattern=sequential", "requests=8", "seed=1")
    settings = [word for each in chosen for word in ("--set", each)]
    status, _, err = run("run", "one", *settings, "--out", "r")
    assert status == 0, err
    return "r"


def test_power_over_time_is_drawn_with_a_recording_under_it(drawn: str, run: Run) -> None:
    assert run("power", "draw", drawn) == (0, "r/power.svg\n", "")
    picture = Path("r/power.svg").read_text()
    assert picture.startswith("<svg")
    assert "read-ahead off" in picture
    written(synthetic(40), Path("t.csv"))
    status, out, _ = run("power", "draw", drawn, "--measured", "t.csv", "--out", "o.html")
    assert (status, out) == (0, "o.html\n")
    assert "measured: t.csv" in Path("o.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing",), "not the result of a run"),
        (("r", "--case", "x"), "no such case in r"),
        (("r", "--out", "x.png"), ".svg or .html"),
        (("r", "--component"), "flash was not recorded"),
        (("r", "--rail", "cpu=cpu"), "only with --measured"),
        (("r", "--measured", "t.csv", "--rail", "x=cpu"), "its rails are x, but a case has cpu"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(
    drawn: str, run: Run, arguments: tuple[str, ...], words: str
) -> None:
    written(synthetic(41), Path("t.csv"))
    status, _, err = run("power", "draw", *arguments)
    assert status == 2, err
    assert len(err.splitlines()) == 1
    assert words in err


def test_a_board_without_constants_has_no_picture(
    small: Path, fakes: dict[str, FakeTarget], run: Run
) -> None:
    chosen = ("board=emulated", "fs=ubifs", "pattern=random", "requests=8", "seed=1")
    settings = [word for each in chosen for word in ("--set", each)]
    assert run("run", "one", *settings, "--out", "r")[0] == 0
    status, _, err = run("power", "draw", "r")
    assert status == 2
    assert "board emulated has no constants for it" in err
