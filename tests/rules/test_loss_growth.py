"""HCP204 on losses that grow without a spike, and on healthy ones that rise."""

import math
import random
import time

import polars as pl
import pytest
from test_loss_health import judged, series

from hcp_logscan.analysis import growth
from hcp_logscan.analysis.facts import empty
from hcp_logscan.rules.choose import with_params
from hcp_logscan.rules.judge import judge
from hcp_logscan.rules.load import load_rules

SEEDS = range(5)
MANY, BEGINS = 8_000, 4_000


def decay(i):
    """A healthy loss: it falls fast, then slowly."""
    return 1.9 + 9.0 * math.exp(-i / 300) + 0.8 * math.exp(-i / 9_000)


def behind(i):
    return max(0, i - BEGINS)


def gaussian(made):
    return made.gauss(0.0, 0.05)


def heavy(made):
    """Student's t with four degrees of freedom; its outliers are held below those of a spike."""
    square = sum(made.gauss(0.0, 1.0) ** 2 for _ in range(4)) / 4
    return max(-0.3, min(0.3, 0.05 * made.gauss(0.0, 1.0) / math.sqrt(square)))


def skewed(made):
    return 0.1 * made.lognormvariate(0.0, 0.3)


def wandering():
    """Noise with a memory of a thousand lines, as of documents that belong together."""
    level = 0.0

    def draw(made):
        nonlocal level
        level = 0.999 * level + made.gauss(0.0, 0.005)
        return level + made.gauss(0.0, 0.03)

    return draw


NOISE = {"gaussian": gaussian, "heavy": heavy, "skewed": skewed}


GROWTH_ALONE = next(
    rule for rule in with_params(load_rules(), {"HCP204": {"min_rise": 1e9}}) if rule.id == "HCP204"
)
"""Without spikes: the first line behind a step is one if the step is high enough."""


def outcome(loss, noise, seed, *, many=MANY):
    made = random.Random(seed)
    rows = series([loss(i) + noise(made) for i in range(many)])
    attempts = pl.concat([empty("attempts"), pl.DataFrame({"attempt": [0]})], how="diagonal")
    return judge([GROWTH_ALONE], {"attempts": attempts, "iterations": rows}, {})[0][0].outcome


GROWTH = {
    "linear": lambda i: decay(i) + 0.0004 * behind(i),
    "exponential": lambda i: decay(i) * math.exp(behind(i) / 4_000),
    "to a plateau": lambda i: decay(i) + 4.0 * (1.0 - math.exp(-behind(i) / 500)),
    "over 400 lines": lambda i: decay(i) + min(1.2, behind(i) / 400),
    "half of it back": lambda i: decay(i) + max(min(behind(i) / 800, 4.0 - i / 3_000), 0.0),
}


@pytest.mark.parametrize("loss", GROWTH.values(), ids=GROWTH)
@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
def test_growth_that_stays_fires(loss, noise):
    assert {outcome(loss, noise, seed) for seed in SEEDS} == {"fires"}


