"""Traces on the host's side: rows read, kept, written for other tools; what the command says."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

from flashbed.base.errors import InputError, RunError
from flashbed.bench.tracing import perfetto
from flashbed.bench.tracing.flashmon_log import read_log, written_log
from flashbed.bench.tracing.record import ThisMachine, TraceOptions, trace_command
from flashbed.bench.tracing.summary import amplification, by_layer, by_task, hot_blocks, lines
from flashbed.bench.tracing.trace import Trace, TraceFacts, TracingCost, empty, keep, load
from flashbed.bench.tracing.trace_figures import figures, pages_of_calls
from flashbed.cli import main
from flashbed.targets.guest.trace_rows import HEADER, read_rows, read_stream

STREAM = f"""{HEADER}
info kernel 6.1.0
info page_bytes 2048
info pages_per_block 64
info not_probed nothing_such
vfs 1100 50 read 7 0 4096 4096 12 cat data.bin
vfs 1120 - cache-add 7 0 4096 - 12 cat -
vfs 900 - cache-add 9 8192 4096 - 12 cat -
flash 1130 read 1 66 0 2048 12 cat
flash 1140 read 1 67 512 512 12 cat
flash 1200 program 2 128 0 2048 30 kworker/0:1
flash 1300 erase 3 192 0 131072 30 kworker/0:1
flash 1400 program 3 192 2048 8 30 kworker/0:1
flash 1500 program 3 192 0 2048 30 kworker/0:1
func 1105 40 jffs2_readpage 0 12 cat
func 1107 20 jffs2_do_readpage -5 12 cat
func 1600 - jffs2_write_end - 30 kworker/0:1
ecc 3 1 0
lost 0
end 4
"""


def traced(stream: str = STREAM) -> Trace:
    rows = read_stream(stream)
    facts = TraceFacts(
        name="cat", target="host", kernel="6.1.0", page_bytes=2048, pages_per_block=64
    )
    return Trace(
        facts=facts,
        requests=empty("requests"),
        flash=rows.flash,
        vfs=rows.vfs,
        functions=rows.functions,
    )


def test_a_stream_is_tables_in_the_order_of_beginnings() -> None:
    rows = read_stream(STREAM)
    assert (rows.lost, rows.status, rows.ecc) == (0, 4, (3, 1, 0))
    assert rows.info["kernel"] == "6.1.0"
    assert rows.vfs["start_ns"].to_list() == [900, 1100, 1120]
    # Inode 7 has the name that a read of it gave; of 9 there is no name.
    assert rows.vfs["file"].to_list() == [None, "data.bin", "data.bin"]
    assert rows.flash["offset_bytes"].to_list() == [0, 512, 0, 0, 2048, 0]
    assert rows.functions["duration_ns"].to_list() == [40, 20, None]
    assert rows.functions["result"].to_list() == [0, -5, None]


def test_numbers_from_places_in_the_kernel_are_kept_as_they_came() -> None:
    rows = read_rows(["value 7 chosen 130 82 a name of words", "value 9 chosen 0 1 init", "lost 0"])
    assert rows.values == ((7, "chosen", 130), (9, "chosen", 0))


def test_a_stream_that_was_cut_off_is_what_there_is_of_it() -> None:
    at = STREAM.index("flash 1200 pro") + 9
    rows = read_stream(STREAM[:at])
    assert rows.flash.height == 2
    assert (rows.lost, rows.status) == (None, None)
    running = read_stream(STREAM.replace("end 4", "end -"))
    assert (running.lost, running.status) == (0, None)


@pytest.mark.parametrize(
    "line",
    ["nonsense 1", "flash 1 read", "flash 1 read x 0 0 0 1 a", "lost some", "info", "value 1 x"],
)
def test_what_is_no_row_is_refused(line: str) -> None:
    with pytest.raises(RunError, match="no row of flashbed-trace 1"):
        read_rows([line])
    with pytest.raises(RunError, match="not a trace"):
        read_stream("flashbed-stream 1\n")


def test_the_original_log_is_written_and_read_back(tmp_path: Path) -> None:
    flash = traced().flash
    text = written_log(flash)
    assert text.splitlines()[:1] == ["0.000001130;R;66;cat"]
    assert text.splitlines()[3] == "0.000001300;E;3;kworker/0:1"
    path = tmp_path / "flashmon.log"
    path.write_text(f"# flashmon\n\n{text}")
    again = read_log(path, pages_per_block=64)
    columns = ["start_ns", "kind", "block", "page", "task"]
    assert again.select(columns).equals(flash.select(columns))
    assert read_log(path)["block"].to_list() == [None, None, None, 3, None, None]
    path.write_text("0.5;R;12;a\n0.6;X;12;a\n")
    with pytest.raises(InputError, match=r"flashmon\.log:2: not `seconds;R\|W\|E;index;task`"):
        read_log(path)


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=10**15))
def test_times_survive_the_log_to_the_nanosecond(time_ns: int) -> None:
    from flashbed.bench.tracing.flashmon_log import _ns

    flash = traced().flash.head(1).with_columns(pl.lit(time_ns).alias("start_ns"))
    assert _ns(written_log(flash).split(";")[0]) == time_ns


def test_a_trace_is_kept_and_read_back(tmp_path: Path) -> None:
    trace = traced()
    keep(trace, tmp_path / "t")
    again = load(tmp_path / "t")
    assert again.facts == trace.facts
    for name, frame in again.tables.items():
        assert frame.select(trace.tables[name].columns).equals(trace.tables[name])
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine").write_text("")
    with pytest.raises(InputError, match="not empty, and not a trace"):
        keep(trace, tmp_path / "other")
    (tmp_path / "t" / "trace.json").write_text("{}")
    with pytest.raises(InputError, match="not a trace, or one of another version"):
        load(tmp_path / "t")


def test_the_summary_adds_up() -> None:
    trace = traced()
    layers = by_layer(trace).rows()
    assert ("VFS", "cache-add", 2, None) in layers
    assert ("VFS", "read", 1, 50) in layers
    assert ("flash", "program", 3, None) in layers
    assert by_task(trace).rows() == [("kworker/0:1", 0, 3, 1), ("cat", 2, 0, 0)]
    assert hot_blocks(trace).rows()[0] == (3, 0, 2, 1)
    read, write = amplification(trace)
    assert (read.asked_bytes, read.flash_bytes) == (4096, 2560)
    assert read.ratio == 2560 / 4096
    assert write.ratio is None
    assert list(perfetto.free_blocks(trace)) == [(1200, -1), (1300, 0), (1500, -1)]
    text = "\n".join(lines(trace))
    assert "flash bytes read per byte read by the program: 0.62" in text
    assert "written" not in text
    assert TracingCost(106, 100).pct == 6


def test_flash_pages_are_those_of_the_call_and_its_task() -> None:
    counted = pages_of_calls(traced()).filter(pl.col("pages") > 0)
    assert counted.select("function", "kind", "pages").rows() == [("jffs2_readpage", "read", 2)]


def test_layers_are_drawn_over_one_time() -> None:
    drawn = {title: chart for title, _, chart in figures(traced())}
    panels = drawn["Layer by layer"]["vconcat"]
    marks = [panel.get("mark", {}).get("type", "layers") for panel in panels]
    # VFS, page cache, file system, flash pages of its calls, driver.
    assert marks == ["point", "line", "point", "point", "point"]
    domains = [panel["encoding"]["x"]["scale"]["domain"] for panel in panels]
    assert domains == [[0.0, pytest.approx(1600 / 1e6)]] * 5
    driver = next(iter(reversed(drawn["Layer by layer"]["datasets"].values())))
    assert sum(row.get("count", 0) for row in driver) == traced().flash.height
    assert figures(traced(f"{HEADER}\nend -\n")) == []


def decoded(path: Path) -> tuple[dict[int, tuple[str, int]], list[tuple[int, int, int, str]]]:
    """Tracks, number -> name and parent; events, time, track, type, name, sorted by time."""
    read = perfetto_trace_pb2.Trace()
    read.ParseFromString(path.read_bytes())
    tracks, events = {}, []
    for packet in read.packet:
        if packet.HasField("track_descriptor"):
            its = packet.track_descriptor
            tracks[its.uuid] = (its.name or its.process.process_name, its.parent_uuid)
        else:
            event = packet.track_event
            events.append((packet.timestamp, event.track_uuid, event.type, event.name))
    return tracks, sorted(events, key=lambda event: event[0])


def slices(path: Path) -> Counter[tuple[str, str, str, int]]:
    """(layer, task, name, duration; -1 of an instant) of everything; nothing is left open.

    As trace_processor does it: an end is that of the track's last beginning.
    """
    kinds = perfetto_trace_pb2.TrackEvent
    tracks, events = decoded(path)
    open_ones: dict[int, list[tuple[int, str]]] = {}
    found: Counter[tuple[str, str, str, int]] = Counter()
    for time_ns, track, kind, name in events:
        if kind == kinds.TYPE_COUNTER:
            continue
        task, parent = tracks[track]
        layer = tracks[parent][0]
        if kind == kinds.TYPE_SLICE_BEGIN:
            open_ones.setdefault(track, []).append((time_ns, name))
        elif kind == kinds.TYPE_SLICE_END:
            began, its = open_ones[track].pop()
            found[layer, task, its, time_ns - began] += 1
        else:
            found[layer, task, name, -1] += 1
    assert not any(open_ones.values())
    return found


def test_perfettos_file_has_a_track_a_layer_and_nested_slices(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    perfetto.write_perfetto(traced(), path)
    tracks, events = decoded(path)
    top = [name for name, parent in tracks.values() if parent == 1]
    assert top == [*perfetto.LAYERS, perfetto.CACHED, perfetto.FREE]
    assert slices(path) == Counter(
        {
            ("VFS", "cat", "read", 50): 1,
            ("page cache", "cat", "cache-add", -1): 2,
            ("file system", "cat", "jffs2_readpage", 40): 1,
            ("file system", "cat", "jffs2_do_readpage", 20): 1,
            ("file system", "kworker/0:1", "jffs2_write_end", -1): 1,
            ("flash", "cat", "read", -1): 2,
            ("flash", "kworker/0:1", "program", -1): 3,
            ("flash", "kworker/0:1", "erase", -1): 1,
        }
    )
    assert min(time_ns for time_ns, *_ in events) == 900


def test_calls_of_several_tasks_that_overlap_are_on_tracks_of_their_own(tmp_path: Path) -> None:
    """They were nested, and a slice that began within another ended it: pauses changed lengths."""
    calls = [("pause", 0, 50), ("pause", 10, 100), ("write", 20, 10), ("write", 60, 70)]
    rows = {
        "op": [name for name, _, _ in calls], "start_ns": [start for _, start, _ in calls],
        "latency_ns": [took for _, _, took in calls], "flash_time_ns": [0] * 4, "file": ["a"] * 4,
        "offset_bytes": [0] * 4, "length_bytes": [1] * 4, "result": [0] * 4,
    }  # fmt: skip
    path = tmp_path / "trace"
    perfetto.write_perfetto(replace(traced(), requests=pl.DataFrame(rows)), path)
    calls_of = {key: count for key, count in slices(path).items() if key[0] == "system calls"}
    assert calls_of == {
        ("system calls", "cat", "pause", 50): 1, ("system calls", "cat (2)", "pause", 100): 1,
        ("system calls", "cat (3)", "write", 10): 1, ("system calls", "cat", "write", 70): 1,
    }  # fmt: skip


AGENT = """#!{python}
import sys
open({seen!r}, "w").write(" ".join(sys.argv[1:]))
sys.stdout.write({text!r})
sys.exit({status})
"""
Agents = Callable[..., ThisMachine]


@pytest.fixture
def agent(tmp_path: Path) -> Agents:
    """A place whose agent is a script with fixed output."""

    def make(text: str, status: int = 0) -> ThisMachine:
        program = tmp_path / "agent"
        seen = str(tmp_path / "seen")
        program.write_text(AGENT.format(python=sys.executable, text=text, status=status, seen=seen))
        program.chmod(0o755)
        return ThisMachine(program)

    return make


def test_a_command_is_traced_where_there_is_an_agent(agent: Agents, tmp_path: Path) -> None:
    asked = TraceOptions(
        flash=True, vfs=False, functions=("jffs2_*", "ubifs_*"), points="mtd", buffer_kib=64
    )
    trace = trace_command(agent(STREAM), ["cat", "data.bin"], asked, 2.5)
    assert (tmp_path / "seen").read_text() == (
        "trace --flash --func jffs2_* --func ubifs_* --points mtd --buffer-kib 64"
        " --seconds 2.5 -- cat data.bin"
    )
    assert trace.facts.name == "cat data.bin"
    assert (trace.facts.status, trace.facts.lost, trace.facts.pages_per_block) == (4, 0, 64)
    assert set(trace.flash["target"]) == {"host"}


def test_a_trace_that_failed_is_an_error_and_one_that_lost_events_is_not(agent: Agents) -> None:
    with pytest.raises(RunError, match="host: tracing failed"):
        trace_command(agent("", 1), ["cat"], TraceOptions(flash=True), None)
    with pytest.raises(RunError, match="host: tracing failed"):
        trace_command(
            agent(f"{HEADER}\ninfo kernel 6.1\n", 1), ["cat"], TraceOptions(flash=True), None
        )
    cut = trace_command(
        agent(f"{HEADER}\ninfo kernel 6.1\n", 255), ["cat"], TraceOptions(flash=True), None
    )
    assert cut.facts.lost is None
    lossy = STREAM.replace("lost 0", "lost 17")
    assert trace_command(agent(lossy, 1), ["cat"], TraceOptions(flash=True), None).facts.lost == 17


def status_of(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["flashbed", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_the_command_keeps_what_was_lost_and_says_so(
    agent: Agents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    place = agent(STREAM.replace("lost 0", "lost 17"), 1)
    monkeypatch.setattr("flashbed.bench.tracing.record.ThisMachine", lambda: place)
    out = tmp_path / "out"
    arguments = ["trace", "--flash", "--out", str(out)]
    arguments += [part for name in ("csv", "perfetto", "flashmon") for part in ("--export", name)]
    assert status_of([*arguments, "--", "cat", "a"], monkeypatch) == 1
    said = capsys.readouterr()
    assert "17 events were lost; raise --buffer-kib" in said.err
    assert "not probed: nothing_such" in said.err
    assert "ECC: 3 bits corrected, 1 steps not; 0 blocks went bad" in said.out
    tables = {f"{name}.{kind}" for name in load(out).tables for kind in ("csv", "parquet")}
    others = {"trace.json", "flashmon.log", "trace.perfetto-trace"}
    assert {path.name for path in out.iterdir()} == tables | others
    assert json.loads((out / "trace.json").read_text())["lost"] == 17
    assert status_of(["table", str(out), "flash"], monkeypatch) == 0
    assert len(capsys.readouterr().out.splitlines()) == 7
    assert status_of(["report", str(out)], monkeypatch) == 0
    page = (out / "report.html").read_text()
    assert "17 events were lost" in page
    for title in ("Over time", "Layer by layer", "By task"):
        assert f"<b>{title}.</b>" in page


def test_what_a_board_wrote_alone_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "flash.trace").write_text(STREAM)
    (tmp_path / "flashmon.log").write_text(written_log(traced().flash))
    out = tmp_path / "out"
    for name, target in (("flash.trace", "board"), ("flashmon.log", "board")):
        arguments = ["trace", "--read", str(tmp_path / name), "--out", str(out)]
        assert status_of([*arguments, "--export", "perfetto"], monkeypatch) == 0
        trace = load(out)
        assert (trace.facts.name, trace.facts.target) == (name, target)
        assert trace.flash["kind"].to_list() == traced().flash["kind"].to_list()
        assert trace.vfs.height == (3 if name == "flash.trace" else 0)
        assert status_of(["report", str(out)], monkeypatch) == 0
    cut = STREAM[: STREAM.index("lost 0")]
    (tmp_path / "flash.trace").write_text(cut)
    arguments = ["trace", "--read", str(tmp_path / "flash.trace"), "--out", str(out)]
    assert status_of(arguments, monkeypatch) == 1
    assert "the trace was cut off; what arrived is kept" in capsys.readouterr().err
    assert status_of([*arguments, "--", "ls"], monkeypatch) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["trace"], "a command to trace, or --seconds"),
        (["trace", "--export", "pdf", "--", "ls"], "--export pdf: perfetto, csv or flashmon"),
        (["trace", "--points", "low", "--", "ls"], "--points low: nand, page or mtd"),
        (["trace", "--case", "x", "--", "ls"], "--set, --case, --cost: not for a command"),
        (["trace", "--on", "uml", "a", "b"], "takes one experiment or file of operations"),
        (["trace", "--on", "sim", "nothing.ops"], "nothing.ops: no such file"),
        (["trace", "--on", "sim", "readahead/figure3"], "cases on sim, only one can be traced"),
        (
            ["trace", "--on", "mars", "sqlite/requests"],
            "--on mars: no such target; there are host, sim",
        ),
    ],
)
def test_what_cannot_be_meant_is_one_line(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert status_of(arguments, monkeypatch) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


OPERATIONS = (
    "flashbed-ops 1\nopen 0 a wo,create\nwrite 0 0 20000 1 0\nfsync 0\nclose 0\nprepared\n"
    "drop_caches\nopen 0 a ro\nmark\nread 0 0 4096\nread 0 8192 4096\n"
)


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("sim", marks=pytest.mark.extension),
        pytest.param("uml", marks=pytest.mark.uml),
    ],
)
def test_without_kprobes_the_flash_is_traced_and_the_rest_said(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "my.ops").write_text(OPERATIONS)
    out = tmp_path / "out"
    arguments = ["trace", "--on", target, "--out", str(out), str(tmp_path / "my.ops")]
    assert status_of(arguments, monkeypatch) == 0
    said = capsys.readouterr()
    assert f"{target}: no kprobes there: the VFS and functions are not traced" in said.err
    trace = load(out)
    assert trace.requests["op"].to_list() == ["read", "read"]
    assert trace.flash.height > 2
    assert trace.vfs.height == 0
    if target == "uml":
        assert trace.flash["duration_ns"].min() == 127_000
    assert status_of([*arguments[:3], "--vfs", *arguments[5:]], monkeypatch) == 1
    assert "only --flash can be traced" in capsys.readouterr().err


def answered(path: Path, *queries: str) -> list[list[tuple[object, ...]]]:
    """What trace_processor answers, a list of rows a query; skips where it is not installed.

    Its package fetches the program from its authors' host at first use; what is on the path is
    taken instead, so no test asks a network.
    """
    shell = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
    if shell is None:
        pytest.skip("trace_processor is not on the path: perfetto.dev/docs/analysis")
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    with TraceProcessor(trace=str(path), config=TraceProcessorConfig(bin_path=shell)) as processor:
        return [[tuple(vars(row).values()) for row in processor.query(text)] for text in queries]


def check_in_trace_processor(trace: Trace, path: Path) -> None:
    """Tracks, slices with their durations, and counters are there, and nothing was amiss."""
    perfetto.write_perfetto(trace, path)
    wrong, tracks, drawn, counted = answered(
        path,
        "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
        "select distinct parent.name as name from track join track as parent "
        "on track.parent_id = parent.id",
        "select parent.name as layer, track.name as task, slice.name as name, slice.dur as dur, "
        "count(*) as times from slice join track on slice.track_id = track.id "
        "join track as parent on track.parent_id = parent.id group by 1, 2, 3, 4",
        "select track.name as name, count(*) as times from counter join track "
        "on counter.track_id = track.id group by 1",
    )
    assert wrong == []
    expected = Counter[tuple[object, ...]]()
    for (layer, task, name, duration), times in slices(path).items():
        expected[layer, task, name, max(duration, 0)] += times  # an instant takes no time there
    assert {row[:4]: row[4] for row in drawn} == expected
    assert {layer for layer, *_ in expected} <= {name for (name,) in tracks}
    counters = {
        perfetto.CACHED: len(list(perfetto.cached_pages(trace))),
        perfetto.FREE: len(list(perfetto.free_blocks(trace))),
    }
    assert {row[0]: row[1] for row in counted} == {
        name: times for name, times in counters.items() if times
    }


def test_trace_processor_opens_the_file(tmp_path: Path) -> None:
    check_in_trace_processor(traced(), tmp_path / "trace")


def test_a_trace_processor_that_is_another_fails_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is not installed: the check is not one that any answer passes."""
    right: list[list[tuple[object, ...]]] = [
        [],
        [(layer,) for layer in perfetto.LAYERS],
        [
            ("VFS", "cat", "read", 50, 1),
            ("page cache", "cat", "cache-add", 0, 2),
            ("file system", "cat", "jffs2_readpage", 40, 1),
            ("file system", "cat", "jffs2_do_readpage", 20, 1),
            ("file system", "kworker/0:1", "jffs2_write_end", 0, 1),
            ("flash", "cat", "read", 0, 2),
            ("flash", "kworker/0:1", "program", 0, 3),
            ("flash", "kworker/0:1", "erase", 0, 1),
        ],
        [(perfetto.CACHED, 2), (perfetto.FREE, 3)],
    ]
    answers = right
    monkeypatch.setattr("tests.layers.tracing.test_trace.answered", lambda *_: answers)
    check_in_trace_processor(traced(), tmp_path / "trace")
    for number, row in ((0, ("flow_no_begin", 1)), (2, ("flash", "cat", "read", 7, 1))):
        answers = [[*rows, row] if at == number else rows for at, rows in enumerate(right)]
        with pytest.raises(AssertionError):
            check_in_trace_processor(traced(), tmp_path / "trace")
