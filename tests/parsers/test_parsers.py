from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from hcp_logscan.engine.run import scan_files
from hcp_logscan.model import events
from hcp_logscan.parsers.base import BlockParser, LineParser, ParserError, conform, verify
from hcp_logscan.parsers.registry import needles, owners, parsers
from hcp_logscan.sources.discover import discover
from hcp_logscan.sources.prefixes import clean, split

FIXTURES = Path(__file__).parents[1] / "fixtures"


def tables(tmp_path, text):
    (tmp_path / "train.log").write_bytes(text.encode() if isinstance(text, str) else text)
    return scan_files(discover(tmp_path))


@pytest.mark.parametrize("parser", parsers(), ids=lambda parser: parser.name)
def test_parser_parses_its_own_sample(parser):
    verify(parser)


def test_parser_that_misses_its_sample_is_refused():
    wrong = LineParser("x", "paths", ("needle",), "^never$", "a needle", constants={"kind": "x"})

    with pytest.raises(ParserError, match="misses its own sample"):
        verify(wrong)


def test_every_needle_has_an_owner_and_every_table_exists():
    assert all(owners())
    assert len(set(needles())) == len(needles())
    for parser in parsers():
        wanted = parser.tables if isinstance(parser, BlockParser) else (parser.table,)
        assert set(wanted) <= set(events.EVENTS)


HEAD = " | consumed samples:          160 | elapsed time per iteration (ms): 512.4 |"
TAIL = " number of skipped iterations:   0 | number of nan iterations:   0 |"
ITERATIONS = {
    "core 0.5 without timestamp": (
        " iteration       10/     200"
        + HEAD
        + " learning rate: 2.997E-04 | global batch size:    16"
        " | lm loss: 7.812345E+00 | loss scale: 1.0 | grad norm: 1.234 |" + TAIL,
        (10, 512.4, None, 7.812345, 1.234, 0),
    ),
    "core 0.16 with microseconds and energy": (
        " [2026-03-01 09:14:20.123456] iteration       10/     200"
        + HEAD
        + " throughput per GPU (TFLOP/s/GPU): 431.7 | energy per GPU (J/iter/GPU): 11.0 | power per"
        " GPU (W/GPU): 640.1 | learning rate: 2.997000E-04 | global batch size:    16 | lm loss:"
        " 7.812345E+00 | loss scale: 1.0 | grad norm: 1.234 | num zeros: 68.0 | params norm: 3.2 |"
        + TAIL,
        (10, 512.4, 431.7, 7.812345, 1.234, 0),
    ),
    "mem usages between time and throughput": (
        " [2026-03-01 09:14:20] iteration 10/ 200"
        + HEAD
        + " mem usages: 0.4430 | throughput per GPU"
        " (TFLOP/s/GPU): 431.7 | learning rate: 2.9E-04 | lm loss: 7.0E+00 | loss scale: 1.0 |"
        + TAIL,
        (10, 512.4, 431.7, 7.0, None, 0),
    ),
    "seconds and TFLOPs": (
        "[default3]: iteration       10/ 3125000 | consumed samples:          960 | elapsed time per"
        " iteration (s): 7.6118 | learning rate: 4.438E-07 | global batch size:    96 | lm loss:"
        " 1.014022E+01 | loss scale: 4096.0 | grad norm: 181.204 |"
        + TAIL
        + " samples per second: 12.612 | TFLOPs: 96.46 |",
        (10, 7611.8, 96.46, 10.14022, 181.204, 0),
    ),
    "Bridge glued to the next record": (
        "[2025-11-27 08:12:41] iteration        1/       1"
        + HEAD
        + " lm loss: 1.2E+01 | loss scale:"
        " 1.0 | grad norm: 10.118 |" + TAIL + "Number of parameters in billions:  6.98",
        (1, 512.4, None, 12.0, 10.118, 0),
    ),
    "loss left out": (
        " [2026-03-01 09:14:20] iteration 4/ 8"
        + HEAD
        + " loss scale: 1.0 | grad norm: nan |"
        + TAIL,
        (4, 512.4, None, None, None, 0),
    ),
}


