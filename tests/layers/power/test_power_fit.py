"""Known energies are found again, and where they cannot be the reason is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashbed.answers.power.energy_fit import RailFit, fit_rail, mean_of
from flashbed.answers.power.noise import autocorrelation_time, level, quantum
from flashbed.answers.power.recording import PowerRecording, rails_of
from flashbed.answers.power.windows import Span, marked, of_file, pulses
from flashbed.base.errors import RunError
from tests.support.traces import IDLE_W, LOAD_W, RATE_HZ, Synthetic, synthetic

SEEDS = range(1, 13)


def by_marker(trace: PowerRecording, accuracy: float = 0.0) -> RailFit:
    (rail,) = rails_of(trace, {})
    return fit_rail(trace, rail, marked(trace, "marker"), pulses=False, accuracy=accuracy)


def by_pulses(trace: PowerRecording) -> RailFit:
    (rail,) = rails_of(trace, {})
    return fit_rail(trace, rail, pulses(trace, [rail]), pulses=True)


def errors(fit: RailFit, made: Synthetic) -> list[float]:
    """Relative error of each window, known to be there."""
    assert [window.problem for window in fit.windows] == [None] * len(made.energy_j)
    return [
        (window.energy_j or 0.0) / known - 1
        for window, known in zip(fit.windows, made.energy_j, strict=True)
    ]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "drifting", [{}, {"drift_w": 0.1}, {"drift_w": -0.3, "bend_w": 0.004}, {"ramp": 2}]
)
def test_energies_are_within_one_percent_at_20_db(seed: int, drifting: dict[str, float]) -> None:
    """Idle that drifts by half the load and more included."""
    made = synthetic(seed, **drifting)  # type: ignore[arg-type]
    found = by_pulses(made.recorded(marker=False))
    assert max(map(abs, errors(found, made))) < 0.01
    assert found.mean_w == pytest.approx(LOAD_W, rel=0.01)
    if not drifting.get("ramp"):  # a marker cuts edges off
        found = by_marker(made.recorded())
        assert max(map(abs, errors(found, made))) < 0.01
        assert found.mean_w == pytest.approx(LOAD_W, rel=0.01)
    assert found.snr_db == pytest.approx(20, abs=1.5)
    assert found.idle_w == pytest.approx(IDLE_W + drifting.get("drift_w", 0.0) / 2, rel=0.05)


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_uncertainties_are_of_the_size_of_the_errors(correlation: float) -> None:
    """Standard uncertainty: most errors are below it, hardly any above three times it."""
    ratios = []
    for seed in range(20):
        made = synthetic(seed, correlation=correlation, drift_w=0.02)
        for window, known in zip(by_marker(made.recorded()).windows, made.energy_j, strict=True):
            assert window.energy_j is not None
            assert window.energy_u_j is not None
            ratios.append((window.energy_j - known) / window.energy_u_j)
    assert 0.3 < np.std(ratios) < 1.2
    assert np.mean(np.abs(ratios) > 3) < 0.01


def test_an_energy_by_hand() -> None:
    """Without noise: 0.2 W for 1.5 s is 0.3 J, to the last digit; edges are known to a sample."""
    time_s = np.arange(4000) / RATE_HZ
    marker = ((time_s >= 1.0) & (time_s < 2.5)).astype(float)
    made = Synthetic(time_s, IDLE_W + LOAD_W * marker, marker, [0.3])
    (window,) = by_marker(made.recorded()).windows
    assert window.energy_j == pytest.approx(0.3, rel=1e-9)
    # Two edges known to a sample of 1 ms each: 0.2 W * 1 ms / sqrt(6), and nothing else.
    assert window.energy_u_j == pytest.approx(0.2e-3 / 6**0.5, rel=1e-6)
    assert window.begin_s == pytest.approx(0.9995)
    assert window.end_s == pytest.approx(2.4995)


def test_noise_that_hides_the_load_is_said_and_not_fitted() -> None:
    made = synthetic(1, snr_db=-35)
    found = by_marker(made.recorded())
    assert found.mean_w is None
    assert found.problem is not None
    assert found.problem.startswith("signal to noise is too low")
    assert all(window.energy_j is None for window in found.windows)
    with pytest.raises(RunError, match="signal to noise is too low to find load pulses"):
        by_pulses(synthetic(1, snr_db=6).recorded(marker=False))
    # A marker finds at 6 dB what pulses cannot: long windows average.
    assert by_marker(synthetic(1, snr_db=6).recorded()).mean_w == pytest.approx(LOAD_W, rel=0.03)


def test_nothing_but_noise_has_no_pulse() -> None:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        quiet = Synthetic(
            np.arange(5000) / RATE_HZ, 1 + rng.normal(size=5000) * 0.01, np.zeros(5000), []
        )
        with pytest.raises(RunError):
            by_pulses(quiet.recorded(marker=False))


def test_clipped_windows_are_left_out_and_the_others_are_right() -> None:
    made = synthetic(3)
    power_w = made.power_w.copy()
    first, last = made.edges[1]
    power_w[first:last] += 0.1
    clipped = np.minimum(power_w, IDLE_W + LOAD_W + 0.1)
    found = by_marker(made.recorded(power_w=clipped))
    problems = [window.problem for window in found.windows]
    assert problems[1] == "clipped at the upper end of the range"
    assert problems[:1] + problems[2:] == [None] * 4
    assert found.mean_w == pytest.approx(LOAD_W, rel=0.01)


def test_clipping_is_seen_in_what_a_converter_writes() -> None:
    """12 bits over 1 W: codes repeat, so reaching the highest is no sign of clipping."""
    made = synthetic(4)
    codes = np.round(made.power_w * 4096) / 4096
    assert by_marker(made.recorded(power_w=codes)).problem is None
    assert max(map(abs, errors(by_marker(made.recorded(power_w=codes)), made))) < 0.01
    cut = np.minimum(codes, round((IDLE_W + LOAD_W) * 4096) / 4096)
    found = by_marker(made.recorded(power_w=cut))
    assert found.problem == "clipped at the upper end of the range"


def test_idle_below_what_the_instrument_can_show_is_refused() -> None:
    made = synthetic(5)
    found = by_marker(made.recorded(power_w=np.maximum(made.power_w, IDLE_W)))
    assert found.problem == "idle is clipped at the lower end of the range"
    assert found.mean_w is None


def without(made: Synthetic, first: int, last: int) -> PowerRecording:
    """The trace with samples missing."""
    kept = np.ones(made.time_s.size, dtype=bool)
    kept[first:last] = False
    cut = Synthetic(made.time_s[kept], made.power_w[kept], made.marker[kept], made.energy_j)
    return cut.recorded()


def test_a_gap_in_a_window_is_said() -> None:
    made = synthetic(6)
    first, _ = made.edges[2]
    found = by_marker(without(made, first + 300, first + 350))
    problems = [window.problem for window in found.windows]
    assert problems[2] == "a gap of 50 ms in it"
    assert [problem for problem in problems if problem] == [problems[2]]


def test_a_gap_in_idle_and_a_few_lost_samples_do_no_harm() -> None:
    made = synthetic(7)
    first, last = made.edges[2]
    found = by_marker(without(made, last + 100, last + 300))
    assert max(map(abs, errors(found, made))) < 0.01
    lost = by_marker(without(made, first + 300, first + 304))
    assert max(map(abs, errors(lost, made))) < 0.01
    whole, part = by_marker(made.recorded()).windows[2], lost.windows[2]
    assert (part.energy_u_j or 0) >= (whole.energy_u_j or 1) * 0.99


def test_without_idle_there_is_no_answer() -> None:
    made = synthetic(8)
    (rail,) = rails_of(made.recorded(), {})
    whole = [Span(made.time_s[3] - 0.0005, made.time_s[-4], "")]
    found = fit_rail(made.recorded(), rail, whole, pulses=False)
    assert found.problem is not None
    assert found.problem.startswith("no idle")


def test_a_window_the_recording_does_not_have_whole_is_refused() -> None:
    made = synthetic(9)
    marker = made.marker.copy()
    first, last = made.edges[0]
    cut = slice((first + last) // 2, None)
    part = Synthetic(made.time_s[cut], made.power_w[cut], marker[cut], made.energy_j[1:])
    found = by_marker(part.recorded())
    assert found.windows[0].problem == "the recording does not contain all of it"
    assert found.windows[1].problem is None


def test_a_load_the_wrong_way_round_is_told() -> None:
    made = synthetic(10)
    found = by_marker(made.recorded(power_w=1.0 - made.power_w))
    assert found.problem is not None
    assert "the other way round" in found.problem


def test_outliers_in_idle_move_nothing() -> None:
    made = synthetic(11)
    power_w = made.power_w.copy()
    idle = np.flatnonzero(made.marker == 0)
    power_w[idle[::50]] += 3.0  # something wakes up now and then
    found = by_marker(made.recorded(power_w=power_w))
    assert max(map(abs, errors(found, made))) < 0.01
    assert found.idle_w == pytest.approx(IDLE_W, rel=0.01)


def test_the_accuracy_of_the_instrument_does_not_average_out() -> None:
    made = synthetic(12)
    found = by_marker(made.recorded(), accuracy=0.01)
    assert found.mean_u_w is not None
    assert 0.01 * LOAD_W < found.mean_u_w < 0.012 * LOAD_W


def test_windows_that_differ_say_so_by_their_scatter() -> None:
    made = synthetic(13)
    power_w = made.power_w.copy()
    for number, (first, last) in enumerate(made.edges):
        power_w[first:last] += 0.01 * number
    found = by_marker(made.recorded(power_w=power_w))
    assert found.mean_u_w is not None
    assert 0.004 < found.mean_u_w < 0.012  # 0.0158 / sqrt(5) = 0.007
    assert mean_of([]) == (None, None)


def test_windows_of_a_file_are_put_on_the_trace() -> None:
    made = synthetic(14)
    trace = made.recorded(marker=False)
    (rail,) = rails_of(trace, {})
    half = 0.5 / RATE_HZ
    times = [(a / RATE_HZ - half - 100, b / RATE_HZ - half - 100, "read") for a, b in made.edges]
    found = fit_rail(trace, rail, of_file(times, 100.0, trace), pulses=False)
    assert max(map(abs, errors(found, made))) < 0.01
    # Requests one after the other are one window; what lies outside is refused.
    first, last, _ = times[0]
    middle = (first + last) / 2
    both = of_file([(first, middle, "read"), (middle, last, "read")], 100.0, trace)
    assert [(span.begin_s, span.end_s) for span in both] == [(first + 100, last + 100)]
    assert of_file([(first, last, "")], 0.0, trace)[0].open_end


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), snr_db=st.floats(-20, 60), drift_w=st.floats(-0.5, 0.5))
def test_a_number_or_a_reason_never_both(seed: int, snr_db: float, drift_w: float) -> None:
    """And a number is right within five times its uncertainty, whatever the noise."""
    made = synthetic(seed, snr_db=snr_db, drift_w=drift_w, windows=2)
    found = by_marker(made.recorded())
    assert (found.mean_w is None) == (found.problem is not None)
    for window, known in zip(found.windows, made.energy_j, strict=True):
        assert (window.energy_j is None) == (window.problem is not None)
        if window.energy_j is not None:
            assert window.energy_u_j is not None
            assert window.energy_u_j * 3 <= window.energy_j * 1.0001
            assert abs(window.energy_j - known) < 6 * window.energy_u_j


def test_the_autocorrelation_time_of_known_noise() -> None:
    """White noise has 1, a first-order process with coefficient c (1 + c) / (1 - c)."""
    rng = np.random.default_rng(15)
    white = rng.normal(size=40_000)
    assert autocorrelation_time([white]) == pytest.approx(1, abs=0.1)
    slow = np.empty_like(white)
    slow[0] = white[0]
    for at in range(1, white.size):
        slow[at] = 0.8 * slow[at - 1] + white[at]
    assert autocorrelation_time([slow]) == pytest.approx(9, rel=0.2)
    assert autocorrelation_time([slow[:20_000], slow[20_000:]]) == pytest.approx(9, rel=0.2)


def test_a_level_is_a_line_and_a_quantum_a_step() -> None:
    time_s = np.arange(100.0)
    found = level(time_s, 3 + 0.5 * time_s)
    assert found.mean_w == pytest.approx(3 + 0.5 * 49.5)
    assert found.slope_w_s == pytest.approx(0.5)
    assert quantum(np.array([0.0, 0.25, 0.25, 0.5, 0.5, 0.5, 0.25, 0.0])) == 0.25
    assert quantum(np.random.default_rng(1).normal(size=50)) == 0
