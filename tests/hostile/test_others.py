"""Files that others make: cost models, windows of load, studies, and results in every state."""

from __future__ import annotations

import io
import json
import tomllib
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hostile.calls import Call, Worker
from tests.hostile.conftest import Kept
from tests.hostile.drawn import bent, bent_lines, bent_toml, damaged, texts
from tests.hostile.good import EXPERIMENT, RECORDING, check, few, lines_of, toml_of
from tests.support import PROJECT as ROOT

pytest.importorskip("flashbed._sim", reason="the simulator is not compiled; make build")

pytestmark = pytest.mark.timeout(100_000)

PRICES = {
    "unit": "ns", "prices": {"request": 1000.0, "byte": 2.0},
    "standard_errors": {"request": 10.0, "byte": 0.1}, "covariance": [[1.0, 0.0], [0.0, 1.0]],
    "scatter": 0.1, "residual_mean_pct": 1.0, "residual_max_pct": 2.0, "held_out_mean_pct": 1.0,
    "held_out_max_pct": 2.0, "held_out_within": 1.0,
}  # fmt: skip
QUANTITIES = ("time_ns", "flash_reads", "flash_programs", "flash_erases", "energy_nj",
              "component_energy_nj")  # fmt: skip


def model() -> dict[str, Any]:
    """A cost model of `insert`, as `flashbed model sqlite` keeps one."""
    from flashbed.answers.costs.terms import TERMS as KNOWN_TERMS
    from flashbed.plan.database import PAPERS

    names = ["request", "record_kib"]
    prices = {
        **PRICES, "prices": dict.fromkeys(names, 3.0), "standard_errors": dict.fromkeys(names, 1.0),
    }  # fmt: skip
    one = {
        "setting": {
            "target": "sim", "board": "emulated", "kernel": "6.1", "fs": "ubifs",
            "read_ahead_kib": 128, "mount": "default", "state": "new", "faults": "none",
            "database": "papers",
        },
        "pattern": "insert", "board_sha256": "0" * 64, "kernel_sha256": "0" * 64,
        "energy_convention": None, "cases": 10, "held_out_cases": 2, "held_out_requests": [10],
        "held_out_request_bytes": [100],
        "ranges": {
            "requests": [1, 1000], "request_bytes": [1, 1000], "page_bytes": [PAPERS.page_bytes],
            "cache_pages": [1, 10_000], "records": [0, 10_000],
            "terms": dict.fromkeys(KNOWN_TERMS, 1e9),
        },
        "terms": names,
        "quantities": {name: prices if name != "energy_nj" else None for name in QUANTITIES},
    }  # fmt: skip
    return {
        "format": "flashbed-model 1", "flashbed_version": "0.1.0", "models": [one],
        "sources": [{"experiment": "t/x", "experiment_sha256": None, "commit": None, "cases": 10}],
    }  # fmt: skip


PREDICT = ("predict", "model.json", "--pattern", "insert", "--requests", "100",
           "--request-bytes", "100")  # fmt: skip


def as_json(values: object) -> bytes:
    """What JSON cannot represent becomes text."""
    return json.dumps(values, default=str).encode("utf-8", "surrogatepass")


def test_the_model_is_good(worker: Worker) -> None:
    assert worker.ends(Call(PREDICT, {"model.json": as_json(model())})) == (0, "")


@few
@given(data=st.data(), more=st.sampled_from(((), (), ("--rate", "1/min"), ("--format", "json"))))
def test_models(worker: Worker, data: st.DataObject, more: tuple[str, ...]) -> None:
    text = data.draw(damaged(as_json(data.draw(bent(model())))))
    check(worker, Call((*PREDICT, *more), {"model.json": text}))


@few
@given(st.data())
def test_windows(worker: Worker, data: st.DataObject) -> None:
    lines = ("start_s,end_s,label", "0.41,0.5,one", "0.5,0.6,two")
    words = ("0.5,nan,1", "inf,1,0", "1e308,1e308,1", "-1,-1,-1", "a,b,c", "0.6,0.5,x", '"', ",")
    files = {"r": lines_of(RECORDING), "w": data.draw(bent_lines(lines, words))}
    offset = data.draw(st.sampled_from(("0", "edge", "nan", "1e308", "-1", "x")))
    check(worker, Call(("power", "fit", "r", "--windows", "w", "--offset", offset), files))


