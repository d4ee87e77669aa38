"""Slow ranks, by reports that measure ranks apart."""

import polars as pl
import pytest

from hcp_logscan.analysis import stragglers
from hcp_logscan.model import events
from hcp_logscan.parsers.base import conform
from hcp_logscan.parsers.stragglers import PARSERS

PARSER = {parser.name: parser for parser in PARSERS}
NVRX = "STRAGGLER DETECTION WARNING: Some GPUs performance dropped. Affected ranks: "


def parsed(name, *lines):
    texts = pl.DataFrame({"text": lines, "line": range(1, len(lines) + 1)})
    rows, drift = PARSER[name].parse(conform("drift", texts).drop("parser", "count", "last"))
    assert not drift.height
    return rows


def report(low, high, rates=("200.10", "250.20")):
    return (
        f"[2026-03-01 10:07:56] | MnRtt/Rnk: {low} | MxRtt/Rnk: {high} | MnPwr/Rnk: 601796W/8 |"
        f" MnEtpt/Rnk: {rates[0]}TF/0 | MxEtpt/Rnk: {rates[1]}TF/8"
    )


def facts(*frames, world=16):
    rows = pl.concat(frames) if frames else events.empty("stragglers")
    return stragglers.facts({"stragglers": rows}, world)


def test_report_of_megatron():
    row = parsed("megatron-straggler", report("3453.08ms/8", "3468.20ms/0")).row(0, named=True)

    assert [row[name] for name in ("min_ms", "min_rank", "max_ms", "max_rank")] == [
        *(3453.08, 8),
        *(3468.20, 0),
    ]
    assert (row["min_tflops"], row["max_tflops"]) == (200.10, 250.20)


@pytest.mark.parametrize(
    ("said", "ranks"),
    [
        ("[76, 13, 45]", [76, 13, 45]),
        ("{StragglerId(rank=76, node='node12-3'), StragglerId(rank=9, node='n1')}", [76, 9]),
        ("[]", []),
    ],
)
def test_ranks_that_nvrx_names(said, ranks):
    assert parsed("nvrx-straggler", NVRX + said)["ranks"].to_list() == [ranks]


def test_no_report_no_fact():
    assert facts() == {}


def test_the_rank_that_is_slowest_again_and_again():
    slow = [report("100.0ms/1", f"{slow}ms/7") for slow in (130.0, 150.0, 140.0)]
    rows = parsed("megatron-straggler", *slow, report("100.0ms/1", "101.0ms/3"))

    found = facts(rows)

    assert (found["straggler_rank"], found["straggler_ranks"]) == (7, [7])
    assert found["straggler_share"] == 0.75
    assert found["straggler_slowdown"] == pytest.approx(0.4)
    assert found["straggler_reports"] == 4
    assert found["straggler_named_ranks"] == []


def test_nvrx_names_and_where_it_names_nobody():
    checked = parsed("nvrx-report", "Straggler report processing time: 0.042 sec.")
    named = parsed("nvrx-straggler", NVRX + "[7, 3]", NVRX + "[7]")

    assert facts(checked)["straggler_named_ranks"] == []
    assert facts(checked, named)["straggler_ranks"] == [3, 7]
    assert facts(checked)["straggler_reports"] == 0


@pytest.mark.parametrize(
    "line",
    [
        report("0.00ms/1", "100.0ms/7"),
        report("100.0ms/1", "99.0ms/7"),
        report("100.0ms/1", "120.0ms/16"),
        report("100.0ms/1", "nanms/7"),
        report("100.0ms/1", "120.0ms/7", ("200.0", "inf")),
    ],
    ids=["zero", "order", "rank", "nan", "infinite"],
)
def test_impossible_reports_name_nobody(line):
    found = facts(parsed("megatron-straggler", line))

    assert (found["straggler_reports"], found["straggler_reports_invalid"]) == (0, 1)
    assert found["straggler_rank"] is None
    assert found["straggler_text"] is None


def test_timers_out_of_step_are_invalid():
    rows = parsed("megatron-straggler-unsynchronised", "Event Start/Stop out of sync 81/80")

    assert facts(rows)["straggler_reports_invalid"] == 1


def lists(low, high):
    return (
        f"INFO:megatron.core.utils:^^^^ Bottom 2 Ranks with lowest  Etpt(TF): {low}",
        f"INFO:megatron.core.utils:^^^^ Top    2 Ranks with highest Etpt(TF): {high}",
    )


def test_lists_of_megatron():
    rows = parsed("megatron-straggler-list", *lists("296.02/0, 296.17/12,", "297.28/15, 297.32/8,"))

    assert rows.select("kind", "ranks", "values").rows() == [
        ("lowest", [0, 12], [296.02, 296.17]),
        ("highest", [15, 8], [297.28, 297.32]),
    ]


def test_ranks_that_take_turns_are_low_together():
    rows = parsed(
        "megatron-straggler-list",
        *lists("200.0/4, 210.0/5,", "300.0/1, 300.0/2,"),
        *lists("205.0/5, 210.0/4,", "300.0/2, 300.0/3,"),
        *lists("201.0/4, 210.0/5,", "300.0/1, 300.0/3,"),
    )

    found = facts(rows)

    assert (found["straggler_lists"], found["straggler_low_ranks"]) == (3, [4, 5])
    assert found["straggler_low_share"] == 1.0
    assert found["straggler_low_deficit"] == pytest.approx(0.3)
    assert found["straggler_ranks"] == [4, 5]
    assert found["straggler_text"] == (
        "ranks 4, 5 stood at the lower end of 100% of 3 lists, at least 30% below the upper end"
    )


def test_the_slowest_of_most_reports_is_named_before_those_that_fill_the_list():
    times = [report("100.0ms/1", "150.0ms/4")] * 3
    ends = lists("200.0/4, 299.0/5,", "300.0/1, 300.0/2,") * 3

    found = facts(parsed("megatron-straggler", *times), parsed("megatron-straggler-list", *ends))

    assert found["straggler_ranks"] == [4]
    assert found["straggler_low_deficit"] == pytest.approx(1 / 300)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("0.00/4, 210.0/5,", "300.0/1, 300.0/2,"),
        ("200.0/4, 210.0/5,", "300.0/1, inf/2,"),
        ("210.0/4, 200.0/5,", "300.0/1, 300.0/2,"),
        ("200.0/4, 210.0/16,", "300.0/1, 300.0/2,"),
        ("nan/4, 210.0/5,", "300.0/1, 300.0/2,"),
        ("200.0/4, 210.0/4,", "300.0/1, 300.0/2,"),
        ("", "300.0/1, 300.0/2,"),
    ],
    ids=["zero", "infinite", "order", "rank", "nan", "twice", "empty"],
)
def test_impossible_lists_name_nobody(low, high):
    found = facts(parsed("megatron-straggler-list", *lists(low, high)))

    assert (found["straggler_lists"], found["straggler_reports_invalid"]) == (0, 1)
    assert found["straggler_low_ranks"] == []
    assert found["straggler_ranks"] == []


def test_lowest_score_of_nvrx():
    scores = (
        *("  Rank=76 Node=n-12 Score=0.60", "  Rank=1 Node=n-01 Score=0.99"),
        *("  Rank=76 Node=n-12 Score=0.66", "  Rank=1 Node=n-01 Score=nan"),
    )

    found = facts(parsed("nvrx-score", *scores), world=128)

    assert (found["straggler_score_rank"], found["straggler_scores"]) == (76, 2)
    assert found["straggler_score"] == pytest.approx(0.63)
    assert found["straggler_ranks"] == [76]
    assert found["straggler_named_ranks"] == []