@pytest.mark.parametrize("case", ITERATIONS)
def test_iteration_line_of_every_age_is_read_by_key(tmp_path, case):
    line, expected = ITERATIONS[case]

    row = tables(tmp_path, line + "\n")["iterations"].row(0, named=True)

    names = ("iteration", "step_ms", "tflops_per_gpu", "lm_loss", "grad_norm", "skipped_iterations")
    values = [row[name] for name in names]
    assert [None if str(value) == "nan" else value for value in values] == [
        None if value is None else pytest.approx(value) for value in expected
    ]
    assert row["cut"] is False


def test_the_quick_way_gives_what_the_fields_give():
    quick = [one for one in parsers() if isinstance(one, LineParser) and one.quick]
    lines = [line for line, _ in ITERATIONS.values()]
    for name in (
        "hcp22-tee",
        "case17-nan-by-omission",
        "fp16-skipped-start",
        "nan-from-iteration-4",
        "runtime-c10d-outer-level-alone",
        "runtime-c10d-glog-both-levels",
        "runtime-nccl-two-levels",
    ):
        for log in sorted((FIXTURES / name / "run").rglob("*.log")):
            read = log.read_bytes().splitlines()
            lines += [split(clean(line))[1].decode("utf-8", "replace") for line in read]
    for parser in quick:
        mine = [line for line in lines if any(needle in line for needle in parser.needles)]
        texts = pl.DataFrame({"text": mine, "line": range(len(mine))})
        frame = conform("drift", texts).drop("parser", "count", "last")
        taken = frame["text"].str.contains(f"^(?:{parser.quick})$").sum()
        assert 0 < taken < len(mine), parser.name
        for one, other in zip(
            parser.parse(frame), replace(parser, quick=None).parse(frame), strict=True
        ):
            assert_frame_equal(one.sort("line"), other.sort("line"))
    assert quick


def test_iteration_record_that_ends_early_is_cut(tmp_path):
    line = " iteration 5/ 10 | consumed samples: 5 | elapsed time per iteration (ms): 5.0 | lear"

    assert tables(tmp_path, line)["iterations"]["cut"].to_list() == [True]


WORLD_LINES = {
    "0.13": "using world size: 8, data-parallel size: 2, context-parallel size: 4, hierarchical"
    " context-parallel sizes: [2, 2], tensor-model-parallel size: 1, pipeline-model-parallel size: 1",
    "0.10": "using world size: 8, data-parallel size: 2, context-parallel size: 4, hierarchical"
    " context-parallel sizes: [2, 2]tensor-model-parallel size: 1, encoder-tensor-model-parallel size:"
    " 0, pipeline-model-parallel size: 1, encoder-pipeline-model-parallel size: 0",
    "0.10 none": "using world size: 8, data-parallel size: 2, context-parallel size: 4, hierarchical"
    " context-parallel sizes: Nonetensor-model-parallel size: 1, pipeline-model-parallel size: 1",
    "0.8": "using world size: 8, data-parallel size: 2, context-parallel size: 4"
    " tensor-model-parallel size: 1, pipeline-model-parallel size: 1",
}


@pytest.mark.parametrize("version", WORLD_LINES)
def test_world_size_line_of_every_version(tmp_path, version):
    rows = dict(tables(tmp_path, WORLD_LINES[version])["config"].select("key", "value").iter_rows())

    assert rows["world_size"] == "8"
    assert rows["context_parallel_size"] == "4"
    assert rows["tensor_model_parallel_size"] == "1"
    assert rows["pipeline_model_parallel_size"] == "1"
    sizes = {"0.13": "[2, 2]", "0.10": "[2, 2]", "0.10 none": "None", "0.8": None}[version]
    assert rows.get("hierarchical_context_parallel_sizes") == sizes


def test_argument_dump_between_lines_of_other_ranks(tmp_path):
    text = (
        "[default0]:------------------------ arguments ------------------------\n"
        "[default1]:  warnings.warn(\n"
        "[default0]:  cp_comm_type .................................... ['a2a+p2p']\n"
        "[default1]:  seq_length ...................................... 1\n"
        "[default0]:  rl_inference_expert_tensor_model_parallel_size_x  None\n"
        "  return func(*args)\n"
        "[default0]:-------------------- end of arguments ---------------------\n"
    )
    found = tables(tmp_path, text)

    assert dict(found["config"].select("key", "value").iter_rows()) == {
        "cp_comm_type": "['a2a+p2p']",
        "rl_inference_expert_tensor_model_parallel_size_x": "None",
    }
    assert found["blocks"].select("complete", "last_line").rows() == [(True, 7)]


