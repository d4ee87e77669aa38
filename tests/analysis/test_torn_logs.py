"""Logs that are cut, torn, glued or ambiguous must never decide what they do not show."""

import pytest

from hcp_logscan import scan

ITERATION = (
    " [2026-03-01 09:14:20] iteration {i:8d}/{n:8d} | consumed samples:           16 | elapsed time per"
    " iteration (ms): 5120.4 | learning rate: 2.9E-04 | global batch size:    16 | lm loss:"
    " 7.812345E+00 | loss scale: 1.0 | grad norm: 1.234 | number of skipped iterations:   0 | number of"
    " nan iterations:   0 |\n"
)
ONE = ITERATION.format(i=1, n=1)
M = (
    "using world size: 4, data-parallel size: 1, context-parallel size: 4, hierarchical"
    " context-parallel sizes: [2, 2], tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
)
H = "------------------------ arguments ------------------------\n"
E = "-------------------- end of arguments ---------------------\n"


def entry(key, value):
    return f"  {key} {'.' * (48 - len(key))} {value}\n"


C = entry("context_parallel_size", "4")
CT = entry("cp_comm_type", "['a2a+p2p']")
SZ = entry("hierarchical_context_parallel_sizes", "[2, 2]")
D = H + C + CT + SZ + E
BAR = "=" * 70 + "\n"
TITLE = f"{BAR}Configuration Summary (Non-Default Values vs Megatron Core)\n{BAR}"
S0 = TITLE + (
    "\n[model] Non-default values (vs Mcore X):\n  context_parallel_size: 16  (Mcore default: 1)\n"
    "  cp_comm_type: 'a2a+p2p'  (Mcore default: None)\n"
)
SS = "  hierarchical_context_parallel_sizes: [8, 2]  (Mcore default: None)\n"
S1 = "[train]:\n  train_iters: 1\n" + BAR
T = "------- Task Configuration -------\n"
TE = "-" * 34 + "\n"
Y = (
    "_target_: megatron.bridge.training.config.ConfigContainer\nmodel:\n  context_parallel_size: 16\n"
    "  cp_comm_type: a2a+p2p\n"
)
YS = "  hierarchical_context_parallel_sizes:\n  - 8\n  - 2\n"
YN = "  hierarchical_context_parallel_sizes: null\n"
YE = "train:\n  train_iters: 1\n"
TB = 'Traceback (most recent call last):\n  File "/a.py", line 3, in b\n    c()\n{}\n'
CRASH = TB.format("FileNotFoundError: x.idx")
START = "[before the start of training step] datetime: 2026-03-01 09:14:00 \n"
DONE = "[after training is done] datetime: 2026-03-01 09:15:00 \n"
GLUE = "NCCL version 2.21.5+cuda12.4"