def stairs(steps, *, fall=0.0):
    """Levels of a curriculum that rises by 1.2 in all, each of which falls again a little."""
    width = BEGINS / steps

    def loss(i):
        if i < BEGINS:
            return decay(i)
        into = (i - BEGINS) % width / width
        level = 1.2 * ((i - BEGINS) // width + 1) / steps
        return decay(i) + level + fall / steps * math.exp(-5.0 * into)

    return loss


HEALTHY = {
    "falls": decay,
    "one step": lambda i: decay(i) + (0.9 if i >= BEGINS else 0.0),
    "two steps": stairs(2, fall=0.3),
    "four steps": stairs(4),
    "four steps that fall": stairs(4, fall=0.5),
    "seven steps": stairs(7),
    "eight steps that fall": stairs(8, fall=0.5),
    "comes back": lambda i: decay(i) + 0.0005 * max(0, min(i - 3_000, 6_000 - i)),
    "epochs sorted by difficulty": lambda i: decay(i) + 0.7 * (i % 2_000) / 2_000,
    "less than the ratio": lambda i: decay(i) * math.exp(0.2 * behind(i) / BEGINS),
    "near 0": lambda i: 0.35 + 0.0001 * behind(i),
}


@pytest.mark.parametrize("loss", HEALTHY.values(), ids=HEALTHY)
@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
def test_what_rises_for_other_reasons_is_quiet(loss, noise):
    # 200 lines less: the last epoch is not over
    found = {outcome(loss, noise, seed, many=MANY - 200) for seed in SEEDS}
    assert found == {"clean"}


def test_noise_with_a_memory_is_quiet():
    assert {outcome(decay, wandering(), seed) for seed in range(20)} == {"clean"}


def test_a_healthy_run_of_forty_thousand_iterations_is_quiet():
    assert outcome(decay, gaussian, 1, many=40_000) == "clean"


def test_a_rise_with_the_learning_rate_is_its_doing():
    loss = [2.0 + 0.9 * (1.0 - math.exp(-behind(i) / 300)) for i in range(MANY)]
    restart = [1e-4 * (1 - i / MANY) if i < BEGINS else 3e-8 * behind(i) for i in range(MANY)]
    made = random.Random(2)
    noisy = [one + gaussian(made) for one in loss]
    assert judged(series(noisy, rates=restart))[0]["HCP204"] == "clean"
    assert judged(series(noisy, rates=[1e-4] * MANY))[0]["HCP204"] == "fires"


def test_growth_that_begins_in_warm_up_and_goes_on_is_found():
    rates = [1e-4 * min(1.0, i / 1_000) for i in range(MANY)]
    loss = GROWTH["linear"]
    made = random.Random(3)
    rows = series([loss(i + 3_300) + gaussian(made) for i in range(MANY)], rates=rates)
    assert judged(rows)[0]["HCP204"] == "fires"


def test_objectives_are_no_losses():
    made = random.Random(5)
    values = [GROWTH["linear"](i) + gaussian(made) for i in range(MANY)]
    assert judged(series(values, producer="verl"))[0]["HCP204"] == "clean"
    crosses = [value if value > 2.6 else -0.01 for value in values]
    assert judged(series(crosses))[0]["HCP204"] == "clean"
    negative = [-value for value in values]
    assert judged(series(negative))[0]["HCP204"] == "inconclusive"


def test_losses_that_are_left_out_while_gradients_are_finite_are_of_an_objective():
    made = random.Random(6)
    values = [GROWTH["linear"](i) + gaussian(made) for i in range(MANY)]
    norms = [made.lognormvariate(0.0, 0.2) for _ in values]
    left_out = [None if i % 5 == 0 else value for i, value in enumerate(values)]
    assert judged(series(left_out, norms))[0]["HCP204"] == "clean"
    assert judged(series(values, norms))[0]["HCP204"] == "fires"


def test_the_message_says_where_growth_began():
    made = random.Random(7)
    rows = series([GROWTH["linear"](i) + gaussian(made) for i in range(MANY)])
    words = rows["lm_loss_growth"][-1]
    assert words.startswith("Its level rose from 2.")
    assert words.endswith(" and did not come back.")
    assert rows["lm_loss_growth"][100] == ""
    assert 4_000 < rows.filter(pl.col("lm_loss_growth") != "")["iteration"][0] < 5_000


def test_too_few_lines_are_clean_and_none_cannot_tell():
    assert judged(series([2.0 + 0.01 * i for i in range(60)]))[0]["HCP204"] == "clean"
    assert judged(series([None] * 1_000))[0]["HCP204"] == "inconclusive"


def test_growth_of_a_million_lines_is_measured_in_a_second():
    made = random.Random(8)
    rows = pl.DataFrame(
        {
            "iteration": range(1_000_000),
            "lm_loss": [2.0 + made.random() for _ in range(1_000)] * 1_000,
            "grad_norm": [1.0] * 1_000_000,
            "learning_rate": [1e-9 * (i // 400) for i in range(1_000_000)],
            "cut": [False] * 1_000_000,
        }
    )
    began = time.process_time()
    assert growth.columns(rows).height == 1_000_000
    assert time.process_time() - began < 15.0  # with 2,500 rises of the learning rate
