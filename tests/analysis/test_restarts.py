"""Second starts that no start-up marker shows, and what must not be taken for one."""

from __future__ import annotations

import pytest

from hcp_logscan.analysis.run import examine


def titan(step, time="09:14:{:02}", prefix=""):
    return (
        f"{prefix}[titan] 2026-03-01 {time.format(step)},123 - root - INFO - step: {step:2}  loss: "
        " 7.8  grad_norm:  1.2  memory: 61.20GiB(77.00%)  tps: 4,210  tflops: 431.70  mfu: 43.65%\n"
    )


def swift(step):
    return (
        f"{{'loss': 0.431, 'grad_norm': 1.17, 'iteration': '{step}/200', 'elapsed_time': '5s',"
        " 'train_speed(s/it)': 5.0}\n"
    )


def shape(tmp_path, text):
    (tmp_path / "train.log").write_text(text)
    found = examine(tmp_path)
    return [(a.facts["first_iteration"], a.facts["last_iteration"]) for a in found.attempts]


FRAME = (
    'Traceback (most recent call last):\n  File "/opt/train.py", line 8, in <module>\n    main()\n'
)
AGAIN = "11:14:{:02}"
TEXTS = {
    "from the beginning": (
        "".join(titan(n) for n in (1, 2, 3)) + titan(1, AGAIN),
        [(1, 3), (1, 1)],
    ),
    "from a checkpoint": (
        "".join(titan(n) for n in (8, 9, 10)) + titan(8, AGAIN) + titan(9, AGAIN),
        [(8, 10), (8, 9)],
    ),
    "without times": ("".join(swift(n) for n in (5, 10, 15, 5, 10)), [(5, 15), (5, 10)]),
    "twice": ("".join(swift(n) for n in (1, 2, 3, 1, 2, 3, 1)), [(1, 3), (1, 3), (1, 1)]),
    "ranks one step apart": ("".join(titan(n) for n in (1, 2, 1, 2, 3, 2, 3)), [(1, 3)]),
    "a buffer that comes late": ("".join(titan(n) for n in (1, 2, 3, 4, 1, 2, 3, 4)), [(1, 4)]),
    "a copy of the last step": ("".join(swift(n) for n in (1, 2, 3, 3)), [(1, 3)]),
}


@pytest.mark.parametrize("case", TEXTS)
def test_steps_that_begin_anew_are_another_attempt(tmp_path, case):
    text, expected = TEXTS[case]

    assert shape(tmp_path, text) == expected


def test_the_file_of_errors_alone_is_cut_where_srun_says_that_a_step_failed(tmp_path):
    world = (
        "using world size: 2, data-parallel size: 2, context-parallel size: 1, hierarchical"
        " context-parallel sizes: None, tensor-model-parallel size: 1, pipeline-model-parallel"
        " size: 1\n"
    )
    raised = FRAME + "ValueError: {}\n"
    srun = "srun: error: node01: tasks 0-1: Exited with exit code 1\n"
    (tmp_path / "pretrain_4711.out").write_text(world + world)
    (tmp_path / "pretrain_4711.err").write_text(
        raised.format("a") + srun * 2 + raised.format("b") + srun
    )
    rows = examine(tmp_path).events["tracebacks"].select("message", "attempt").rows()

    assert rows == [("a", 0), ("b", 1)]


def test_an_exception_is_of_the_attempt_in_which_other_ranks_raised_it(tmp_path):
    world = (
        "using world size: 2, data-parallel size: 2, context-parallel size: 1, hierarchical"
        " context-parallel sizes: None, tensor-model-parallel size: 1, pipeline-model-parallel"
        " size: 1\n"
    )
    raised = FRAME + "ValueError: shard {} is empty\n"
    (tmp_path / "job_4711_0.log").write_text(world + world + raised.format(17))
    (tmp_path / "job_4711_1.log").write_text(raised.format(18))

    assert examine(tmp_path).events["tracebacks"]["attempt"].to_list() == [1, 1]
