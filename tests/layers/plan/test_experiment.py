"""Experiments expand to named cases, and can be narrowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from flashbed.base.errors import InputError
from flashbed.plan.case import Case
from flashbed.plan.experiment import ExperimentError, experiment_names, load_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.program.operations import parse
from flashbed.running.programs import programs_of


def cases(*settings: str) -> list[Case]:
    experiment = load_experiment("one")
    return [item.case for item in plan(experiment, parse_settings(settings))]


def test_figure_3_is_the_grid_of_the_paper() -> None:
    planned = plan(load_experiment("readahead/figure3"))
    ours = [item for item in planned if "emulator" in item.targets]
    stacks = 2 * 3 + 2 * 2 + 3  # kernels and file systems: omap3evm, emulated, 6.1 on emulated
    other_offsets = 3 * 2 * 10  # file systems, `random` and `random-once`, seeds
    assert len(planned) == (stacks * 11 + other_offsets) * 2 * 8  # seeds; on and off, requests
    assert {item.case.kernel for item in ours} == {"6.1"}
    assert {item.case.fs for item in ours} == {"jffs2", "yaffs2", "ubifs"}
    assert all("sim" in item.targets for item in planned)
    assert len({item.case.case_id for item in planned}) == len(planned)


def test_every_shipped_experiment_is_complete() -> None:
    for name in experiment_names():
        experiment = load_experiment(name)
        assert experiment.id == name
        chosen = [item.case for item in plan(experiment)]
        for program in programs_of(experiment, chosen[:: len(chosen) // 2 + 1]):
            assert parse(program.prepare)[-1].name == "prepared"
            marked = any(operation.name == "mark" for operation in parse(program.body))
            # Of a recording all is measured.
            assert marked != (experiment.workload.kind == "program")


def test_a_case_is_named_by_its_axes(small: Path) -> None:
    assert cases()[0].case_id == "jffs2-omap3evm-2.6.37-sequential-8x4096-of-524288-ra0-s1"


def test_settings_narrow(small: Path) -> None:
    assert len(cases()) == 96
    assert len(cases("kernel=6.1")) == 32
    assert {case.requests for case in cases("requests=8", "fs=ubifs")} == {8}
    assert {case.board for case in cases("fs=ubifs")} == {"emulated"}


def test_a_number_that_no_grid_has_is_added(small: Path) -> None:
    assert {case.requests for case in cases("requests=8,24")} == {8, 24}
    assert {case.read_ahead_kib for case in cases("read_ahead_kib=64")} == {64}
    assert {case.file_bytes for case in cases("file_bytes=1048576")} == {1048576}


def test_ubifs_is_mounted_with_bulk_read_where_it_is_asked_for(small: Path) -> None:
    experiment = load_experiment("one")
    without, bulk = programs_of(
        experiment,
        cases("fs=ubifs", "requests=8", "pattern=sequential", "read_ahead_kib=0", "seed=1")
        + cases(
            "fs=ubifs", "requests=8", "pattern=sequential", "read_ahead_kib=0", "seed=1",
            "mount=ubifs:bulk_read",
        ),
    )  # fmt: skip
    assert bulk.case_id == f"{without.case_id}-bulk_read"
    assert (without.stack.mounted, bulk.stack.mounted) == ("ubifs", "ubifs,bulk_read")
    assert (without.prepare, without.body) == (bulk.prepare, bulk.body)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("colour=red", "not AXIS=VALUE"),
        ("fs", "not AXIS=VALUE"),
        ("fs=", "not AXIS=VALUE"),
        ("fs=ext4", "fs=ext4: not in small/one: jffs2, ubifs, yaffs2"),
        ("requests=many", "requests takes whole numbers"),
        ("requests=0", "grid.1.requests.1: "),
        ("mount=bulk_read", "mount takes default, and FS:OPTION[+OPTION]"),
        ("mount=ubifs:compr=zlib", "mount takes default, and FS:OPTION[+OPTION]"),
        ("state=valid0.5~", "no such name, and no state such as valid0.6-obsolete0.2"),
        ("state.valid=2", "--set state.valid=2: valid: 2 is not at most 1"),
        ("state.colour=2", "no key of state; keys are seed, valid"),
        ("fs.kind=2", "no key of fs; it has no keys"),
        ("chip=read_array_ns", "not KEY=NUMBER[+KEY=NUMBER], such as read_array_ns=60000"),
        ("chip=tR=5", "chip=tR=5: tR: unknown key; there are page_bytes,"),
    ],
)
def test_a_bad_setting_is_refused(small: Path, setting: str, says: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        cases(setting)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("title = ", "titel = ", "experiment.titel: unknown key"),
        ("settle_ns = 1_000_000\n", "", "workload.settle_ns: missing"),
        ('kind = "micro-read"', 'kind = "macro"', "'macro' is no workload"),
        ('fs = ["jffs2", "yaffs2"]', 'fs = ["ext3"]', "grid.1.fs.1: "),
        ('targets = ["sim"]', 'targets = ["emulator"]', "2.6.37 does not run on emulator"),
        ('kernel = ["6.1"]', 'kernel = ["9.9"]', "9.9.toml: no such kernel"),
        ('operator = ">"', 'operator = "within"', "claim.1: low, high: go with"),
        ('id = "3-b"', 'id = "3-a"', "figure: two have the id '3-a'"),
    ],
)
def test_a_bad_experiment_is_refused_by_key(small: Path, old: str, new: str, says: str) -> None:
    file = small / "experiments" / "small" / "one.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(Exception, match=r"\.toml") as refused:
        load_experiment("one")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_random_offsets_are_pages_of_the_file_and_follow_the_seed(small: Path) -> None:
    experiment = load_experiment("one")
    chosen = cases("pattern=random", "fs=jffs2", "kernel=6.1", "requests=64", "read_ahead_kib=0")
    first, second = (program.body for program in programs_of(experiment, chosen))
    offsets = [int(op.fields[1]) for op in parse(first) if op.name == "read"]
    assert first != second
    assert len(offsets) == 64
    assert all(offset % 4096 == 0 and offset < 524288 for offset in offsets)


def test_requests_past_the_end_are_refused(small: Path) -> None:
    experiment = load_experiment("one")
    with pytest.raises(Exception, match="pass the end of a file"):
        programs_of(experiment, cases("requests=4096", "pattern=sequential"))


def test_a_kernel_or_board_that_has_a_profile_is_added_where_it_runs() -> None:
    experiment = load_experiment("readahead/figure3")
    newer = plan(experiment, parse_settings(["kernel=6.12"]))
    assert {item.case.kernel for item in newer} == {"6.12"}
    assert {item.targets for item in newer} == {("sim",), ("sim", "uml", "emulator")}
    other = plan(experiment, parse_settings(["board=emulated-4k", "kernel=6.1"]))
    assert {item.case.board for item in other} == {"emulated-4k"}
    assert {target for item in other for target in item.targets} == {"sim", "uml", "emulator"}
    with pytest.raises(InputError, match="no such kernel"):
        plan(experiment, parse_settings(["kernel=7.0"]))


def test_pauses_and_advice_are_axes_and_stand_in_the_name(small: Path) -> None:
    file = small / "experiments" / "small" / "one.toml"
    text = file.read_text()
    axes = 'seed = [1, 2]\npause_ns = [0, 5_000_000, 1500]\nadvice = ["none", "random"]\n'
    file.write_text(text.replace("seed = [1, 2]\n", axes, 1))
    experiment = load_experiment("one")
    planned = plan(experiment, parse_settings(["fs=yaffs2", "seed=1", "requests=8"]))
    named = {item.case.case_id.partition("-s1")[2]: item.case for item in planned}
    assert set(named) == {
        "", "-pause5ms", "-pause1500ns", "-randomadvice", "-pause5ms-randomadvice",
        "-pause1500ns-randomadvice",
    }  # fmt: skip
    (program,) = programs_of(experiment, [named["-pause5ms-randomadvice"]])
    operations = [str(operation) for operation in parse(program.body)]
    mark = operations.index("mark")
    assert operations[mark - 1] == "fadvise 0 0 0 random"
    assert operations[mark + 1 :: 2] == [one for one in operations if one.startswith("read ")]
    assert set(operations[mark + 2 :: 2]) == {"pause 5000000"}
    assert {case.advice for case in cases("advice=random", "fs=yaffs2")} == {"random"}


def test_what_a_workload_does_not_know_is_refused(small: Path) -> None:
    file = small / "experiments" / "small" / "one.toml"
    text = file.read_text().replace('kind = "micro-read"', 'kind = "micro-write"')
    file.write_text(text.replace("seed = [1, 2]\n", "seed = [1, 2]\npause_ns = [5]\n", 1))
    with pytest.raises(ExperimentError, match="pause_ns: micro-write has no pauses"):
        load_experiment("one")


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("set transactions 9", "grid: requests: the script has 9, no grid has"),
        ("set size 100 9999", "grid: file_bytes: the script has 9999, no grid has"),
        ("set fill creation valid 0.5", "grid: state.valid: the script has 0.5, no grid has"),
        ("set nothing", "script: line 1: 'set nothing' is not possible"),
    ],
)
def test_a_script_that_says_otherwise_than_the_axes_is_refused(
    small: Path, script: str, says: str
) -> None:
    file = small / "experiments" / "small" / "one.toml"
    text = file.read_text().replace(
        'kind = "micro-read"', f'kind = "postmark"\nscript = "{script}"'
    )
    grids = text.split("[[figure]]")[0]  # whose figures choose patterns of micro-read
    file.write_text(grids.replace('["sequential", "random"]', '["all"]'))
    with pytest.raises(InputError) as refused:
        load_experiment("one")
    assert says in str(refused.value)


def test_a_script_is_of_postmark_only(small: Path) -> None:
    file = small / "experiments" / "small" / "one.toml"
    text = file.read_text().replace('"micro-read"', '"micro-read"\nscript = "set number 5"')
    file.write_text(text)
    with pytest.raises(ExperimentError, match="script: only postmark has one"):
        load_experiment("one")


def test_a_window_may_be_left_to_the_kernel() -> None:
    experiment = load_experiment("figure3")
    settings = parse_settings(
        ["read_ahead_kib=0,default", "fs=jffs2", "seed=1", "requests=8", "pattern=sequential"]
    )
    planned = [item.case for item in plan(experiment, settings) if item.case.kernel == "2.6.37"]
    told = {case.case_id.split("-")[-2]: (case.forced_kib, case.window) for case in planned}
    assert told == {"ra0": (0, "forced"), "radefault": (None, "default")}
    (program,) = programs_of(experiment, planned[-1:])
    assert (program.stack.read_ahead_kib, program.stack.modelled_kib) == (None, 128)
    with pytest.raises(ExperimentError, match="read_ahead_kib takes whole numbers and default"):
        parse_settings(["read_ahead_kib=many"])