COLUMNS = {
    "case_id": pl.String(), "target": pl.String(), "block": pl.Int64(),
    "erases_measured": pl.Int64(), "state": pl.String(),
}  # fmt: skip
numbers = st.integers(-(2**63), 2**63 - 1)
of_a_kind: tuple[tuple[Any, st.SearchStrategy[Any]], ...] = (
    (pl.Int64(), st.none() | numbers | st.integers(0, 9)),
    (pl.Int32(), st.integers(0, 9)), (pl.UInt64(), st.integers(0, 2**64 - 1)),
    (pl.Float64(), st.floats()), (pl.Boolean(), st.booleans()), (pl.Binary(), st.binary()),
    (pl.String(), st.none() | texts | st.sampled_from(("good", "bad", "sim"))),
    (pl.Date(), st.dates()), (pl.List(pl.Int64()), st.lists(numbers, max_size=2)),
    (pl.Null(), st.none()), (pl.Struct({"a": pl.Int64()}), st.fixed_dictionaries({"a": numbers})),
)  # fmt: skip


@st.composite
def column(draw: st.DrawFn, rows: int, kind: Any) -> pl.Series:
    """A column of its kind, mostly."""
    kinds = [one for one in of_a_kind if one[0] == kind] * 3 + list(of_a_kind)
    chosen, value = draw(st.sampled_from(kinds))
    return pl.Series(draw(st.lists(value, min_size=rows, max_size=rows)), dtype=chosen)


def parquet(frame: pl.DataFrame) -> bytes:
    packed = io.BytesIO()
    frame.write_parquet(packed)
    return packed.getvalue()


@few
@given(st.data())
def test_wear_tables(worker: Worker, data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 4))
    made = {name: data.draw(column(rows, kind)) for name, kind in COLUMNS.items()}
    files = {"w.parquet": parquet(pl.DataFrame(made))}
    check(worker, Call(("lifetime", "w.parquet", "--rate", "1/h", "--endurance", "9999"), files))


OF_RESULTS: tuple[tuple[str, ...], ...] = (
    ("report", "good"), ("table", "good", "cases"), ("table", "good", "requests"),
    ("lifetime", "good", "--rate", "1/min"), ("power", "draw", "good"),
    ("model", "sqlite", "good"), ("run", "x.toml", "--out", "good"),
    ("power", "draw", "good", "--component"), ("verdicts", "small", "--results", "."),
)  # fmt: skip


@few
@given(data=st.data(), arguments=st.sampled_from(OF_RESULTS))
def test_tables_with_other_rows(
    worker: Worker, result: Kept, data: st.DataObject, arguments: tuple[str, ...]
) -> None:
    """A table whose Parquet is good and whose columns hold, or are, something else."""
    tables = sorted(n for n in result if n.startswith("good/") and n.endswith(".parquet"))
    chosen = data.draw(st.sampled_from(tables))
    frame = pl.read_parquet(io.BytesIO(result[chosen]))
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(frame.columns))
        way = data.draw(st.sampled_from(("values", "values", "values", "away", "rows", "twice")))
        if way == "values":
            made = data.draw(column(frame.height, frame.schema[name]))
            frame = frame.with_columns(made.alias(name))
        elif way == "away" and frame.width > 1:
            frame = frame.drop(name)
        elif way == "rows":
            frame = frame.head(data.draw(st.integers(0, 2)))
        else:
            frame = pl.concat([frame, frame])
    check(worker, Call(arguments, {**result, chosen: parquet(frame)}))


