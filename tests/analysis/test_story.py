"""The story of a run in three sentences, and its timeline."""

import pytest

from hcp_logscan.analysis.run import examine
from hcp_logscan.analysis.story import MAX_WORDS
from hcp_logscan.analysis.timeline import MAX_ENTRIES

WORLD = (
    "using world size: {n}, data-parallel size: {n}, context-parallel size: 1, hierarchical"
    " context-parallel sizes: None, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
)
LIMIT = (
    "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-01T10:00:00 DUE TO TIME LIMIT ***\n"
)
SAVED = "  successfully saved checkpoint from iteration      {} to /ckpt [ t 1/1, p 1/1 ]\n"
LOADED = "  successfully loaded checkpoint from /ckpt [ t 1/1, p 1/1 ] at iteration {}\n"
NCCL = "torch.distributed.DistBackendError: NCCL error in: x.cpp:{}, unhandled system error"


def step(iteration, minute=50):
    return (
        f" [2026-03-01 09:{minute}:00.123456] iteration {iteration:8d}/     200 | consumed samples:"
        " 4 | elapsed time per iteration (ms): 60000.0 | learning rate: 1.0E-05 | global batch size:"
        "     4 | lm loss: 8.3E+00 | loss scale: 1.0 | grad norm: 2.1 | number of skipped iterations:"
        "   0 | number of nan iterations:   0 |\n"
    )


def trace(rank, error, function="train"):
    p = f"[rank{rank}]: "
    return (
        f"{p}Traceback (most recent call last):\n"
        f'{p}  File "/opt/app/train.py", line 7, in {function}\n{p}    step()\n{p}{error}\n'
    )


@pytest.fixture
def told(tmp_path):
    def run(text, world=4):
        (tmp_path / "train.log").write_text(WORLD.format(n=world) + text)
        return examine(tmp_path)

    return run


def sentences(analysis, attempt=None):
    return next(story.sentences for story in analysis.stories if story.attempt == attempt)


BAD_BATCH = (
    step(1)
    + SAVED.format(1)
    + step(2, 51)
    + step(3, 52)
    + trace(3, "ValueError: bad batch", "zero_grad_buffer")
    + "".join(trace(rank, NCCL.format(rank)) for rank in (0, 1, 2))
    + LIMIT
)


def test_what_broke_what_followed_and_what_was_kept(told):
    found = told(BAD_BATCH)

    assert sentences(found) == (
        "Rank 3 broke first at the start of iteration 4 at train.py:7: ValueError: bad batch"
        " [train.log:9].",
        "Then 3 ranks failed in a collective.",
        "It ended by time limit of the job; kept is the checkpoint of iteration 1, 2 iterations are"
        " lost (about 2 min).",
    )


def test_every_sentence_rests_on_lines(told):
    found = told(BAD_BATCH)

    of_run, of_attempt = found.stories
    lines = [[place.line for place in places] for places in of_run.evidence]
    assert lines == [[9], [13], [22, 3, 5]]
    assert of_attempt.evidence == of_run.evidence
    assert {place.file for places in of_run.evidence for place in places} == {"train.log"}


def test_like_entries_of_many_ranks_are_one(told):
    found = told(step(1) + "".join(trace(rank, NCCL.format(rank)) for rank in range(40)), 40)

    (entry,) = [entry for entry in found.timeline if entry.role == "root"]
    assert (entry.who, entry.count, entry.ranks) == ("ranks", 40, tuple(range(40)))
    assert "Rank 0 and 39 more ranks (1-39) broke first" in sentences(found)[0]


def test_who_only_met_a_missing_peer_is_not_said_to_have_broken(tmp_path):
    error = "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2"
    (tmp_path / "train.log").write_text(trace(8, f"{error} clients joined.", "init_process_group"))

    (sentence,) = sentences(examine(tmp_path))
    assert sentence.startswith("Failed rendezvous came first at the rendezvous (rank 8): Timed out")


def test_a_run_that_nothing_broke_has_no_story(told):
    found = told(step(1) + step(2) + "[after training is done] datetime: 2026-03-01 09:59:00 \n")

    assert [story.sentences for story in found.stories] == [(), ()]
    assert [entry.text for entry in found.timeline] == [
        "iteration 1 finished",
        "iteration 2 finished",
        "training is done",
    ]


