"""False alarms of HCP205 and HCP204 on healthy noise with heavy tails, and what they still find.

Noise of every shape is drawn anew for each seed: a hundred runs of 6,000 lines, none of which may
raise anything. By a power law one line in eight is above the usual highest of eight, and e^-12 of
those so far that a line alone counts: one false alarm in 220 of these runs is what is accepted.
"""

import math
import random

import pytest
from test_loss_health import judged, series

MANY, SEEDS = 6_000, range(10)


def power_law(made, alpha):
    return lambda: made.paretovariate(alpha)


def lognormal(made, sigma):
    return lambda: made.lognormvariate(0.0, sigma)


def student(made, freedom):
    """The absolute value of Student's t."""

    def draw():
        square = sum(made.gauss(0.0, 1.0) ** 2 for _ in range(freedom)) / freedom
        return abs(made.gauss(0.0, 1.0)) / math.sqrt(square) + 1e-9

    return draw


NOISE = [
    *((power_law, alpha) for alpha in (1.0, 1.5, 2.0, 3.0)),
    *((lognormal, sigma) for sigma in (0.35, 0.8, 1.5)),
    *((student, freedom) for freedom in (1, 2, 4)),
]


@pytest.mark.parametrize(("shape", "width"), NOISE)
def test_healthy_gradient_noise_of_any_tail_raises_nothing(shape, width):
    for seed in SEEDS:
        draw = shape(random.Random(seed), width)
        norms = [0.3 * draw() for _ in range(MANY)]
        assert judged(series([2.0] * MANY, norms))[0]["HCP205"] == "clean", seed


@pytest.mark.parametrize(("shape", "width"), [(power_law, 1.5), (lognormal, 0.35), (student, 2)])
def test_healthy_noise_that_comes_in_swarms_raises_nothing(shape, width):
    for seed in SEEDS:
        made = random.Random(seed)
        draw, level, norms = shape(made, width), 0.0, []
        for _ in range(MANY):  # the level wanders, so that high lines stand together
            level = 0.95 * level + made.gauss(0.0, 0.1)
            norms.append(0.3 * math.exp(level) * draw())
        assert judged(series([2.0] * MANY, norms))[0]["HCP205"] == "clean", seed


@pytest.mark.parametrize(
    ("shape", "width", "factor", "lines"),
    [(lognormal, 0.2, 20.0, 1), (lognormal, 0.2, 12.0, 2), (power_law, 3.0, 500.0, 2)],
)
def test_a_spike_above_the_tail_is_found(shape, width, factor, lines):
    for seed in SEEDS:
        draw = shape(random.Random(seed), width)
        norms = [0.3 * draw() for _ in range(3_000)]
        norms[2_000 : 2_000 + lines] = [0.3 * factor] * lines
        assert judged(series([2.0] * 3_000, norms))[1] == {"HCP205": 2_001}, seed


def test_a_tail_hides_what_it_may_have_made_itself():
    draw = power_law(random.Random(1), 1.0)
    norms = [0.3 * draw() for _ in range(3_000)]
    norms[2_000] = 0.3 * 1_000.0
    assert judged(series([2.0] * 3_000, norms))[0]["HCP205"] == "clean"
    norms[2_000] = 0.3 * 1e9
    assert judged(series([2.0] * 3_000, norms))[1] == {"HCP205": 2_001}


@pytest.mark.parametrize(
    ("shape", "width", "scale"),
    [(lognormal, 0.5, 0.2), (lognormal, 0.35, 0.6), (student, 4, 0.2)],
)
def test_healthy_losses_with_outliers_raise_nothing(shape, width, scale):
    for seed in SEEDS:
        draw = shape(random.Random(seed), width)
        losses = [1.9 + 2.0 * math.exp(-i / 800) + scale * draw() for i in range(MANY)]
        assert judged(series(losses))[0]["HCP204"] == "clean", seed


@pytest.mark.parametrize(("rise", "lines"), [(1.0, 1), (0.6, 2)])
def test_a_spike_of_the_loss_above_its_noise_is_found(rise, lines):
    for seed in SEEDS:
        draw = lognormal(random.Random(seed), 0.35)
        losses = [2.2 + 0.05 * draw() for _ in range(3_000)]
        losses[2_000 : 2_000 + lines] = [2.2 + rise] * lines
        assert judged(series(losses))[1] == {"HCP204": 2_001}, seed
