"""Step lines of ms-swift, Primus, Megatron-DeepSpeed, NeMo 1, nanotron, MLPerf, and refused results."""

from __future__ import annotations

import json

import pytest

from hcp_logscan import scan
from hcp_logscan.engine.run import scan_files
from hcp_logscan.sources.discover import discover


def tables(tmp_path, text, name="train.log"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return scan_files(discover(tmp_path))


def report(tmp_path, text, name="train.log"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return scan(tmp_path)


SWIFT = {
    "4, Megatron": (
        "{'loss': 0.431, 'grad_norm': 1.1722, 'learning_rate': 1.9e-07, 'load_balancing_loss': 1.04,"
        " 'iteration': '10/200', 'elapsed_time': '17m 30s', 'remaining_time': '12d 22h 10m 44s',"
        " 'memory(GiB)': 61.2, 'train_speed(s/it)': 105.0129}",
        (10, 200, 0.431, 1.1722, 1050.129, 105012.9),
    ),
    "4, other trainers, under transformers 5": (
        "{'loss': '0.431', 'grad_norm': '1.172', 'learning_rate': '1.9e-07', 'epoch': '0.1',"
        " 'global_step/max_steps': '10/200', 'elapsed_time': '50s', 'remaining_time': '15m 50s',"
        " 'memory(GiB)': 61.2, 'train_speed(s/it)': 5.0421}",
        (10, 200, 0.431, 1.172, 50.421, 5042.1),
    ),
    "3, other trainers": (
        "{'loss': 0.431, 'token_acc': 0.81, 'grad_norm': 1.1722, 'learning_rate': 1.9e-07, 'epoch':"
        " 0.1, 'global_step/max_steps': '10/200', 'percentage': '5.00%', 'elapsed_time': '50s',"
        " 'remaining_time': '15m 50s', 'memory(GiB)': 61.2, 'train_speed(iter/s)': 0.2}",
        (10, 200, 0.431, 1.1722, 50.0, 5000.0),
    ),
    "resumed: the mean does not cover all steps": (
        "{'loss': 0.431, 'grad_norm': 1.1722, 'iteration': '110/200', 'elapsed_time': '50s',"
        " 'remaining_time': '7m 30s', 'memory(GiB)': 61.2, 'train_speed(s/it)': 5.0421}",
        (110, 200, 0.431, 1.1722, 50.0, 5042.1),
    ),
}


@pytest.mark.parametrize("case", SWIFT)
def test_a_dict_of_ms_swift_is_read_by_key(tmp_path, case):
    line, expected = SWIFT[case]

    row = tables(tmp_path, line + "\n")["iterations"].row(0, named=True)

    names = ("iteration", "train_iters", "lm_loss", "grad_norm", "elapsed_s", "step_ms")
    assert [row[name] for name in names] == pytest.approx(list(expected))
    assert (row["producer"], row["cut"]) == ("ms-swift", False)


@pytest.mark.parametrize(
    "line",
    [
        "{'train_runtime': 990.1, 'train_loss': 0.5, 'epoch': 1.0, 'global_step/max_steps':"
        " '200/200', 'elapsed_time': '16m 30s', 'train_speed(iter/s)': 0.2}",
        "{'eval_loss': 0.5, 'epoch': 1.0, 'global_step/max_steps': '200/200', 'train_speed(iter/s)':"
        " 0.2}",
        "{'loss': 0.5, 'epoch': 1.0, 'step': 5}",
        "train_speed(s/it) is printed with 'iteration': '10/200'",
    ],
)
def test_summaries_evaluations_and_prose_are_no_steps_of_ms_swift(tmp_path, line):
    assert not tables(tmp_path, line + "\n")["iterations"].height


def swift(number, elapsed, mean, *, extra="", end="}"):
    return (
        f"{{'loss': 0.431{extra}, 'grad_norm': 1.17, 'iteration': '{number}/200', 'elapsed_time':"
        f" '{elapsed}', 'memory(GiB)': 61.2, 'train_speed(s/it)': {mean}{end}\n"
    )


def test_step_times_are_differences_and_not_the_running_mean(tmp_path):
    text = swift(1, "3m 15s", 194.512) + swift(5, "9m 48s", 117.6) + swift(10, "17m 30s", 105.013)

    assert report(tmp_path, text).data.iterations["step_ms"].to_list() == pytest.approx(
        [194512.0, 98372.0, 92426.0], rel=1e-6
    )


def test_a_dict_that_ends_early_is_cut(tmp_path):
    assert tables(tmp_path, swift(5, "9m", 108.0, end=""))["iterations"]["cut"].to_list() == [True]


@pytest.mark.parametrize("key", ["'rewards/chosen': 0.1", "'reward': 0.1", "'kl': 0.01"])
def test_the_loss_of_a_preference_is_no_language_model_loss(tmp_path, key):
    row = tables(tmp_path, swift(5, "9m", 108.0, extra=f", {key}"))["iterations"]

    assert row.select("lm_loss", "other_loss").rows() == [(None, 0.431)]


def test_logging_jsonl_of_ms_swift_is_a_log_and_counts_each_step_once(tmp_path):
    logged = {
        "loss": 0.431,
        "grad_norm": float("nan"),
        "learning_rate": 1e-5,
        "elapsed_time_per_iteration": 5.12,
        "memory(GiB)": 61.2,
        "elapsed_time": "51s",
        "throughput": 431.7,
        "loss_scale": 1.0,
        "consumed_samples": 160,
        "global_step/max_steps": "10/200",
    }
    console = (
        " [2025-10-01 09:14:20] iteration       10/     200 | consumed samples:          160 |"
        " elapsed time per iteration (ms): 5120.0 | memory(GiB): 61.2 | elapsed time: 51s | remaining"
        " time: 15m 50s | throughput per GPU (TFLOP/s/GPU): 431.7 | learning rate: 1.000000E-05 |"
        " global batch size:    16 | loss: 4.310000E-01 | loss scale: 1.0 | grad norm: nan |"
        " number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )
    (tmp_path / "logging.jsonl").write_text(json.dumps(logged) + "\n", encoding="utf-8")

    found = report(tmp_path, console)

    assert found.data.run.framework == "ms-swift"
    rows = found.data.iterations.select("iteration", "step_ms", "tflops_per_gpu", "lm_loss").rows()
    assert rows == [(10, 5120.0, 431.7, 0.431)]
    assert {f.rule for f in found.findings if f.severity == "error"} == {"HCP203"}


@pytest.mark.parametrize("name", ["logging.jsonl", "data.jsonl"])
def test_other_json_lines_stay_datasets(tmp_path, name):
    (tmp_path / "train.log").write_text("> initialized tensor model parallel with size 1\n")
    (tmp_path / name).write_text('{"messages": [{"role": "user", "content": "step"}]}\n')

    assert [skipped.kind for skipped in scan(tmp_path).data.health.skipped] == ["dataset"]


PRIMUS_HEAD = "[20260301 09:14:20][rank-7/8][INFO ]         [--------trainer.py:2560] : "
PRIMUS_TAIL = (
    " | learning rate: 9.984820E-06 | global batch size:   128 | lm loss: 6.610211E-01 | loss scale:"
    " 1.0 | grad norm: 0.063 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)
PRIMUS = {
    "2025, slashes": (
        "throughput per GPU (TFLOP/s/GPU): 561.4/561.8 | tokens per GPU (tokens/s/GPU):"
        " 9694.6/9700.6"
    ),
    "2026, words": (
        "compute per GPU (TFLOP/s/GPU): 561.4 (avg 561.8)  | tokens/s/GPU inst/harmonic mean:"
        " 9694.6/9700.6"
    ),
}


@pytest.mark.parametrize("case", PRIMUS)
def test_of_the_pairs_of_primus_the_first_counts(tmp_path, case):
    line = (
        PRIMUS_HEAD + " iteration      126/    5000 | consumed samples:        16128 | elapsed time"
    )
    line += " per iteration (ms): 13520.1/13511.7 | hip mem usage/free/total/usage_ratio: 152.90GB/"
    line += "103.08GB/255.98GB/59.73% | " + PRIMUS[case] + PRIMUS_TAIL

    row = tables(tmp_path, line)["iterations"].row(0, named=True)

    names = ("iteration", "step_ms", "tflops_per_gpu", "tokens_per_s_per_gpu", "line_rank", "time")
    expected = (126, 13520.1, 561.4, 9694.6, 7, "2026-03-01 09:14:20")
    assert tuple(row[name] for name in names) == expected
    assert row["producer"] == "primus"


MEGATRON = (
    " [2026-03-01 09:14:20] iteration       10/     200 | consumed samples:          160 | elapsed"
    " time per iteration (ms): 5120.4 | {extra}learning rate: 2.9E-04 | global batch size:    16 | lm"
    " loss: 7.8E+00 | loss scale: 1.0 | grad norm: 1.234 | number of skipped iterations:   0 | number"
    " of nan iterations:   0 |{end}\n"
)
RELATIVES = {
    "megatron": ("", "", None, None),
    "primus": (
        "throughput per GPU (TFLOP/s/GPU): 431.7 | tokens per GPU (tokens/s/GPU): 4210.5 |"
        " seq_length: 8192 | ",
        "",
        431.7,
        4210.5,
    ),
    "megatron-deepspeed": (
        "",
        " actual seqlen:  4096 | samples per second: 3.678 | tokens per gpu per second (tgs): 627.680"
        " | TFLOPs: 38.23 |",
        38.23,
        627.68,
    ),
}


def test_a_line_of_gpt_neox_is_read(tmp_path):
    text = (
        "worker-0:  samples/sec: 51.2 | iteration       10/      50 | elapsed time per iteration"
        " (ms): 2500.0 | learning rate: 6.000E-04 | approx flops per GPU: 150.3TFLOPS | lm_loss:"
        " 7.1E+00 | loss scale: 1.0 | number of skipped iterations:   0 | number of nan iterations:"
        "   0 |\n"
    )

    row = tables(tmp_path, text)["iterations"]

    assert row.select("producer", "lm_loss", "tflops_per_gpu", "cut").rows() == [
        ("gpt-neox", 7.1, 150.3, False)
    ]


@pytest.mark.parametrize("producer", RELATIVES)
def test_relatives_that_print_megatrons_line_are_told_apart(tmp_path, producer):
    extra, end, tflops, tokens = RELATIVES[producer]

    row = tables(tmp_path, MEGATRON.format(extra=extra, end=end))["iterations"]

    assert row.select("producer", "tflops_per_gpu", "tokens_per_s_per_gpu").rows() == [
        (producer, tflops, tokens)
    ]


BARS = {
    "seconds per step": (
        "Epoch 0:   1%|▏         | 795/77225 [9:07:58<878:01:48, 41.36s/it, loss=3.1, v_num=,"
        " reduced_train_loss=3.090, global_step=794.0, consumed_samples=1.63e+6]",
        (794, 77225, 3.09, 41360.0, 1630000),
    ),
    "steps per second, with its own timing": (
        "Epoch 1: :   2%|▏| 12/500 [00:07<05:03,  1.61it/s, v_num=4p2h, reduced_train_loss=1.500,"
        " global_step=12.00, consumed_samples=192.0, train_step_timing in s=0.640]",
        (12, 500, 1.5, 640.0, 192),
    ),
    "steps per second": (
        "Epoch 1:   2%|▏| 12/500 [00:07<05:03,  1.60it/s, v_num=4p2h, reduced_train_loss=1.250,"
        " global_step=11.00, consumed_samples=192.0]",
        (11, 500, 1.25, 625.0, 192),
    ),
    "bar and step counted apart": (
        "Epoch 0:   1%|▏| 96/77225 [00:58<8:01:48, 1.30s/it, loss=3.1, v_num=0,"
        " reduced_train_loss=3.090, gradient_norm=0.5, global_step=11.00, consumed_samples=96.0,"
        " iteration_time=10.40]",
        (11, None, 3.09, 10400.0, 96),
    ),
}


@pytest.mark.parametrize("case", BARS)
def test_a_bar_of_nemo_1_is_read(tmp_path, case):
    line, expected = BARS[case]

    row = tables(tmp_path, line + "\n")["iterations"].row(0, named=True)

    names = ("iteration", "train_iters", "lm_loss", "step_ms", "consumed_samples")
    approximate = [pytest.approx(v) if isinstance(v, float) else v for v in expected]
    assert [row[name] for name in names] == approximate
    assert (row["producer"], row["cut"]) == ("nemo", False)


def test_iterations_of_nemo_2_go_on_through_its_epochs(tmp_path):
    line = (
        "(pretrain, pid=4112) Training epoch {}, iteration {}/99 | lr: 3e-06 | global_batch_size: 512"
        " | global_step: {} | reduced_train_loss: 11.03 | train_step_timing in s: 46.86 |"
        " consumed_samples: 10240\n"
    )
    text = line.format(0, 18, 18) + line.format(1, 0, 19) + line.format(1, 1, 20)

    found = report(tmp_path, text)

    assert found.data.iterations["iteration"].to_list() == [18, 19, 20]
    assert tables(tmp_path, text)["iterations"]["stream"].to_list() == [""] * 3


def test_a_bar_that_is_redrawn_counts_each_step_once(tmp_path):
    bar = BARS["steps per second"][0]
    frames = [bar.replace("11.00", f"{n}.00").replace("12/", f"{n + 1}/") for n in (11, 11, 12, 13)]

    found = report(tmp_path, "\r".join(["", *frames]) + "\n")

    assert found.data.iterations["iteration"].to_list() == [11, 12, 13]
    assert found.data.run.framework == "nemo"


def test_a_line_of_nanotron_is_read_with_its_magnitudes(tmp_path):
    text = (
        "03/01/2026 09:14:20 [INFO|DP=0|PP=0|TP=0|host01]: iteration: 327281 / 378950 |"
        " consumed_tokens: 687B | time_per_iteration_ms: 11.5K | tokens_per_sec: 182K |"
        " tokens_per_sec_per_gpu: 22.8K | global_batch_size: 2.1M | lm_loss: 2.38 | lr: 3e-05 |"
        " model_tflops_per_gpu: 384 | grad_norm: 0.191 | eta: 6 days, 20:01:02\n"
    )

    row = tables(tmp_path, text)["iterations"].row(0, named=True)

    names = ("iteration", "train_iters", "step_ms", "tokens_per_s_per_gpu", "tflops_per_gpu")
    names += ("lm_loss", "grad_norm")
    expected = (327281, 378950, 11500.0, 22800.0, 384.0, 2.38, 0.191)
    assert tuple(row[name] for name in names) == pytest.approx(expected)
    assert (row["global_batch_size"], row["cut"], row["producer"]) == (None, False, "nanotron")


def mllog(key, value, metadata="", event="POINT_IN_TIME"):
    return (
        f':::MLLOG {{"namespace": "", "time_ms": 1771651800896, "event_type": "{event}", "key":'
        f' "{key}", "value": {value}, "metadata": {{"file": "/app/t.py", "lineno": 66{metadata}}}}}\n'
    )


def test_mlperf_lines_state_sizes_and_a_finished_run_without_steps(tmp_path):
    text = mllog("tensor_parallelism", 2) + mllog("context_parallelism", 1)
    text += mllog("init_stop", "null") + mllog("run_start", "null")
    text += mllog("tracked_stats", '{"throughput": 33.2}', ', "step": 172032')
    text += mllog("train_loss", 3.41, ', "samples_count": 4096, "lr": 0.0004')
    text += mllog("run_stop", "null", ', "samples_count": 172032, "status": "success"')

    found = report(tmp_path, text)

    attempt = found.data.attempts[0]
    assert found.verdict.status == "not_requested"
    assert (attempt.iterations, attempt.outcome, attempt.facts["tp_size"]) == (0, "completed", 2)
    assert not found.findings


def test_an_aborted_mlperf_run_is_not_done(tmp_path):
    text = mllog("run_start", "null") + mllog("run_stop", "null", ', "status": "aborted"')

    assert report(tmp_path, text).data.attempts[0].facts["training_done"] is False


def test_a_step_number_beside_a_loss_of_mlperf_is_an_iteration(tmp_path):
    stats = mllog(
        "tracked_stats", '{"throughput": 33.2, "loss": 3.41, "lr": 0.0004}', ', "step_num": 32'
    )

    assert tables(tmp_path, stats)["iterations"].select("iteration", "lm_loss").rows() == [
        (32, 3.41)
    ]


LOSS, GRADIENT = (
    "found NaN in local forward loss calculation",
    "found NaN in local grad norm for bucket #0",
)
REFUSED = {
    "main of 2026": (
        "ERROR:megatron.core.rerun_state_machine:Unexpected result nan on rank 3 at iteration #3"
        " invocation #2 (message='{}')",
        3,
    ),
    "0.10": (
        "ERROR:megatron.core.rerun_state_machine:Unexpected result nan at /opt/megatron/training.py"
        " line 812, invokation #2 at iteration #3 (message='{}')",
        None,
    ),
    "reruns off": (
        "[rank3]: RuntimeError: Rank 3, node host01, device 3, iteration 3: Unexpected result nan"
        " (message='{}')",
        3,
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize(("message", "rule"), [(LOSS, "HCP202"), (GRADIENT, "HCP203")])
def test_a_refused_result_is_found_and_is_no_finished_iteration(tmp_path, case, message, rule):
    line, rank = REFUSED[case]
    text = line.format(message) + "\n"

    found = report(tmp_path, text)

    assert {f.rule: f.iteration for f in found.findings}[rule] == 3
    assert found.data.attempts[0].iterations == 0
    assert tables(tmp_path, text)["rejected_results"]["line_rank"].to_list() == [rank]


def test_a_refused_loss_outweighs_the_gradients_that_follow_from_it(tmp_path):
    line = REFUSED["main of 2026"][0]
    text = line.format(GRADIENT) + "\n" + line.format(LOSS) + "\n"

    rules = {f.rule for f in report(tmp_path, text).findings}
    assert rules & {"HCP202", "HCP203"} == {"HCP202"}


def test_a_spike_is_no_result_that_is_not_finite(tmp_path):
    text = REFUSED["main of 2026"][0].replace("nan", "17.25").format("spiky loss") + "\n"

    assert not tables(tmp_path, text)["rejected_results"].height


def test_an_iteration_that_was_printed_all_the_same_stays_as_printed(tmp_path):
    refused = REFUSED["main of 2026"][0].replace("#3", "#10").format(GRADIENT) + "\n"

    found = report(tmp_path, refused + MEGATRON.format(extra="", end=""))

    assert found.data.iterations.select("iteration", "finished").rows() == [(10, True)]