def test_dump_without_end_is_incomplete_whatever_follows(tmp_path):
    head = "------------------------ arguments ------------------------\n"
    entry = "  seq_length ...................................... 128\n"
    text = head + entry + "training ...\n" + head + entry

    assert tables(tmp_path, text)["blocks"]["complete"].to_list() == [False, False]


def test_printed_yaml_without_head_ends_at_the_first_gap(tmp_path):
    text = (
        "_target_: megatron.bridge.training.config.ConfigContainer\n"
        "dataset:\n  context_parallel_size: null\n"
        "dist:\n  use_decentralized_pg: false\n"
        "model:\n  activation_func:\n    _target_: torch.gelu\n  context_parallel_size: 4\n"
        "  hierarchical_context_parallel_sizes:\n  - 2\n  - 2\n  cp_comm_type: a2a+p2p\n"
        "train:\n  train_iters: 10\n\n"
        "context_parallel_size: 99\n"
    )
    found = tables(tmp_path, text)
    config = {
        (section, key): value
        for section, key, value in found["config"].select("section", "key", "value").iter_rows()
    }

    assert config["model", "hierarchical_context_parallel_sizes"] == "[2, 2]"
    assert config["model", "context_parallel_size"] == "4"
    assert config["dataset", "context_parallel_size"] == "null"
    assert config["model", "activation_func._target_"] == "torch.gelu"
    assert found["blocks"]["complete"].to_list() == [True]


def test_summary_is_complete_at_the_bar_behind_the_titles(tmp_path):
    bar = "=" * 70
    body = (
        f"{bar}\nConfiguration Summary (Non-Default Values vs Megatron Core)\n{bar}\n\n"
        "[model] Non-default values (vs Mcore TransformerConfig):\n"
        "  cp_comm_type: 'a2a+p2p'  (Mcore default: None)\n"
    )
    (tmp_path / "whole").mkdir()
    (tmp_path / "cut").mkdir()
    whole = tables(tmp_path / "whole", f"{body}\n{bar}\n")
    cut = tables(tmp_path / "cut", body + "Step Time : 1.00s GPU utilization: 5.0TFLOP/s/GPU\n")

    assert whole["blocks"]["complete"].to_list() == [True]
    assert whole["config"]["value"].to_list() == ["TransformerConfig", "a2a+p2p"]
    assert cut["blocks"]["complete"].to_list() == [False]


TRACE = (
    "{p}Traceback (most recent call last):\n"
    '{p}  File "/opt/app/parallel_state.py", line 1128, in initialize_model_parallel\n'
    "{p}    assert np.prod(hierarchical_context_parallel_sizes) == context_parallel_size\n"
    "{p}           ^^^^^^^\n"
    "{p}AssertionError\n"
)


def test_tracebacks_of_two_ranks_are_told_apart(tmp_path):
    a, b = TRACE.format(p="[rank0]: ").splitlines(), TRACE.format(p="[rank1]: ").splitlines()
    text = "".join(f"{x}\n{y}\n" for x, y in zip(a, b, strict=True))

    rows = tables(tmp_path, text)["tracebacks"]

    assert rows["line_rank"].to_list() == [0, 1]
    assert rows["exception"].to_list() == ["AssertionError"] * 2
    assert set(rows["last_source"]) == {
        "assert np.prod(hierarchical_context_parallel_sizes) == context_parallel_size"
    }


def test_handled_traceback_behind_a_log_prefix_is_not_read(tmp_path):
    text = "Import of X from y failed with: " + TRACE.format(p="")

    assert tables(tmp_path, text)["tracebacks"].height == 0


def test_chained_traceback_is_marked(tmp_path):
    text = (
        TRACE.format(p="")
        + "\nDuring handling of the above exception, another exception occurred:\n\n"
        + TRACE.format(p="").replace("AssertionError", "RuntimeError: at last")
    )
    rows = tables(tmp_path, text)["tracebacks"]

    assert rows.select("exception", "chained").rows() == [
        ("AssertionError", True),
        ("RuntimeError", False),
    ]