@pytest.fixture
def judged(tmp_path):
    def run(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return scan(tmp_path)

    return run


UNDECIDED = {
    "dump cut before the value of cp_comm_type": {
        "rank0.log": M + H + C + "  cp_comm_type ................",
        "rank3.log": ONE,
    },
    "dump cut inside the value of cp_comm_type": {
        "rank0.log": M + H + C + "  cp_comm_type .................................... ['a2a",
        "rank3.log": ONE,
    },
    "dump cut in the dots of the sizes": {
        "rank0.log": H + C + CT + "  hierarchical_context_parallel_sizes .......",
        "rank3.log": ONE,
    },
    "dump cut inside the CP size": {
        "rank0.log": H + "  context_parallel_size ........................... 1",
        "rank15.log": ONE,
    },
    "world size line cut inside the CP size": {
        "rank0.log": "using world size: 16, data-parallel size: 1, context-parallel size: 1",
        "rank15.log": ONE,
    },
    "summary cut inside the sizes": {
        "rank0.log": S0 + "  hierarchical_context_parallel_sizes: [",
        "rank15.log": ONE,
    },
    "summary ended by another rule": {"c.log": S0 + ONE + "=" * 60 + "\ntrain.py FAILED\n"},
    "summary with a long rule inside": {"c.log": S0 + "=" * 80 + "\n" + ONE},
    "summary of titles only": {"c.log": TITLE + BAR + ONE},
    "summary with a torn line": {"c.log": S0 + GLUE + SS + S1 + ONE},
    "yaml cut inside the sizes": {
        "rank0.log": T + Y + "  hierarchical_context_parallel_sizes:\n  - ",
        "rank15.log": ONE,
    },
    "yaml without the sizes' line": {"c.log": T + Y + YE + TE + ONE},
    "yaml with the sizes' header lost": {"c.log": T + Y + "  - 8\n  - 2\n" + YE + TE + ONE},
    "yaml ended by other dashes": {"c.log": T + Y + "-" * 50 + "\n" + ONE},
    "value with text glued behind it": {
        "c.log": H + C + CT + SZ.replace("]\n", f"]{GLUE}\n") + E + ONE
    },
    "none with text glued behind it": {
        "c.log": H
        + C
        + entry("cp_comm_type", "['p2p']")
        + entry("hierarchical_context_parallel_sizes", f"None{GLUE}")
        + E
        + ONE
    },
    "cut summary beside an unrelated yaml": {
        "c.log": S0 + ONE,
        "serve.yaml": "model:\n  name: x\n",
    },
    "overrides alone": {
        "c.log": ONE,
        "overrides.yaml": "model:\n  context_parallel_size: 8\n  cp_comm_type: a2a+p2p\n",
    },
    "saved configuration cut before the sizes": {"c.log": ONE, "run_config.yaml": Y},
    "decentralized groups under a cut summary": {
        "c.log": S0 + "> initialized HyperCommGrid with tp=1, pp=1, cp=16, dp=1\n" + ONE
    },
}


@pytest.mark.parametrize("case", UNDECIDED)
def test_what_is_cut_or_torn_decides_nothing(judged, case):
    report = judged(UNDECIDED[case])

    assert report.verdict.status == "inconclusive"
    assert not [found.rule for found in report.findings if found.severity == "error"]


DECIDED = {
    "foreign line in the yaml": (
        {
            "c.log": T
            + Y
            + "WARNING: All log messages before absl go to STDERR\n"
            + YS
            + YE
            + TE
            + ONE
        },
        "unconfirmed",
    ),
    "sizes behind a yaml tag": (
        {
            "c.log": T
            + Y
            + "  hierarchical_context_parallel_sizes: !!python/tuple\n  - 8\n  - 2\n"
            + YE
            + TE
            + ONE
        },
        "unconfirmed",
    ),
    "saved null beside a complete p2p summary": (
        {
            "c.log": S0.replace("  cp_comm_type: 'a2a+p2p'  (Mcore default: None)\n", "")
            + S1
            + ONE,
            "ckpt/iter_0000100/run_config.yaml": Y + YN + YE,
        },
        "not_requested",
    ),
    "saved sizes beside a complete summary without": (
        {"c.log": S0 + S1 + ONE, "ckpt/iter_0000100/run_config.yaml": Y + YS + YE},
        "inactive",
    ),
    "old saved configuration of another CP size": (
        {
            "c.log": S0 + SS + S1 + ONE,
            "old/run_config.yaml": Y.replace("size: 16", "size: 1").replace(
                "model:", "dist:\n  use_decentralized_pg: true\nmodel:"
            )
            + YE,
        },
        "unconfirmed",
    ),
    "grid of a vision tower": (
        {
            "c.log": D
            + "> initialized HyperCommGrid with tp=1, pp=1, cp=1, dp=4 for vision model\n"
            + "> initialized tensor model parallel with size 1\n"
            + ONE
        },
        "unconfirmed",
    ),
    "CP of 1 with sizes and p2p": (
        {
            "c.log": H
            + entry("context_parallel_size", "1")
            + entry("cp_comm_type", "['p2p']")
            + SZ
            + E
            + ONE
        },
        "not_requested",
    ),
    "times in front of every line": (
        {
            "c.log": "".join(
                f"2026-05-18 12:51:{n:02d}.1246 [default0]:{line}"
                for n, line in enumerate((M + D + ONE + DONE).splitlines(keepends=True))
            )
        },
        "unconfirmed",
    ),
    "first label without its padding": (
        {
            "c.log": "".join(
                ("0: " if n == 0 else " 0: ") + line
                for n, line in enumerate((D + ONE + DONE).splitlines(keepends=True))
            )
        },
        "unconfirmed",
    ),
    "files of two hosts are no two jobs": (
        {"log_node-1001.out": M + D + DONE, "log_node-1002.out": ONE},
        "unconfirmed",
    ),
    "rank in a folder name that is none": ({"lora_rank16/console.log": M + D + ONE}, "unconfirmed"),
}


@pytest.mark.parametrize("case", DECIDED)
def test_what_is_whole_decides(judged, case):
    files, status = DECIDED[case]

    assert judged(files).verdict.status == status


def test_undated_attempt_keeps_its_place(judged):
    text = T + Y + YN + YE + TE + CRASH + T + Y + YS + YE + TE + START + ONE + DONE
    report = judged({"c.log": text})

    assert [a.verdict.status for a in report.data.attempts] == ["inconclusive", "unconfirmed"]
    assert [a.outcome for a in report.data.attempts] == ["failed", "completed"]


def test_rejected_attempt_before_a_good_one_is_told(judged):
    check = (
        "AssertionError: --hierarchical-context-parallel-sizes must be set when a2a+p2p is used in"
    )
    text = M.replace("[2, 2]", "None") + TB.format(f"{check} cp comm") + M + D + ONE + DONE
    report = judged({"c.log": text})

    assert [a.verdict.status for a in report.data.attempts] == ["rejected", "unconfirmed"]
    assert ("HCP010", 0) in {(f.rule, f.attempt) for f in report.findings}


@pytest.mark.parametrize(
    "files",
    [
        {"rank0.log": T + Y + YN + YE + TE + CRASH + T + Y + YS + YE + TE, "rank15.log": ONE},
        {
            "4711_0.out": T + Y + YN + YE + TE + T + Y + YS + YE + TE,
            "4711_1.out": ITERATION.format(i=1, n=2) + ITERATION.format(i=2, n=2),
        },
    ],
)
def test_iterations_that_may_be_another_attempts_prove_nothing(judged, files):
    assert judged(files).verdict.status in {"inconclusive", "unconfirmed"}


@pytest.mark.parametrize(
    "files",
    [
        {
            "c.log": M
            + D
            + ONE
            + DONE
            + "Exception ignored in: <function A.__del__ at 0x7f00>\n"
            + TB.format("TypeError: 'NoneType' object is not callable")
        },
        {"c.log": M + D + ONE + "Exception in thread Thread-5 (_pin_memory_loop):\n" + CRASH},
        {"c.log": M + D + ONE + "--- Logging error ---\n" + CRASH},
        {
            "job_4711.out": M + D + ONE + DONE,
            "job_4711.err": TB.format("ModuleNotFoundError: No module named 'apex'"),
        },
        {"c.log": M + D + ITERATION.format(i=1, n=2) + CRASH + ITERATION.format(i=2, n=2) + DONE},
    ],
)
def test_handled_tracebacks_are_no_failures(judged, files):
    report = judged(files)

    assert "HCP508" not in {found.rule for found in report.findings}
    assert report.data.attempts[-1].outcome in {"completed", "unknown"}


def test_missing_last_rank_is_no_missing_iteration(judged):
    memory = "[Rank {r}] (after 5 iterations) memory (MB) | allocated: 1.0\n"
    text = M.replace("world size: 4", "world size: 8") + D + START + memory.format(r=0)
    report = judged({"node0.log": text + memory.format(r=1)})

    assert "HCP305" not in {found.rule for found in report.findings}


def test_two_records_on_one_line_are_two_iterations(judged):
    glued = ITERATION.format(i=1, n=2).rstrip("\n") + ITERATION.format(i=2, n=2)

    assert judged({"c.log": glued}).data.series.iterations == 2


def test_value_that_two_ranks_tore_is_not_missing_where_another_line_states_it(judged):
    report = judged({"c.log": M + H + C + CT + SZ.replace("]\n", f"]{GLUE}\n") + E + ONE})

    assert report.verdict.status == "unconfirmed"
    assert report.data.attempts[0].config["hcp_sizes"] == [2, 2]
