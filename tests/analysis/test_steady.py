"""Which iterations count as steady: series made by a seeded generator."""

import random

import polars as pl
import pytest

from hcp_logscan.analysis import steady
from hcp_logscan.analysis.facts import schema


def frame(times, **columns):
    """Rows of the fact table `iterations` of one attempt."""
    many = len(times)
    rows = {
        "attempt": [0] * many,
        "iteration": range(1, many + 1),
        "finished": [True] * many,
        "step_ms": times,
        "global_batch_size": [8] * many,
        **columns,
    }
    wanted = {**schema("iterations"), "time": pl.String()}
    return pl.DataFrame(rows, schema={name: wanted[name] for name in rows}).select(
        pl.col(name) if name in rows else pl.lit(None, dtype).alias(name)
        for name, dtype in wanted.items()
    )


def noisy(many, *, seed=7, share=0.01):
    made = random.Random(seed)
    return [5_000.0 * (1.0 + made.gauss(0.0, share)) for _ in range(many)]


def left_out(rows):
    return sorted(set(rows["iteration"]) - set(steady.steady(rows)[1]["iteration"]))


def test_warm_up_and_pauses_are_left_out():
    times = noisy(200)
    times[:3] = [31_000.0, 9_000.0, 6_100.0]  # opening communicators, compiling
    times[50], times[100], times[101] = 20_000.0, 81_000.0, 7_000.0  # saving, evaluating
    assert left_out(frame(times)) == [1, 2, 3, 51, 101, 102]


def test_medians_are_those_of_the_steady_rows():
    times = [31_000.0, 5_000.0, 5_010.0, 4_990.0, 80_000.0]
    found = steady.facts(*steady.steady(frame(times, tflops_per_gpu=[60.0, 400, 399, 401, 25])))
    assert {name: value for name, value in found.items() if value is not None} == {
        "steady_iterations": 3,
        "pace_source": "the printed step times",
        "step_ms_steady": 5_000.0,
        "step_ms_steady_mad": 10.0,
        "tflops_steady": 400.0,
        "tflops_steady_mad": 1.0,
    }


@pytest.mark.parametrize("many", [0, 1, 3])
def test_too_few_rows_have_no_medians(many):
    found = steady.facts(*steady.steady(frame([5_000.0] * many)))
    assert found.get("step_ms_steady") is None


def test_a_phase_that_stays_is_no_pause():
    times = noisy(100) + [time * 1.3 for time in noisy(100, seed=8)]
    assert left_out(frame(times)) == [1]


def test_a_long_slow_beginning_is_no_warm_up():
    assert left_out(frame([6_000.0] * 40 + [5_000.0] * 60)) == [1]


def test_a_batch_that_ramps_up_is_steady_once_it_is_whole():
    batch = [4] * 20 + [8] * 40
    rows = frame([2_500.0] * 20 + [5_000.0] * 40, global_batch_size=batch)
    assert left_out(rows) == list(range(1, 22))


def test_wide_noise_is_noise():
    assert len(left_out(frame(noisy(300, share=0.1)))) <= 3


def test_where_no_line_has_a_step_time_the_rate_tells_the_pace():
    rates = [100.0] + [4_000.0] * 20 + [900.0] + [4_000.0] * 20
    assert left_out(frame([None] * 42, tokens_per_s_per_gpu=rates)) == [1, 22]
    source, rows = steady.steady(frame([None] * 42))
    assert (source, rows.height) == (None, 0)


@pytest.mark.parametrize(("slow", "cut"), [(0.2, 40), (0.4, 0)])
def test_many_slow_steps_are_no_pauses(slow, cut):
    times = [time * (1.4 if i % 10 >= 10 - slow * 10 else 1.0) for i, time in enumerate(noisy(200))]
    assert len(left_out(frame(times))) == pytest.approx(cut + 1, abs=2)


def test_unfinished_and_unusable_rows_are_left_out():
    rows = frame([5_000.0] * 10 + [0.0, float("nan")], finished=[True] * 9 + [False] + [True] * 2)
    assert left_out(rows) == [1, 10, 11, 12]


def drift(times):
    found = steady.facts(*steady.steady(frame(times)))
    return tuple(found.get(name) for name in ("step_ms_early", "step_ms_late", "late_iteration"))


def test_the_end_is_compared_with_the_fastest_stretch_before_it():
    fast, slow = noisy(300), [time * 1.3 for time in noisy(100, seed=8)]
    early, late, since = drift(fast + slow)
    assert early == pytest.approx(5_000, rel=0.01)
    assert late == pytest.approx(6_500, rel=0.01)
    assert 350 < since < 400


def test_a_run_that_gets_faster_or_stays_has_no_slower_end():
    early, late, _ = drift([6_250.0 - i for i in range(900)])
    assert late < early
    early, late, _ = drift(noisy(400))
    assert late == pytest.approx(early, rel=0.01)
    assert drift(noisy(40)) == (None, None, None)


def test_steps_that_are_fast_and_slow_by_turns_have_no_slower_end():
    turns = [time * (1.3 if i % 2 else 1.0) for i, time in enumerate(noisy(400))]
    assert steady.facts(*steady.steady(frame(turns)))["pace_change_apart"] < 1.0
    assert steady.scatter(pl.Series(turns)) > 0.1
    assert steady.scatter(pl.Series(noisy(400))) == pytest.approx(0.01, rel=0.2)
    assert steady.scatter(pl.Series([], dtype=pl.Float64)) == 0.0