def validated() -> pl.DataFrame:
    """What `validate` keeps of two cases."""
    from flashbed.bench.validation import MEASURES

    counts = {f"{name}{end}": [3, 4] for name in MEASURES for end in ("", "_real")}
    errors = {f"{name}_error_pct": [0.0, None] for name in MEASURES}
    words = {
        "board": "emulated", "kernel": "6.1", "target": "uml", "suite": "reads", "kind": "default",
        "flashbed_version": "0.1.0", "commit": None, "message": None,
    }  # fmt: skip
    cases = {"case_id": ["validate-jffs2-a", "validate-ubifs-b"], "gc_choices": [None, 1]}
    return pl.DataFrame({**cases, **counts, **errors}).with_columns(
        pl.lit(word, pl.String).alias(name) for name, word in words.items()
    )


@few
@given(st.data())
def test_validation(worker: Worker, data: st.DataObject) -> None:
    frame = validated()
    for _ in range(data.draw(st.integers(0, 3))):
        name = data.draw(st.sampled_from(frame.columns))
        if data.draw(st.booleans()):
            frame = frame.with_columns(data.draw(column(2, frame.schema[name])).alias(name))
        else:
            frame = frame.drop(name)
    check(worker, Call(("report", "v", "--out", "p"), {"v/validation.parquet": parquet(frame)}))


@few
@given(data=st.data(), way=st.sampled_from(("cut", "flipped", "flipped", "gone", "name", "other")))
def test_parts(worker: Worker, result: Kept, data: st.DataObject, way: str) -> None:
    """A run that continues from parts, one of which is damaged."""
    files: dict[str, bytes | str | None] = {
        name: text for name, text in result.items() if not name.endswith(".parquet")
    }
    for name in ("cases", "requests", "finished", "wear"):
        files[f"good/parts/000001/{name}.parquet"] = result[f"good/{name}.parquet"]
    parts = [name for name in files if "parts" in name]
    name = data.draw(st.sampled_from(parts))
    there = files.pop(name)
    assert isinstance(there, bytes)
    at = data.draw(st.lists(st.integers(0, len(there) - 1), min_size=1, max_size=12))
    if way == "cut":
        files[name] = there[: at[0]]
    elif way == "flipped":
        changed = bytearray(there)
        for place in at:
            changed[place] = data.draw(st.integers(0, 255))
        files[name] = bytes(changed)
    elif way == "other":
        files[name] = files[data.draw(st.sampled_from([n for n in parts if n != name]))]
    elif way == "name":
        word = data.draw(texts).replace("\0", "").replace("/", "")[:100] or "x"
        files[f"good/parts/{word.strip('.') or 'y'}/cases.parquet"] = there
    check(worker, Call(("run", "x.toml", "--out", "good"), files))


MARKERS = ("good/run.json", "traced/trace.json")


@few
@given(data=st.data(), name=st.sampled_from(MARKERS), arguments=st.sampled_from(OF_RESULTS))
def test_markers(
    worker: Worker, result: Kept, data: st.DataObject, name: str, arguments: tuple[str, ...]
) -> None:
    text = data.draw(damaged(as_json(data.draw(bent(json.loads(result[name]))))))
    if name.startswith("traced"):
        arguments = data.draw(st.sampled_from((("report", "traced"), ("table", "traced", "flash"))))
    check(worker, Call(arguments, {**result, name: text}))


STUDY = {
    "experiments": ["x"],
    "study": {"title": "t", "source": "s", "text": "x"},
    "item": [{
        "id": "One", "title": "t",
        "sentence": [{"text": "s", "claims": ["x/holds"]}, {"text": "t", "cannot": "c"}],
    }],
}  # fmt: skip


