"""Loss and gradient-norm rules on generated series: healthy runs raise nothing, faults do."""

import math
import random
import time

import polars as pl
import pytest

from hcp_logscan.analysis import spikes
from hcp_logscan.analysis.facts import empty, schema
from hcp_logscan.rules.judge import judge
from hcp_logscan.rules.load import load_rules

NAN = float("nan")
RULES = {rule.id: rule for rule in load_rules()}


def series(losses, norms=None, *, producer="megatron", rates=None):
    """The fact table `iterations` of one attempt with these losses and gradient norms."""
    rows = pl.DataFrame(
        {
            "attempt": [0] * len(losses),
            "iteration": range(1, len(losses) + 1),
            "lm_loss": losses,
            "grad_norm": norms or [None] * len(losses),
            "learning_rate": rates or [None] * len(losses),
            "producer": [producer] * len(losses),
            "cut": [False] * len(losses),
        },
        schema_overrides=dict.fromkeys(("lm_loss", "grad_norm", "learning_rate"), pl.Float64),
    ).with_columns(
        pl.col("lm_loss").is_finite().alias("lm_loss_finite"),
        pl.col("grad_norm").is_finite().alias("grad_norm_finite"),
    )
    known = pl.concat([rows, spikes.columns(rows)], how="horizontal")
    located = {"file": pl.String(), "line": pl.Int64(), "text": pl.String(), "rank": pl.Int64()}
    return known.select(
        pl.col(name) if name in known.columns else pl.lit(None, dtype).alias(name)
        for name, dtype in {**schema("iterations"), **located}.items()
    )


def judged(rows):
    """Outcomes of HCP204 and HCP205, and the iterations that they name."""
    attempts = pl.concat([empty("attempts"), pl.DataFrame({"attempt": [0]})], how="diagonal")
    facts = {"attempts": attempts, "iterations": rows}
    judgements, findings = judge([RULES["HCP204"], RULES["HCP205"]], facts, {})
    return (
        {one.rule: one.outcome for one in judgements},
        {one.rule: one.iteration for one in findings},
    )


def pretraining(made, many):
    """Warm-up decay of the loss, a gradient peak in the first iterations, noise of both."""
    losses = [
        1.9 + 9.0 * math.exp(-i / 300) + 0.8 * math.exp(-i / 9_000) + made.gauss(0.0, 0.05)
        for i in range(many)
    ]
    norms = [
        (0.3 + 30.0 * math.exp(-((i - 12) ** 2) / 60) + 2 * math.exp(-i / 500))
        * made.lognormvariate(0.0, 0.35)
        for i in range(many)
    ]
    return losses, norms


def mixture_of_experts(made, many):
    losses, norms = pretraining(made, many)
    return (
        [loss + 0.02 * made.expovariate(1.0) for loss in losses],
        [norm * (3.0 if made.random() < 0.02 else 1.0) for norm in norms],
    )


def fine_tuning_near_0(made, many):
    level = [max(0.004, 0.9 * math.exp(-i / 200)) for i in range(many)]
    return (
        [one * made.lognormvariate(0.0, 0.8) for one in level],
        [2 * one**0.5 * made.lognormvariate(0.0, 0.7) for one in level],
    )


@pytest.mark.parametrize(
    ("healthy", "many"),
    [(pretraining, 40_000), (mixture_of_experts, 8_000), (fine_tuning_near_0, 8_000)],
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_healthy_run_raises_nothing(healthy, many, seed):
    outcomes, _ = judged(series(*healthy(random.Random(seed), many)))
    assert outcomes == {"HCP204": "clean", "HCP205": "clean"}


def test_a_spike_is_named_by_its_first_iteration():
    losses, norms = pretraining(random.Random(4), 3_000)
    for i in range(2_000, 2_030):
        losses[i] += 3.0
        norms[i] *= 60.0
    _, found = judged(series(losses, norms))
    assert found == {"HCP204": 2_001, "HCP205": 2_001}


@pytest.mark.parametrize(("rise", "outcome"), [(0.3, "clean"), (2.0, "fires")])
def test_one_line_is_a_spike_if_it_is_high_enough(rise, outcome):
    losses, norms = pretraining(random.Random(5), 1_500)
    losses[1_200] += rise
    assert judged(series(losses, norms))[0]["HCP204"] == outcome


def test_growth_over_thousands_of_iterations_is_found():
    losses, norms = pretraining(random.Random(6), 6_000)
    norms = [norm * math.exp(max(0, i - 3_000) / 500) for i, norm in enumerate(norms)]
    outcomes, found = judged(series(losses, norms))
    assert outcomes == {"HCP204": "clean", "HCP205": "fires"}
    assert 4_500 < found["HCP205"] < 5_900


def test_growth_while_the_learning_rate_warms_up_is_its_peak():
    made = random.Random(9)
    norms = [
        (0.4 + 20.0 * math.exp(-(((i - 300) / 60) ** 2))) * made.lognormvariate(0.0, 0.2)
        for i in range(1_500)
    ]
    rates = [1e-4 * min(1.0, i / 500) for i in range(1_500)]
    assert judged(series([2.0] * 1_500, norms, rates=rates))[0]["HCP205"] == "clean"
    assert judged(series([2.0] * 1_500, norms))[0]["HCP205"] == "fires"


def test_a_fivefold_norm_right_before_nan_is_its_precursor():
    rows = series([2.83, 2.83, NAN, NAN], [104.1, 569.0, NAN, NAN], producer="torchtitan")
    assert judged(rows)[1] == {"HCP205": 2}
    rows = series([2.83] * 4, [104.1, 569.0, 110.0, 108.0], producer="torchtitan")
    assert judged(rows)[0]["HCP205"] == "clean"


@pytest.mark.parametrize(
    ("norm", "producer", "outcome"),
    [(412.7, "verl", "fires"), (0.25, "verl", "clean"), (150.0, "megatron", "clean")],
)
def test_only_a_policy_is_judged_by_the_level_of_its_norm(norm, producer, outcome):
    norms = [norm + i * 0.03 * norm for i in range(12)]
    rows = series([None] * 12, norms, producer=producer)
    assert judged(rows)[0] == {"HCP204": "inconclusive", "HCP205": outcome}


def test_lines_without_a_value_are_compared_with_none():
    losses, norms = pretraining(random.Random(7), 400)
    losses[200], norms[200] = None, NAN  # a loss of NaN is left out of the line
    rows = series(losses, norms)
    assert rows["lm_loss_before"][200] == 0
    assert judged(rows)[0]["HCP204"] == "clean"


def test_a_million_lines_are_a_matter_of_seconds():
    made = random.Random(8)
    rows = series(
        [2.0 + made.random() for _ in range(1_000)] * 1_000,
        [made.random() for _ in range(1_000)] * 1_000,
    ).with_columns(pl.lit("megatron").alias("producer"), pl.lit(value=False).alias("cut"))
    began = time.process_time()
    found = spikes.columns(rows)
    assert time.process_time() - began < 10.0  # 0.6 s with one thread
    assert found.height == 1_000_000
