"""What attempts gained, and when a run gets nowhere."""

import pytest

from hcp_logscan.analysis.progress import run_facts


def attempt(start, last, outcome="time_limit", saved=None, lost=None):
    facts = {
        "resumed_from": start,
        "first_iteration": None if last is None else (start or 0) + 1,
        "last_iteration": last,
        "last_saved": saved,
        "log_interval": 1,
        "iterations_lost": lost,
        "lost_s": None if lost is None else lost * 2.0,
    }
    return facts, outcome


STUCK = [attempt(120, 127, lost=7)] * 3


@pytest.mark.parametrize(
    ("attempts", "stuck", "net"),
    [
        (STUCK, 3, 0),
        ([attempt(120, 160, saved=160), attempt(160, 200, saved=200), attempt(200, 210)], 1, 80),
        ([*STUCK, attempt(120, 190, saved=160)], 0, 40),
        ([*STUCK, attempt(120, 200, "completed")], 0, 80),
        ([*STUCK, attempt(120, 122, "unknown")], 3, 0),
        ([*STUCK, attempt(120, 140, "unknown")], 0, 0),
        ([*STUCK, attempt(120, None, "failed")], 4, 0),
        ([*STUCK, attempt(None, None, "rejected")], 3, 0),
        ([attempt(None, None, "failed")] * 3, 3, None),
        ([attempt(None, 5, "failed")] * 3, 3, 0),
        ([*STUCK, attempt(100, 104)], 4, 0),
    ],
)
def test_attempts_that_end_where_they_began(attempts, stuck, net):
    facts = run_facts(attempts)

    assert (facts["stuck_attempts"], facts["net_iterations"]) == (stuck, net)


def test_unknown_beginning_leaves_it_open():
    facts, outcome = attempt(None, 500)
    facts["first_iteration"] = 400

    assert run_facts([(facts, outcome)] * 3)["stuck_attempts"] is None


def test_losses_add_up_where_they_are_known():
    facts = run_facts([*STUCK, attempt(120, None)])

    assert (facts["lost_iterations"], facts["lost_s"]) == (21, 42.0)