def judged() -> dict[str, Any]:
    """An experiment with a figure and a claim, of two cases."""
    values = tomllib.loads((ROOT / "tests" / "support" / "small.toml").read_text())
    grid = {**values["grid"][1], "targets": ["sim"], "fs": ["jffs2"], "pattern": ["random"],
            "requests": [8], "seed": [1]}  # fmt: skip
    sim = {"board": "emulated", "kernel": "6.1", "note": "n"}
    claim = {
        "id": "holds", "item": "One", "text": "t", "source": "s", "reading": "r", "published": 0,
        "unit": "%", "metric": "time_saved_pct", "fs": ["jffs2"], "pattern": ["random"],
        "requests": [8], "reduce": "min", "operator": ">", "bound": 0,
        "differs": [{
            "on": ["sim"], "why": "w", "evidence": "e {then}",
            "numbers": {"then": {
                "value": 64, "metric": "flash_reads_saved_pct", "fs": ["jffs2"],
                "pattern": ["random"], "requests": [8], "kernel": "6.1", "experiment": "t/x",
                "board": "emulated", "reduce": "only",
            }},
        }],
    }  # fmt: skip
    figures = [{key: one[key] for key in one if key != "published"} for one in values["figure"]]
    return {
        "experiment": EXPERIMENT["experiment"], "workload": values["workload"], "grid": [grid],
        "measures": values["measures"], "compared": {"sim": sim}, "figure": figures[:1],
        "claim": [claim],
    }  # fmt: skip


RUN_STUDY = ("reproduce", "t", "--on", "sim", "--out", "o")
CHECK_STUDY = ("verdicts", "t", "--results", "o", "--check")


@pytest.fixture(scope="module")
def study(worker: Worker) -> dict[str, bytes | str | None]:
    """Files of a good study and of its results."""
    from tests.hostile.good import files_of

    sources: dict[str, bytes | str | None] = {
        "../root/experiments/t.toml": toml_of(STUDY),
        "../root/experiments/t/x.toml": toml_of(judged()),
    }
    assert worker.ends(Call(RUN_STUDY, sources))[0] == 0
    assert worker.ends(Call(("list",), sources)) == (0, "")
    return {**files_of(worker.folder / "work"), **sources} | {
        f"o/{name}": text for name, text in files_of(worker.folder / "work" / "o").items()
    }


@few
@given(data=st.data(), of=st.booleans(), arguments=st.sampled_from((
    RUN_STUDY, CHECK_STUDY, CHECK_STUDY, CHECK_STUDY[:-1], ("report", "o/x"), ("list",),
)))  # fmt: skip
def test_studies(
    worker: Worker, study: dict[str, Any], data: st.DataObject, of: bool, arguments: tuple[str, ...]
) -> None:
    """The experiment or the study is bent, also as the run has kept it."""
    good, names = (
        (STUDY, ["../root/experiments/t.toml"])
        if of
        else (judged(), ["../root/experiments/t/x.toml", "o/x/experiment.toml"])
    )
    text = data.draw(bent_toml(good))
    check(worker, Call(arguments, {**study, **dict.fromkeys(names, text)}))


PRODUCT: dict[str, Any] = {
    "name": "thing",
    "stack": [{"name": "nor", "set": ["fs=jffs2", "board=emulated-small", "layout=default"]}],
    "program": [{"name": "one", "run": "one.ops", "rate": "1/h", "set": ["read_ahead_kib=0"]}],
    "update": [],
    "limits": {"time_ms": 20.0},
    "together": {"years": 10.0},
}  # fmt: skip
LASTING = ("lifetime", "p.toml", "--endurance", "9999")
UPDATES = [[], [{"volume": "rootfs_b", "rate": "1/mo"}]]
WRITES = lines_of(("flashbed-ops 1", "open 0 a rw,create", "write 0 0 4096 1 50", "fsync 0"))


def test_the_product_is_good(worker: Worker) -> None:
    files = {"p.toml": toml_of(PRODUCT), "one.ops": WRITES}
    status, said = worker.ends(Call(LASTING, files))
    assert (status, "Traceback" in said) == (0, False), said


@few
@given(data=st.data(), command=st.sampled_from((LASTING, LASTING, ("check", "p.toml"))))
def test_products(worker: Worker, data: st.DataObject, command: tuple[str, ...]) -> None:
    product = {**PRODUCT, "update": data.draw(st.sampled_from(UPDATES))}
    files = {"p.toml": data.draw(bent_toml(product)), "one.ops": WRITES}
    check(worker, Call(command, files))
