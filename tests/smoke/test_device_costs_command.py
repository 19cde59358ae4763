"""`flashbed cost` with a model of any chip: fit, predict, advise, as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.smoke.conftest import Run

SCRIPT = """\
CREATE TABLE log (at INTEGER PRIMARY KEY, what TEXT);
-- measured
INSERT INTO log (what) VALUES (hex(randomblob(100)));
"""
ASKED = "log.sql --set board=emulated-4k --set requests=50"
CHIPS = "chip=S34ML02G1,F59L4G81CA"


@pytest.mark.extension
@pytest.mark.timeout(300)
def test_a_model_of_any_chip_is_fitted_asked_and_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.sql").write_text(SCRIPT)
    few = "--set fs=yaffs2 --set requests=60,200 --out devices.json"
    status, out, err = run("cost", "fit", "models/devices", *few.split())
    assert status == 0, err
    assert out.startswith("Linux 6.1, fitted to emulated, emulated with W25N01GV,")
    assert "yaffs2: each chip predicted by a fit to the others" in out
    assert err.endswith("model: wrote devices.json\n")

    status, out, err = run("cost", "predict", "devices.json", *ASKED.split(), "--fs", "yaffs2")
    assert status == 0, err
    assert [line.split("  ")[1] for line in out.splitlines()[1:]] == [
        "time", "page reads", "page writes", "erases",
    ]  # fmt: skip

    asked = [*ASKED.split(), "--set", CHIPS, "--set", "fs=yaffs2", "--format", "json"]
    status, out, err = run("cost", "advise", "devices.json", *asked)
    assert status == 0, err
    assert "ms each" in err
    answer = json.loads(out)
    assert answer["headline"].startswith("take yaffs2, ")
    assert answer["checked"][0]["set"] == answer["advised"]["set"]
    for one in answer["checked"]:
        for name in ("time_ns", "page_writes"):
            assert one["predicted"][name] == pytest.approx(one["simulated"][name], rel=0.15)

    for arguments, says in (
        ("predict devices.json", "a model of any chip: what?"),
        ("predict devices.json log.sql --rate 1/min", "gives erases; `flashbed lifetime` years"),
        (f"predict devices.json {ASKED} --fs ubifs", "fs ubifs: the model has yaffs2"),
        (f"predict devices.json {ASKED} --set kernel=6.12 --fs yaffs2", "model is of Linux 6.1"),
        (f"predict devices.json {ASKED} --set pause_ns=9 --fs yaffs2", "counts no `pause`"),
        ("advise devices.json", "cost advise: what?"),
        (f"advise devices.json {ASKED} --goal space", "--goal space: the model predicts time"),
        (f"advise log.sql {ASKED}", "log.sql: not a model of"),
        ("fit nothing", "nothing: not the result of a run, and no experiment"),
        ("fit programs/logger", "a device model is fitted to requests of SQL"),
    ):  # fmt: skip
        status, out, err = run("cost", *arguments.split())
        assert (status, out) == (2, ""), arguments
        assert says in err, arguments
        assert err.startswith("flashbed: "), arguments
