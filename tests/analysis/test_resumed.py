"""An attempt against those before it: speed of one shape, loss behind a resume."""

import datetime as dt

import polars as pl
import pytest

from hcp_logscan.analysis import resumed
from hcp_logscan.analysis.facts import CONFIG_FACTS, schema

SHAPE = {**dict.fromkeys(CONFIG_FACTS), "world_size": 32, "seq_length": 131_072, "cp_size": 16}


def attempt(number, first, many, *, step=5_000.0, loss=2.3, **columns):
    rows = {
        "attempt": [number] * many,
        "iteration": range(first, first + many),
        "finished": [True] * many,
        "step_ms": [step + i % 3 for i in range(many)],
        "lm_loss": [loss + 0.01 * (i % 3) for i in range(many)],
        "global_batch_size": [32] * many,
        **columns,
    }
    wanted = {**schema("iterations"), "time": pl.String()}
    return pl.DataFrame(rows, schema={name: wanted[name] for name in rows}).select(
        pl.col(name) if name in rows else pl.lit(None, dtype).alias(name)
        for name, dtype in wanted.items()
    )


def facts(*attempts, configs=None):
    frames = list(attempts)
    return resumed.facts(pl.concat(frames), configs or dict.fromkeys(range(len(frames)), SHAPE))


def test_speed_is_compared_with_the_attempt_before_of_the_same_shape():
    found = facts(attempt(0, 1, 30), attempt(1, 31, 30, step=2_500.0))
    assert found[0]["speed_change"] is None
    assert found[1]["speed_change"] == pytest.approx(2.0, rel=1e-3)
    assert (found[1]["speed_before_attempt"], found[1]["speed_before_lines"]) == (0, 29)
    assert found[1]["speed_change_noise"] < 0.001


@pytest.mark.parametrize("other", [{**SHAPE, "hcp_sizes": [8, 2]}, {**SHAPE, "world_size": None}])
def test_attempts_of_another_or_unknown_shape_are_not_compared(other):
    found = facts(attempt(0, 1, 30), attempt(1, 31, 30), configs={0: SHAPE, 1: other})
    assert found[1]["speed_change"] is None
    versions = {**SHAPE, "te_version": "2.8.0", "train_iters": 900}
    found = facts(attempt(0, 1, 30), attempt(1, 31, 30), configs={0: SHAPE, 1: versions})
    assert found[1]["speed_change"] == 1.0


def stamps(many, seconds):
    start = dt.datetime(2031, 3, 2, 11)  # noqa: DTZ001 - logs have no zone
    return [f"{start + dt.timedelta(seconds=seconds * i)}" for i in range(many)]


def test_both_are_told_by_one_source():
    no_times = {"step_ms": [None] * 60}
    rate = {**no_times, "tokens_per_s_per_gpu": [4_000.0 + i % 3 for i in range(60)]}
    half = {**no_times, "tokens_per_s_per_gpu": [2_000.0 + i % 3 for i in range(60)]}
    found = facts(attempt(0, 1, 60, **rate), attempt(1, 61, 60, **half))[1]
    assert found["speed_change"] == pytest.approx(0.5, rel=1e-3)
    assert (found["speed_source"], found["speed_now"]) == (
        "the printed tokens/s",
        "2,001 tokens/s/GPU",
    )


def test_what_only_one_of_them_prints_is_not_compared():
    rate = {"step_ms": [None] * 60, "tokens_per_s_per_gpu": [4_000.0] * 60}
    printed = {"tokens_per_s_per_gpu": [2_000.0] * 60}  # beside step times: perhaps from them
    assert (
        facts(attempt(0, 1, 60, **rate), attempt(1, 61, 60, **printed))[1]["speed_change"] is None
    )
    dated = {"time": stamps(60, 10)}
    found = facts(
        attempt(0, 1, 60, **rate, **dated), attempt(1, 61, 60, **printed, time=stamps(60, 5))
    )[1]
    assert found["speed_source"] == "the time stamps of the lines"
    assert found["speed_change"] == pytest.approx(2.0)
    assert found["speed_lines"] < found["speed_before_lines"]  # windows of four and of two lines


def test_loss_is_compared_over_the_same_iterations_first():
    found = facts(attempt(0, 1, 60), attempt(1, 31, 40, loss=2.9))
    assert found[1]["loss_resume_change"] == pytest.approx(0.6)
    assert found[1]["loss_resume_basis"] == "the same iterations"
    assert found[1]["loss_resume_lines"] == 20


def test_else_with_the_last_lines_before_the_resume():
    found = facts(attempt(0, 1, 30), attempt(1, 31, 6, loss=2.9))
    assert found[1]["loss_resume_change"] == pytest.approx(0.6)
    assert found[1]["loss_resume_basis"] == "the last lines before it"
    assert found[1]["loss_resume_lines"] == 6


def test_a_start_from_the_beginning_resumes_nothing():
    found = facts(attempt(0, 1, 30), attempt(1, 1, 30, loss=9.0))
    assert found[1]["loss_resume_change"] is None


def test_an_attempt_without_iterations_is_passed_over():
    configs = {0: SHAPE, 1: SHAPE, 2: SHAPE}
    found = facts(attempt(0, 1, 30), attempt(2, 31, 30), configs=configs)
    assert found[1]["speed_change"] is None
    assert found[2]["speed_before_attempt"] == 0
