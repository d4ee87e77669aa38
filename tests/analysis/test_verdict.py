"""The combining table, cell by cell, and that it is total."""

import itertools

import pytest

from hcp_logscan.analysis import verdict
from hcp_logscan.analysis.facts import ATTEMPT_FACTS
from hcp_logscan.model.finding import STATUSES, Evidence, Location


def piece(says, grade, rank=None, channel="te_debug", layer=None):
    return Evidence(channel, says, grade, Location("a.log", 1, "x", rank), "because", layer)


def facts(**known):
    base = dict.fromkeys(ATTEMPT_FACTS)
    base.update(
        attempt=0,
        rejections=0,
        iterations_finished=8,
        cp_size=4,
        cp_comm_type="a2a+p2p",
        hcp_sizes=[2, 2],
        hcp_sizes_set=True,
        hcp_sizes_product=4,
        hcp_levels=2,
        hcp_min_size=2,
        hcp_a2a_size=2,
        config_complete=True,
    )
    return {**base, **known}


TABLE = [
    (["active A"], "active", "high"),
    (["active A", "inactive C"], "active", "high"),
    (["active B"], "active", "medium"),
    (["inactive A"], "inactive", "high"),
    (["inactive B"], "inactive", "medium"),
    (["inactive B", "active C"], "inactive", "medium"),
    (["active A", "inactive B"], "active", "medium"),
    (["active B", "inactive A"], "inactive", "medium"),
    (["active A", "inactive A"], "mixed", "low"),
    (["active B", "inactive B"], "mixed", "low"),
    (["active C", "inactive C"], None, "low"),
    ([], None, "low"),
]


@pytest.mark.parametrize(("pieces", "status", "confidence"), TABLE)
def test_same_rank_cells_of_the_table(pieces, status, confidence):
    evidence = [piece(*text.split(), rank=0) for text in pieces]

    found = verdict.combine(evidence, ranks_seen=1)

    assert (found.status, found.confidence) == (status, confidence)


@pytest.mark.parametrize(
    ("grades", "confidence"), [("AA", "high"), ("AB", "medium"), ("BB", "medium")]
)
def test_different_ranks_are_mixed_with_the_lower_grade(grades, confidence):
    found = verdict.combine([piece("active", grades[0], 0), piece("inactive", grades[1], 1)], 2)

    assert (found.status, found.confidence) == ("mixed", confidence)


def test_different_layer_kinds_of_one_rank_are_mixed():
    evidence = [piece("active", "A", 0, layer="h32"), piece("inactive", "A", 0, layer="h16")]

    assert verdict.combine(evidence, 1).status == "mixed"


def test_unknown_rank_may_be_any_rank():
    found = verdict.combine([piece("active", "A"), piece("inactive", "A", 3)], 4)

    assert (found.status, found.confidence) == ("mixed", "low")


def test_runtime_evidence_beats_configuration_of_equal_grade():
    found = verdict.combine([piece("active", "A", 3), piece("inactive", "A", channel="config")], 4)

    assert (found.status, found.confidence) == ("active", "medium")
    assert found.contradiction


def test_fewer_than_all_ranks_lower_the_confidence():
    evidence = [piece("active", "A", rank) for rank in range(3)]

    assert verdict.combine(evidence, 4).confidence == "medium"
    assert verdict.combine(evidence, 3).confidence == "high"


def test_configuration_covers_every_rank():
    assert verdict.combine([piece("inactive", "A", channel="config")], 32).confidence == "high"


def test_table_is_total():
    grades = [None, "A", "B", "C"]
    for active, inactive, same in itertools.product(grades, grades, [True, False]):
        evidence = []
        if active:
            evidence.append(piece("active", active, 0))
        if inactive:
            evidence.append(piece("inactive", inactive, 0 if same else 1))
        found = verdict.verdict(facts(), tuple(evidence), 2)
        assert found.status in STATUSES
        assert bool(found.next_steps) == (found.confidence != "high")


STATES = [
    (facts(), "unconfirmed"),
    (facts(iterations_finished=0), "inconclusive"),
    (facts(config_complete=False), "inconclusive"),
    (facts(config_complete=None), "inconclusive"),
    (facts(hcp_sizes_product=6), "inconclusive"),
    (facts(hcp_levels=3), "inconclusive"),
    (facts(seq_length=132), "inconclusive"),
    (facts(te_version_code=1011000, te_version="1.11.0"), "inconclusive"),
    (facts(query_groups=2, tp_size=2), "inconclusive"),
    (facts(cp_size=1), "not_requested"),
    (facts(cp_comm_type="p2p", hcp_sizes=None, hcp_sizes_set=False), "not_requested"),
    (facts(cp_comm_type="p2p", hcp_sizes=None, hcp_sizes_set=None), "inconclusive"),
    (facts(cp_comm_type=None, hcp_sizes=None, hcp_sizes_set=None), "inconclusive"),
    (facts(hcp_sizes=[1, 4], hcp_min_size=1, hcp_a2a_size=1), "degenerate"),
    (facts(hcp_sizes=[4, 1], hcp_min_size=1, hcp_a2a_size=4), "degenerate"),
    (
        facts(rejections=4, iterations_finished=0, rejection_check="x", rejection_text="y"),
        "rejected",
    ),
    (facts(rejections=4, rejection_check="x", rejection_text="y"), "unconfirmed"),
    (facts(cp_comm_type="p2p,a2a+p2p"), "unconfirmed"),
]


@pytest.mark.parametrize(("known", "status"), STATES)
def test_status_without_runtime_evidence(known, status):
    assert verdict.verdict(known, (), 4).status == status


def test_degenerate_sizes_with_attention_seen_off_are_inactive():
    known = facts(hcp_sizes=[1, 4], hcp_min_size=1, hcp_a2a_size=1)

    assert verdict.verdict(known, (piece("inactive", "A", 0),), 1).status == "inactive"


def test_unconfirmed_names_the_string_people_grep_for_and_the_recipe():
    found = verdict.verdict(facts(), (), 4)

    assert any("HIERARCHICAL_CONTEXT_PARALLEL_GROUPS" in text for text in found.not_seen)
    assert any("NVTE_DEBUG=1 NVTE_DEBUG_LEVEL=2" in step for step in found.next_steps)


def test_long_evidence_is_capped_and_says_so():
    evidence = tuple(piece("active", "A", rank) for rank in range(100))

    found = verdict.verdict(facts(), evidence, 100)

    assert len(found.evidence) == verdict.MAX_EVIDENCE
    assert found.evidence[-1].location.rank == 99
    assert any("100 pieces of evidence" in reason for reason in found.reasons)
