"""The simulated stack as a target: programs go in as text, columns come out as tables.

sim/ does all the modelling; this module only names codes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import polars as pl

from flashbed import _sim
from flashbed.base.errors import InputError, RunError
from flashbed.base.paths import shown
from flashbed.base.processors import processors
from flashbed.program.operations import writes
from flashbed.results.run_directory import CHIP_ALONE, SCHEMAS
from flashbed.stack.conditions import PPM
from flashbed.stack.flash_image import read_dump
from flashbed.stack.layouts import in_layout
from flashbed.stack.policies import Policy, simulated
from flashbed.stack.profiles import USUAL_COMPRESSOR, Board
from flashbed.stack.stack import Stack
from flashbed.targets.base import (
    PLAIN,
    Apart,
    Batch,
    Failure,
    Program,
    Run,
    RunOptions,
    Survey,
    SurveyedFile,
)
from flashbed.targets.failing import failure_of, failures_text
from flashbed.targets.fullness import FreeSpace, reached
from flashbed.targets.long_rows import LongRows

__all__ = ["ChipOnlyTarget", "SimTarget", "begun_with", "cases_of", "chip_of"]

CASES_PER_CALL = 2000
TEXT_PER_CALL = 4 << 20
"""Bytes of operations in a call: the results of its short cases are in memory together."""
RootImage = Callable[[Program], bytes]
"""Makes the image of a program's root. Raises `RunError`."""


class SimTarget:
    """The simulator, `flashbed._sim`."""

    name = "sim"
    software_time = True
    apart = Apart("preparation")

    def __init__(self, root_image: RootImage | None = None) -> None:
        self.root_image = root_image

    def prepare(self, say: Callable[[str], None]) -> None:
        """Does nothing: there is nothing to fetch. See `Target.prepare`."""

    def run(self, programs: Sequence[Program], options: RunOptions = PLAIN) -> Iterator[Batch]:
        """Runs programs, those of one board and kernel in one call. See `Target.run`."""
        threads = options.threads or processors()
        done = 0
        programs, refused = _modelled(programs)
        if refused:
            done += len(refused)
            none = pl.DataFrame()
            yield Batch(cases=none, requests=none, flash=none, failures=tuple(refused))
        for group in _groups(programs):
            first = group[0]
            options.progress(f"{first.stack.board.name}, Linux {first.stack.kernel.name}", done)
            try:
                kernel, root = self._on_root(first)
                dump = _dump_of(first)
            except (InputError, RunError) as why:
                yield failed_alike(group, str(why))
                done += len(group)
                continue
            results = _sim.run_cases(
                first.stack.simulated_board,
                kernel,
                cases_of(group),
                recorded=_recorded(first, options),
                threads=threads,
                sink=self._sink(group, options.long_rows),
                root=root,
                dump=dump,
            )
            done += len(group)
            batch = self._without_times(batch_of(results, group))
            if options.long_rows is not None:
                for case_id in _unpriced(results, group):
                    options.long_rows.without_times(case_id)
            yield batch
            if results.interrupted is not None:
                raise results.interrupted
            options.progress(f"{first.stack.board.name}, Linux {first.stack.kernel.name}", done)

    def _on_root(self, first: Program) -> tuple[str, tuple[int, bytes] | None]:
        """The kernel of a group, and the volume and image of its root if that holds its files.

        Raises `RunError`.
        """
        stack, layout = first.stack, first.stack.layout
        volume = stack.root_volume
        if layout is None or volume is None:
            return stack.simulated_kernel, None
        if self.root_image is None:
            raise RunError("layout.files=root: nothing makes the root's image here")
        image = self.root_image(first)
        sizes = layout.image_bytes | {volume.name: len(image)}
        kernel = in_layout(stack.kernel_alone, layout, sizes)
        return kernel, (layout.volume.index(volume), image)

    def _without_times(self, batch: Batch) -> Batch:
        """The batch without the times that this target does not know."""
        return batch

    def _sink(
        self, group: Sequence[Program], rows: LongRows | None
    ) -> Callable[[_sim.Piece], None] | None:
        """A function that takes the rows of a case before it has ended."""
        if rows is None:
            return None

        def take(piece: _sim.Piece) -> None:
            batch = self._without_times(
                Batch(
                    cases=pl.DataFrame(),
                    requests=_requests(piece, group),
                    flash=_flash(piece, group),
                )
            )
            frames = {"requests": batch.requests, "flash": batch.flash}
            tables = {name: frame for name, frame in frames.items() if frame.height}
            rows.add(group[piece.case_index].case_id, tables)

        return take