def test_attempts_that_get_nowhere(told):
    one = LOADED.format(120) + "".join(map(step, range(121, 128))) + LIMIT
    found = told(one + WORLD.format(n=4) + one + WORLD.format(n=4) + one)

    assert sentences(found) == (
        "3 attempts: 3 time limit; net progress 0 iterations.",
        "The last 3 began at iteration 120 and saved nothing: 21 iterations are lost (about 21 min).",
        "Attempt 2: Time limit of the job ended it in iteration 128 (node n1): slurmstepd: error:"
        " *** JOB 7 ON n1 CANCELLED AT 2026-03-01T10:00:00 DUE TO TIME LIMIT *** [train.log:30].",
    )
    assert sentences(found, 1)[-1].startswith("Kept is the checkpoint of iteration 120, 7 iter")
    lines = [[place.line for place in places] for places in found.stories[0].evidence]
    assert lines == [[10, 20, 30], [2, 9, 12, 19, 22, 29], [30]]


def test_entries_stand_by_the_clock_where_lines_carry_one(told):
    found = told(step(1) + trace(1, "ValueError: x") + LIMIT)

    seen = [(entry.time, entry.estimated, entry.kind) for entry in found.timeline]
    assert seen == [
        ("03-01 09:50:00", False, "iteration"),
        ("03-01 09:50:00", True, "exception"),
        ("03-01 10:00:00", False, "time_limit"),
    ]


def test_story_and_timeline_are_bounded(told):
    attempt = "".join(
        trace(rank, f"ValueError: {chr(97 + rank % 26) * (rank + 300)}") for rank in range(61)
    )
    found = told((step(1) + attempt + WORLD.format(n=61)) * 6, 61)

    assert len(found.timeline) <= MAX_ENTRIES
    assert all(len(story.sentences) <= 3 for story in found.stories)
    assert all(len(entry.text) <= MAX_WORDS for entry in found.timeline)


def test_log_text_stays_text_of_one_line(told):
    found = told(step(1) + trace(1, "ValueError: \x1b]0;x\x07 \u202e <b>"))

    assert "\x1b" not in sentences(found)[0]
    assert "\u202e" not in sentences(found)[0]


def test_of_two_files_without_times_none_is_said_to_be_first(tmp_path):
    for rank, error in ((1, "KeyError: 'x'"), (2, "ValueError: y")):
        (tmp_path / f"rank_{rank}.log").write_text(WORLD.format(n=4) + trace(rank, error))

    assert sentences(examine(tmp_path)) == (
        "Rank 1 broke at start-up at train.py:7: KeyError: 'x' [rank_1.log:5]; nothing tells whether"
        " that was before rank 2: ValueError: y [rank_2.log:5].",
    )


def test_a_console_that_shows_both_tells_which_was_first(tmp_path):
    errors = {2: "ValueError: y", 1: "KeyError: 'x'"}
    for rank, error in errors.items():
        (tmp_path / f"rank_{rank}.log").write_text(trace(rank, error))
    both = "".join(trace(rank, error) for rank, error in errors.items())
    (tmp_path / "console.log").write_text(WORLD.format(n=4) + both)

    assert sentences(examine(tmp_path))[0].startswith("Rank 2 broke first at start-up")


def test_two_tools_that_speak_of_one_lost_gpu_are_no_rivals(tmp_path):
    lost = "Unable to determine the device handle for GPU0000:0B:00.0: Unknown Error\n"
    xid = "[Sun Mar  1 09:58:00 2026] NVRM: Xid (PCI:0000:0b:00): 79, pid=1, GPU has fallen off\n"
    (tmp_path / "train.log").write_text(WORLD.format(n=4) + step(1))
    for node, where in (("node1", "node1"), ("node1", "node2")):
        for place, name, text in ((node, "dmesg.log", xid), (where, "nvidia-smi.log", lost)):
            (tmp_path / place).mkdir(exist_ok=True)
            (tmp_path / place / name).write_text(text)
        told = sentences(examine(tmp_path))[0]
        assert ("nothing tells" in told) == (where == "node2")
        (tmp_path / where / "nvidia-smi.log").unlink()