def test_log_levels_are_no_exception_names(tmp_path):
    text = TRACE.format(p="").replace(
        "AssertionError", "INFO:megatron.core: still going\nValueError: x"
    )

    assert tables(tmp_path, text)["tracebacks"]["exception"].to_list() == ["ValueError"]


@pytest.mark.parametrize(
    ("text", "check"),
    [
        (
            "AssertionError: --hierarchical-context-parallel-sizes must be set when a2a+p2p is used in"
            " cp comm",
            "hierarchical sizes missing",
        ),
        (
            "AssertionError: hierarchical_context_parallel_sizes must be set when cp_comm_type contains"
            " 'a2a+p2p'. Without it",
            "hierarchical sizes missing",
        ),
        (
            "AssertionError: Product of hierarchical_context_parallel_sizes [2, 3] (=6) must equal"
            " context_parallel_size (=4).",
            "product of the sizes",
        ),
        (
            "NotImplementedError: Decentralized process groups (use_decentralized_pg=True) do not"
            " support hierarchical_context_parallel_sizes. Use",
            "decentralized process groups",
        ),
        (
            "AssertionError: Transformer-Engine v1.11.0 must be >= 1.12.0 to supporthierarchical cp"
            " commucation.",
            "Transformer Engine version",
        ),
        (
            "AssertionError: Current implementation only supports two-level CP groups!",
            "two levels",
        ),
        (
            "AssertionError: CP implementation QKVO A2A+P2P thd is not supported with hierarchical CP"
            " implementation yet!",
            "packed sequences",
        ),
        (
            "AssertionError: seq-length should be a multiple of 2 * context-parallel-size if"
            " context-parallel-size > 1.",
            "sequence length",
        ),
    ],
)
def test_start_up_checks_are_named(tmp_path, text, check):
    assert tables(tmp_path, f"[rank1]: {text}\n")["assertions"]["check"].to_list() == [check]


def test_texts_of_checks_in_prose_or_source_are_no_checks(tmp_path):
    text = (
        'grep for "AssertionError: --hierarchical-context-parallel-sizes must be set when a2a+p2p"\n'
        '    "--hierarchical-context-parallel-sizes must be set when a2a+p2p is used in cp comm"\n'
    )

    assert tables(tmp_path, text)["assertions"].height == 0


def test_failure_table_says_who_ended_how(tmp_path):
    text = (
        "Failures:\n[1]:\n  time      : 2026-11-29_16:00:28\n  host      : node0\n"
        "  rank      : 9 (local_rank: 1)\n  exitcode  : -15 (pid: 29617)  (SIGTERM)\n"
        "  error_file: <N/A>\n  traceback : Signal 15 (SIGTERM) received by PID 29617\n"
        "------------------------------------------------------------\n"
        "Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-29_16:00:27\n"
        "  host      : node0\n  rank      : 10 (local_rank: 2)\n"
        "  exitcode  : -9 (pid: 29619)  (SIGKILL)\n  error_file: <N/A>\n"
        "============================================================\n"
    )
    rows = tables(tmp_path, text)["exits"].select("kind", "rank", "exit_code", "pid").rows()

    assert rows == [("table_row", 9, -15, 29617), ("table_root", 10, -9, 29619)]


def test_bytes_that_are_no_text_do_not_hide_a_record(tmp_path):
    line = ITERATIONS["core 0.5 without timestamp"][0].encode()

    rows = tables(tmp_path, b"\xff\xfe\x80 noise\n" + line[:40] + b"\xff" + line[40:] + b"\r\n")

    assert rows["iterations"]["iteration"].to_list() == [10]


def test_number_beyond_64_bits_is_null_and_not_an_error(tmp_path):
    line = ITERATIONS["core 0.5 without timestamp"][0].replace("160", "18446744073709551615")

    assert tables(tmp_path, line)["iterations"]["consumed_samples"].to_list() == [None]


def test_frames_have_the_declared_types(tmp_path):
    found = tables(tmp_path, ITERATIONS["loss left out"][0])

    for table, frame in found.frames.items():
        assert dict(frame.schema) == {
            k: pl.DataType.from_python(v) if isinstance(v, type) else v
            for k, v in events.schema(table).items()
        }
