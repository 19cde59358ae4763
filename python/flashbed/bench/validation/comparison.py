"""Compares simulator and kernel case by case, and summarises the errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from flashbed.answers.analysis.agreement import error_pct
from flashbed.stack.file_systems import FILE_SYSTEMS

__all__ = ["LIMITS", "MEASURES", "ComparedSuite", "compare", "limits_kept", "summary"]

MEASURES = {
    "flash_reads": "flash_reads",
    "flash_programs": "flash_programs",
    "flash_erases": "flash_erases",
    "flash_time": "flash_time_ns",
    "time": "time_ns",
}
"""Measure -> its column of `cases`."""

COUNTS = ("flash_reads", "flash_programs", "flash_erases")
LIMITS: Mapping[str, Mapping[str, Mapping[str, tuple[float, float]]]] = {
    "reads": {
        "emulator": {**dict.fromkeys(COUNTS, (2.0, 2.0)), "time": (5.0, 10.0)},
        "uml": dict.fromkeys((*COUNTS, "flash_time"), (0.0, 0.0)),
    },
    "writes": {
        "emulator": {**dict.fromkeys(COUNTS, (2.0, 5.0)), "time": (7.0, 15.0)},
        "uml": dict.fromkeys((*COUNTS, "flash_time"), (0.0, 0.0)),
    },
    "compressors": {
        "emulator": {**dict.fromkeys(COUNTS, (2.0, 5.0)), "time": (5.0, 10.0)},
        "uml": dict.fromkeys((*COUNTS, "flash_time"), (0.0, 0.0)),
    },
}
"""Suite -> target -> measure -> limits of its mean and worst error, percent."""


def compare(
    simulated: pl.DataFrame,
    real: pl.DataFrame,
    gc_choices: Mapping[str, Sequence[int]] | None = None,
) -> pl.DataFrame:
    """case_id, and for each measure the simulator's value, the kernel's and the error, percent.

    Both tables need case_id, the flash counts, flash_time_ns and time_ns. The error is that of
    analysis.agreement, null where the kernel's value is unknown. `gc_choices` counts JFFS2's
    choices that the simulator replayed from the kernel, null where they were not recorded.
    """
    columns = ["case_id", *MEASURES.values()]
    named = {column: name for name, column in MEASURES.items()}
    renamed = [frame.select(columns).rename(named) for frame in (simulated, real)]
    joined = renamed[0].join(
        renamed[1], on="case_id", how="inner", suffix="_real", maintain_order="left"
    )
    return joined.with_columns(
        error_pct(pl.col(name), pl.col(f"{name}_real")).alias(f"{name}_error_pct")
        for name in MEASURES
    ).join(_counts(gc_choices or {}), on="case_id", how="left", maintain_order="left")


def _counts(gc_choices: Mapping[str, Sequence[int]]) -> pl.DataFrame:
    rows = {
        "case_id": list(gc_choices),
        "gc_choices": [len(made) for made in gc_choices.values()],
    }
    return pl.DataFrame(rows, schema={"case_id": pl.String, "gc_choices": pl.Int64})


def summary(table: pl.DataFrame) -> dict[str, Any]:
    """Mean and worst error of each measure; null if the real target does not know it.

    User-mode Linux does not know the time.
    """
    result: dict[str, Any] = {"cases": table.height}
    for name in MEASURES:
        errors = table[f"{name}_error_pct"].drop_nulls().abs()
        result[name] = None
        if errors.len():
            result[name] = {
                "exact_share": (errors == 0).mean(),
                "mean_error_pct": errors.mean(),
                "worst_error_pct": errors.max(),
            }
    return result


def limits_kept(
    told: Mapping[str, Any], limits: Mapping[str, tuple[float, float]]
) -> dict[str, dict[str, Any]]:
    """Measure -> its limits and whether the summary `told` keeps them, without unknown ones."""
    return {
        name: {
            "mean_limit_pct": mean,
            "worst_limit_pct": worst,
            "kept": told[name]["mean_error_pct"] <= mean and told[name]["worst_error_pct"] <= worst,
        }
        for name, (mean, worst) in limits.items()
        if told[name] is not None
    }


@dataclass(frozen=True, kw_only=True)
class ComparedSuite:
    """The results of a suite on simulator and kernel.

    `table` is that of `compare`, for the cases that both ran; `refused` and `failed` say by case
    why the others are missing.
    """

    table: pl.DataFrame
    kinds: Mapping[str, str]
    """case_id -> kind, for every case of the suite."""
    limits: Mapping[str, tuple[float, float]]
    refused: Mapping[str, str]
    failed: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """What `flashbed validate --format json` prints."""
        told = summary(self.table)
        kind = pl.col("case_id").replace_strict(self.kinds, return_dtype=pl.String)
        by_kind = {}
        for name in dict.fromkeys(self.kinds.values()):
            refused = sum(self.kinds[case_id] == name for case_id in self.refused)
            by_kind[name] = {**summary(self.table.filter(kind == name)), "refused": refused}
        system = pl.col("case_id").str.starts_with
        return {
            **told,
            "limits": limits_kept(told, self.limits),
            "replayed": {
                "gc_choices": self.table["gc_choices"].sum(),
                "cases": (self.table["gc_choices"] > 0).sum(),
            },
            "file_systems": {
                fs: summary(part)
                for fs in FILE_SYSTEMS
                if (part := self.table.filter(system(f"validate-{fs}-"))).height
            },
            "kinds": by_kind,
            "refused": dict(self.refused),
            "failed": dict(self.failed),
            "rows": self.table.to_dicts(),
        }