class ChipOnlyTarget(SimTarget):
    """The simulator on boards whose software takes no time, to compare with user-mode Linux.

    Threads are scheduled by time, so software that takes time moves garbage collection to other
    moments. Times are null, as on user-mode Linux.
    """

    name = CHIP_ALONE
    software_time = False

    def run(self, programs: Sequence[Program], options: RunOptions = PLAIN) -> Iterator[Batch]:
        """See `Target.run`."""
        yield from super().run([program.in_user_mode for program in programs], options)

    def _without_times(self, batch: Batch) -> Batch:
        return replace(
            batch,
            cases=_without(batch.cases, "time_ns"),
            requests=_without(batch.requests, "latency_ns"),
        )


def _without(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    known = column in frame.columns
    return frame.with_columns(pl.lit(None, pl.Int64).alias(column)) if known else frame


def _dump_of(program: Program) -> _sim.Dump | None:
    """What a program's chip holds at first. Raises `InputError`."""
    if program.dump is None:
        return None
    dump = program.dump
    dump.check()
    return begun_with(dump.path, program.stack, volume=dump.volume, compressor=dump.compressor)


def begun_with(
    file: Path, stack: Stack, *, volume: str | None, compressor: str | None
) -> _sim.Dump:
    """A dump as a stack's chip begins with it. Raises `InputError`."""
    if stack.layout is not None:
        raise InputError("a dump of a layout is not modelled; --on uml runs the kernel's")
    image = read_dump(file, stack.board.chip)
    if stack.fs == "ubifs" and compressor is not None:
        usual = stack.compressor == USUAL_COMPRESSOR
        mounted = replace(stack, compressor=compressor) if usual else stack
        compressor = json.loads(mounted.simulated_kernel)["ubifs"]["compressor"]
    try:
        return _sim.Dump(image, stack.simulated_board, volume, compressor)
    except ValueError as why:
        raise InputError(f"{shown(file)}: {why}") from None


def _recorded(program: Program, options: RunOptions) -> _sim.Recorded:
    return _sim.Recorded(
        requests=program.record_requests,
        flash=options.trace_flash,
        wear=program.record_wear,
        flush=program.record_flush,
        waits=options.trace_waits and program.record_requests,
    )


def _modelled(programs: Sequence[Program]) -> tuple[Sequence[Program], list[Failure]]:
    """The programs whose mounts and settings the simulator models, and failures for the others."""
    unknown: dict[str, _sim.NotModelled] = {}
    for mount in {each.stack.simulated_fs for each in programs if not each.stack.not_simulated}:
        try:
            _sim.Case(fs=mount, prepare="", body="", read_ahead_kib=0, chip=_sim.Chip())
        except _sim.NotModelled as error:
            unknown[mount] = error
    modelled, refused = [], []
    for program in programs:
        why = unknown.get(program.stack.simulated_fs)
        by_kernel = program.stack.refused_by_kernel
        if by_kernel is not None:
            refused.append(Failure(case_id=program.case_id, message=by_kernel))
        elif program.stack.not_simulated is not None:
            refused.append(program.not_measured(program.stack.not_simulated))
        elif why is not None:
            refused.append(
                Failure(case_id=program.case_id, message=str(why), not_modelled=why.what)
            )
        elif _writes_buffers_at_once(program):
            said = f"{_AT_ONCE} is not modelled"
            refused.append(Failure(case_id=program.case_id, message=said, not_modelled=_AT_ONCE))
        elif _tears_cells(program):
            said = f"{_OF_CELLS} is not modelled"
            refused.append(Failure(case_id=program.case_id, message=said, not_modelled=_OF_CELLS))
        else:
            modelled.append(program)
    return modelled, refused


_AT_ONCE = "dirty_writeback_centisecs=0 on jffs2"


def _writes_buffers_at_once(program: Program) -> bool:
    """Whether JFFS2's delayed flush follows each node, as its worker comes to run."""
    return program.stack.fs == "jffs2" and program.stack.vm.dirty_writeback_centisecs == 0


_OF_CELLS = "a power cut on cells of several bits"


def _tears_cells(program: Program) -> bool:
    """Whether a torn page would take another one with it, or keep Linux from mounting."""
    return bool(program.cuts) and program.stack.board.chip.cells != "slc"


def cases_of(programs: Sequence[Program]) -> list[_sim.Case]:
    """Programs in the form that the simulator takes.

    Cuts need no seed: in the simulator, what is left of a torn change does not depend on chance.
    """
    chips: dict[Stack, _sim.Chip] = {}
    policies: dict[tuple[Policy, ...], _sim.Policies | None] = {}
    cases = []
    for program in programs:
        chip = chips.get(program.stack)
        if chip is None:
            chip = chips[program.stack] = chip_of(program.stack)
        own = program.stack.policies
        if own not in policies:
            policies[own] = simulated(own)
        cases.append(
            _sim.Case(
                fs=program.stack.simulated_fs,
                prepare=program.prepare,
                body=program.body,
                read_ahead_kib=program.stack.modelled_kib,
                chip=chip,
                policies=policies[own],
                cuts=[cut.change for cut in program.cuts],
                gc_choices=program.gc_choices,
            )
        )
    return cases


def chip_of(stack: Stack) -> _sim.Chip:
    """The chip that programs begin with."""
    given = stack.faults
    partition = stack.board.partition
    first = stack.blocks.start - partition.first_block
    bad = (block - first for block in given.bad(partition.blocks))
    bad_blocks = tuple(block for block in bad if 0 <= block < len(stack.blocks))
    erases = stack.erases[first : first + len(stack.blocks)]
    if not given.while_measuring:
        return _sim.Chip(erases=erases, bad_blocks=bad_blocks)
    program_fail_ppm, program_fail = _failing(given.program_fail)
    erase_fail_ppm, erase_fail = _failing(given.erase_fail)
    flips = given.bit_flips
    faults = _sim.Faults(
        seed=given.seed,
        endurance_erases=given.endurance_erases,
        program_fail_ppm=program_fail_ppm,
        program_fail=program_fail,
        erase_fail_ppm=erase_fail_ppm,
        erase_fail=erase_fail,
        bit_flip_ppm=round(flips.rate * PPM) if flips else 0,
        bits_flipped=flips.bits if flips else 0,
        errors=_sim.ErrorCurve(**vars(rates)) if (rates := stack.bit_errors) else None,
    )
    return _sim.Chip(erases=erases, bad_blocks=bad_blocks, faults=faults)


def _failing(given: float | tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """A failure rate in millionths, and the numbers of operations that fail."""
    return (0, given) if isinstance(given, tuple) else (round(given * PPM), ())


def failed_alike(group: Sequence[Program], why: str) -> Batch:
    """That a whole group could not be measured."""
    none = pl.DataFrame()
    failures = tuple(program.not_measured(why) for program in group)
    return Batch(cases=none, requests=none, flash=none, failures=failures)


def _groups(programs: Sequence[Program]) -> Iterator[list[Program]]:
    groups: dict[tuple[object, ...], list[Program]] = {}
    for program in programs:
        recorded = (program.record_wear, program.record_requests, program.record_flush)
        usual = program.stack.compressor == USUAL_COMPRESSOR
        mounted = "" if usual else program.stack.mounted
        key = (
            program.stack.board.sha256,
            program.stack.kernel.sha256,
            program.stack.vm,
            program.stack.layout and program.stack.layout.values_json,
            mounted,
            *recorded,
            "" if program.stack.root_volume is None else program.prepare,
            program.dump,
        )
        groups.setdefault(key, []).append(program)
    for group in groups.values():
        call: list[Program] = []
        text = 0
        for program in group:
            text += len(program.body)
            if call and (len(call) == CASES_PER_CALL or text > TEXT_PER_CALL):
                yield call
                call, text = [], len(program.body)
            call.append(program)
        yield call


def _column(values: bytes) -> pl.Series:
    """A column of the simulator: little-endian i64."""
    rows = len(values) // 8
    if rows == 0:
        return pl.Series([], dtype=pl.Int64)
    whole = pl.Series([values], dtype=pl.Binary)
    array = whole.bin.reinterpret(dtype=pl.Array(pl.Int64, rows), endianness="little")
    return array.reshape((-1,))


def _frame(columns: Mapping[str, object]) -> pl.DataFrame:
    """Turns columns of the simulator, such as `_sim.CaseColumns`, into a table."""
    frame = pl.DataFrame({name: _column(cast(bytes, values)) for name, values in columns.items()})
    if not frame.width:
        return frame
    return frame.with_columns(pl.when(pl.all() != _sim.NULL).then(pl.all()).name.keep())


def _named(codes: pl.Series, names: Sequence[str]) -> pl.Series:
    """Codes as names; null stays null."""
    return pl.Series(names, dtype=pl.String).gather(codes)


def batch_of(results: _sim.Results, programs: Sequence[Program]) -> Batch:
    """The simulator's columns as tables. `case_index` is an index into `programs`."""
    case_ids = [program.case_id for program in programs]
    unpriced = _unpriced(results, programs)
    cases = _unknown(_cases(results.cases, programs), unpriced, "time_ns", "elapsed_ns")
    requests = _unknown(_requests(results, programs), unpriced, "latency_ns")
    if cases.width:
        why = [unpriced.get(case_id) for case_id in cases["case_id"]]
        failures = {case_ids[index]: _failures(made) for index, made in results.failed.items()}
        failed = [failures.get(case_id) for case_id in cases["case_id"]]
        cases = cases.with_columns(
            pl.Series("time_unknown", why, pl.String), pl.Series("failed_errno", failed, pl.String)
        )
    return Batch(
        cases=cases,
        requests=requests,
        flash=_flash(results, programs),
        failures=tuple(
            Failure(
                case_id=case_ids[failure.case_index],
                message=failure.message,
                not_modelled=failure.what,
            )
            for failure in results.failures
        ),
        surveys=_surveys(results, case_ids),
        wear=_wear(results.wear, programs),
        gc_choices={case_ids[index]: tuple(made) for index, made in results.gc_choices.items()},
    )


def _failures(made: Sequence[tuple[int, int]]) -> str | None:
    return failures_text({failure_of(result): count for result, count in made})


_OF_ROOT = "copying up a root's files has no price"


def _unpriced(results: _sim.Results, programs: Sequence[Program]) -> dict[str, str]:
    """Cases whose times are not known, and why."""
    if programs[0].stack.root_volume is not None:
        return {program.case_id: _OF_ROOT for program in programs}
    board = programs[0].stack.board
    found = results.unpriced.items()
    return {programs[index].case_id: _no_price(name, board) for index, name in found}


def _no_price(compressor: str, board: Board) -> str:
    return f"{compressor} has no price on {board.name} (boards/{board.name}.toml, [software])"


def _unknown(frame: pl.DataFrame, case_ids: Collection[str], *columns: str) -> pl.DataFrame:
    """Removes times of cases that used something whose price is unknown."""
    if not case_ids or not frame.width:
        return frame
    known = pl.col("case_id").is_in(list(case_ids)).not_()
    return frame.with_columns(pl.when(known).then(pl.col(name)).alias(name) for name in columns)


def _surveys(results: _sim.Results, case_ids: Sequence[str]) -> tuple[Survey, ...]:
    blocks = results.blocks
    return tuple(_survey(survey, case_ids, blocks) for survey in results.surveys)


def _survey(found: _sim.Survey, case_ids: Sequence[str], blocks: Sequence[bytes]) -> Survey:
    return Survey(
        case_id=case_ids[found.case_index],
        change=found.change,
        mount_result=found.mount_result,
        mount_time_ns=found.mount_time_ns,
        files=tuple(
            SurveyedFile(
                file.path,
                file.size_bytes,
                tuple(_run(run, blocks) for run in file.runs),
                file.target,
            )
            for file in found.files
        ),
        probe_result=found.probe_result,
    )


def _run(run: _sim.Run, blocks: Sequence[bytes]) -> Run:
    what: tuple[int, int] | str | bytes | int = "zero"
    if run.errno is not None:
        what = run.errno
    elif run.seed is not None and run.compressibility is not None:
        what = run.seed, run.compressibility
    elif run.block is not None:
        what = blocks[run.block]
    return Run(run.offset_bytes, run.length_bytes, what)


def _cases(columns: _sim.CaseColumns, programs: Sequence[Program]) -> pl.DataFrame:
    case_ids = [program.case_id for program in programs]
    cases = _frame(columns)
    if not cases.width:
        return cases  # every case failed
    return cases.with_columns(_nothing_left(cases, programs)).select(
        _named(cases["case_index"], case_ids).alias("case_id"),
        *(column for column in cases.columns if column in SCHEMAS["cases"]),
        (pl.col("erase_count_mean_milli") / 1000).alias("erase_count_mean"),
        *_states(cases, programs),
        pl.Series(
            "read_ahead_kib", [programs[index].stack.modelled_kib for index in cases["case_index"]]
        ),
    )


def _leaving(table: pl.DataFrame, programs: Sequence[Program]) -> pl.Series:
    """Whether each row's case may leave dirty data in memory; see `operations.writes`."""
    leaving = [not program.record_flush or writes(program.body) for program in programs]
    return pl.Series(leaving, dtype=pl.Boolean).gather(table["case_index"])


def _nothing_left(table: pl.DataFrame, programs: Sequence[Program]) -> list[pl.Expr]:
    """The flush's columns; 0 for a case that only reads, as on a real kernel."""
    columns = [name for name in table.columns if "flush" in name]
    left = pl.lit(_leaving(table, programs))
    return [pl.when(left).then(name).otherwise(0).alias(name) for name in columns]


def _states(cases: pl.DataFrame, programs: Sequence[Program]) -> Sequence[pl.Series]:
    """The columns `state_valid` and `state_invalid`."""
    spaces = cases.select("case_index", "fresh_bytes", "free_bytes", "fresh_pages", "pages")
    states = [
        reached(
            FreeSpace(*space), programs[index].stack.fs, programs[index].stack.board.chip.page_bytes
        )
        for index, *space in spaces.iter_rows()
    ]
    names = ("state_valid", "state_invalid")
    return [
        pl.Series(name, [state[at] for state in states], pl.Float64)
        for at, name in enumerate(names)
    ]


def _requests(given: _sim.Results | _sim.Piece, programs: Sequence[Program]) -> pl.DataFrame:
    requests = _frame(given.requests)
    if not requests.width:
        return requests
    is_counted = all(program.record_changes for program in programs)
    return requests.select(
        _named(requests["case_index"], [program.case_id for program in programs]).alias("case_id"),
        _named(requests["op_code"], _sim.OP_NAMES).alias("op"),
        _named(requests["file_index"], given.file_names).alias("file"),
        pl.exclude("case_index", "op_code", "file_index", *(() if is_counted else ("changes",))),
    )


def _flash(given: _sim.Results | _sim.Piece, programs: Sequence[Program]) -> pl.DataFrame:
    flash = _frame(given.flash)
    if not flash.width:
        return flash  # the run did not trace
    return flash.select(
        _named(flash["case_index"], [program.case_id for program in programs]).alias("case_id"),
        _named(flash["kind"], _sim.KIND_NAMES).alias("kind"),
        _named(flash["task"], _sim.TASK_NAMES).alias("task"),
        pl.exclude("case_index", "kind", "task"),
    )


def _wear(columns: _sim.WearColumns, programs: Sequence[Program]) -> pl.DataFrame:
    """The wear table. Every block of the simulator is good: nothing wears out in it."""
    case_ids = [program.case_id for program in programs]
    wear = _frame(columns)
    if not wear.width:
        return wear  # the run did not record it
    return wear.with_columns(_nothing_left(wear, programs)).select(
        _named(wear["case_index"], case_ids).alias("case_id"),
        pl.exclude("case_index"),
        pl.lit("good").alias("state"),
    )
