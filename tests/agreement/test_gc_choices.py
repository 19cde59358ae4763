"""What the emulated board's JFFS2 chooses, seen there and chosen again by the simulator's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from flashbed.base.errors import RunError
from flashbed.bench.validation import LIMITS, compare, programs, summary
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.targets import load_target
from flashbed.targets.base import Batch, Program
from flashbed.targets.emulator import gc_choices

COUNTS = ("flash_reads", "flash_programs", "flash_erases")


def run(target: str, program: Program) -> Batch:
    (batch,) = load_target(target).run([program])
    assert batch.failures == ()
    return batch


@pytest.mark.emulator
@pytest.mark.extension
@pytest.mark.long
@pytest.mark.timeout(300)
def test_with_the_kernels_throws_collection_does_as_the_kernels() -> None:
    """A case whose erases follow the choices: another one collects another list's block."""
    suite = programs("writes", load_board("emulated-4k"), load_kernel("6.1"))
    (case,) = (one for one in suite if one.case_id == "validate-jffs2-full-90-unlink-and-write")
    real = run("emulator", replace(case, record_gc_choices=True))
    choices = real.gc_choices[case.case_id]
    lists = [choice for choice in choices if choice < 128]
    assert len(lists) >= 10
    assert all(0 <= choice < 3 * 128 for choice in choices)
    assert len(choices) > len(lists), "blocks were emptied, each of them another choice"
    alike = summary(compare(run("sim", replace(case, gc_choices=choices)).cases, real.cases))
    for name in COUNTS:
        assert alike[name]["worst_error_pct"] <= LIMITS["writes"]["emulator"][name][1], name
    # They are what decides: all from the clean list, and it is another case.
    clean = run("sim", replace(case, gc_choices=(127,) * len(lists)))
    assert summary(compare(clean.cases, real.cases))["flash_reads"]["worst_error_pct"] > 20


def test_throws_that_the_kernel_lost_are_none() -> None:
    case = replace(
        programs("writes", load_board("emulated"), load_kernel("6.1"))[0],
        case_id="a",
        record_gc_choices=True,
    )
    rows = (
        "info kernel 6.1",
        "value 5 jffs2_collect 130 82 jffs2_gcd_mtd0",
        "value 6 jffs2_refile 258 82 init",
        "value 7 jffs2_obsolete 127 82 init",
        "value 9 other 1 1 a",
    )
    both = traced({"a": (*rows, "lost 0"), "b": (*rows, "lost 0")})
    unasked = replace(case, case_id="b", record_gc_choices=False)
    assert gc_choices.recorded(both, [case, unasked]).gc_choices == {
        "a": (2, 2 * 128 + 2, 128 + 127)
    }
    assert gc_choices.recorded(traced({"a": (*rows, "lost 1")}), [case]).gc_choices == {}


def traced(rows: dict[str, tuple[str, ...]]) -> Batch:
    return Batch(cases=pl.DataFrame(), requests=pl.DataFrame(), flash=pl.DataFrame(), traced=rows)


def test_a_module_that_throws_none_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "jffs2.ko"
    path.write_bytes(b"no ELF file")
    with pytest.raises(RunError, match=r"^jffs2\.ko: cannot be read: "):
        gc_choices.tracers(path)
