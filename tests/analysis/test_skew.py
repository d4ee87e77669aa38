"""Clocks of nodes that are apart: told by common events, corrected, and never over-claimed."""

import pytest

from hcp_logscan import scan
from hcp_logscan.analysis.clock import moved
from hcp_logscan.reporting.markdown import render_markdown
from hcp_logscan.reporting.redact import redact
from hcp_logscan.reporting.text import render_text

WORLD = (
    "using world size: 16, data-parallel size: 16, context-parallel size: 1, hierarchical"
    " context-parallel sizes: None, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
)


def created(time, number, rank):
    month, day = time[:5].split("-")
    return (
        f"[rank{rank}]:[I{month}{day} {time[6:]}.123456789 ProcessGroupNCCL.cpp:885] [PG ID {number}"
        f" PG GUID {number}(GROUP_{number}) Rank {rank}] ProcessGroupNCCL initialization options:"
        f" size: 16, global rank: {rank}, TIMEOUT(ms): 600000, USE_HIGH_PRIORITY_STREAM: 0\n"
    )


def failed(time, rank, host, code):
    return (
        "Failures:\n  <NO_OTHER_FAILURES>\nRoot Cause (first observed failure):\n[0]:\n"
        f"  time      : 2026-{time.replace(' ', '_')}\n  host      : {host}\n"
        f"  rank      : {rank} (local_rank: {rank % 8})\n  exitcode  : {code} (pid: 100{rank})\n"
        "  error_file: <N/A>\n  traceback : Signal received\n"
    )


@pytest.fixture
def run(tmp_path):
    def make(behind, *, apart=30, late=(0, 1, 0, 2, 0), groups=5):
        """Rank 3 of node0 crashes, and rank 11 of node1 `apart` seconds later, in truth."""
        start = "03-01 10:00:00"
        for node, first, delay in ((0, 0, 0), (1, 8, behind)):
            place = tmp_path / f"node{node}"
            place.mkdir(exist_ok=True)
            lines = [WORLD] if node == 0 else []
            for number in range(groups):
                slow = late[number % len(late)] if node else 0
                lines.append(created(moved(start, 20 * number + slow - delay), number, first))
            crash = moved(start, 600 + (apart if node else 0) - delay)
            code = -7 if node else -11
            lines.append(failed(crash, first + 3, f"node{node}", code))
            (place / "console.log").write_text("".join(lines))
        return scan(tmp_path)

    return make


def culprits(report):
    (told,) = [entry for entry in report.data.timeline if entry.role == "root"][:1]
    return told.ranks


def test_a_clock_that_is_behind_is_corrected(run):
    report = run(behind=90)

    sentence = report.data.stories[0].sentences[0]
    assert sentence.startswith("Rank 3 on node0 was ended by SIGSEGV")
    assert "nothing tells" not in sentence
    (crash,) = [found for found in report.findings if found.rule == "HCP511"]
    assert "first rank 3 on node0" in crash.message
    assert report.data.clock_notes == (
        "The clock of node1 is 90 s behind that of node0 (median of 5 events that both logged,"
        " spread 0 s): its times are corrected by that.",
    )
    seen = [(e.ranks, e.time, e.corrected) for e in report.data.timeline if e.role == "root"]
    assert seen == [((3,), "03-01 10:10:00", False), ((11,), "03-01 10:10:30", True)]


def test_without_common_events_the_printed_times_stand_and_nobody_is_first(run):
    report = run(behind=90, groups=2)

    (offset,) = [o for o in report.data.clocks if o.node == "node1"]
    assert (offset.seconds, offset.events, offset.corrected) == (None, 2, False)
    assert report.data.clock_notes == ()
    assert culprits(report) == (11,)
    sentence = report.data.stories[0].sentences[0]
    assert "nothing tells whether that was before rank 3" in sentence


def test_equal_clocks_are_left_alone_and_not_spoken_of(run):
    report = run(behind=0)

    (offset,) = [o for o in report.data.clocks if o.node == "node1"]
    assert (offset.seconds, offset.events, offset.corrected) == (0.0, 5, False)
    assert report.data.clock_notes == ()
    assert not any(entry.corrected for entry in report.data.timeline)
    assert "The clock of" not in render_text(report.data)
    assert "nothing tells" not in report.data.stories[0].sentences[0]


def test_who_is_closer_than_the_clocks_are_sure_is_not_said_to_be_first(run):
    unsure = run(behind=90, apart=12, late=(0, 4, 8, 0, 4))
    (offset,) = [o for o in unsure.data.clocks if o.node == "node1"]
    assert (offset.spread_s, offset.corrected) == (4.0, True)
    assert "nothing tells whether" in unsure.data.stories[0].sentences[0]

    sure = run(behind=90, apart=19, late=(0, 4, 8, 0, 4))
    assert "nothing tells whether" not in sure.data.stories[0].sentences[0]


def test_events_that_disagree_tell_no_offset(run):
    report = run(behind=300, late=(0, 200, 0, 90, 170))

    (offset,) = [o for o in report.data.clocks if o.node == "node1"]
    assert (offset.seconds, offset.corrected) == (None, False)
    assert offset.spread_s > 60


def test_one_late_barrier_changes_nothing(run):
    report = run(behind=90, late=(500, 0, 0, 0, 0))

    assert [o.seconds for o in report.data.clocks if o.node == "node1"] == [-90.0]


def test_reports_say_which_clock_is_corrected(run):
    report = run(behind=90)

    note = "The clock of node1 is 90 s behind"
    assert note in " ".join(render_text(report.data).split())
    assert note in render_markdown(report.data)
    assert note in report.to_html()
    assert '"seconds":-90' in report.to_json().replace(" ", "")
    assert "node1" not in " ".join(redact(report.data, "all", ["node0", "node1"]).clock_notes)
