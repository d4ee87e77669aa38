"""Step lines of the reinforcement learning trainers: verl and kin, slime, NeMo-RL."""

from __future__ import annotations

import pytest

from hcp_logscan import scan
from hcp_logscan.engine.run import scan_files
from hcp_logscan.sources.discover import discover


def tables(tmp_path, text):
    (tmp_path / "driver.log").write_text(text, encoding="utf-8")
    return scan_files(discover(tmp_path))


def report(tmp_path, text):
    (tmp_path / "driver.log").write_text(text, encoding="utf-8")
    return scan(tmp_path)


VERL = {
    "0.1, 3 decimals, before the name of the MFU changed": (
        "step:3 - global_seqlen/mean:29241.250 - actor/entropy_loss:0.411 - actor/pg_loss:-0.001 -"
        " actor/grad_norm:0.216 - mfu/actor:0.311 - actor/lr:0.000 - critic/score/mean:0.612 -"
        " timing_s/gen:21.103 - timing_s/step:58.250\n",
        (3, 58250.0, None, 0.311, -0.001, "actor/pg_loss", None, 0.216),
    ),
    "0.4, whole precision": (
        "\x1b[36m(TaskRunner pid=8123, ip=10.0.0.5)\x1b[0m step:12 - global_seqlen/mean:61021.5 -"
        " actor/entropy:0.3102 - actor/kl_loss:0.00098 - actor/pg_loss:np.float64(-0.0132) -"
        " actor/grad_norm:0.41772106289863586 - perf/mfu/actor:0.3107 - actor/lr:1e-06 -"
        " perf/total_num_tokens:976344 - perf/time_per_step:61.2 - perf/throughput:1994.17\n",
        (12, 61200.0, 1994.17, 0.3107, -0.0132, "actor/pg_loss", None, 0.417721),
    ),
    "the supervised trainer": (
        "step:7 - train/loss:0.8123 - train/grad_norm:1.25 - train/lr:1e-05 - train/mfu:0.28 -"
        " train/global_tokens:131072\n",
        (7, None, None, 0.28, None, None, 0.8123, 1.25),
    ),
    "the supervised trainer before 0.5": (
        "step:7 - train/loss:0.8123 - train/lr(1e-3):0.01\n",
        (7, None, None, None, None, None, 0.8123, None),
    ),
    "critic warm-up": (
        "step:1 - critic/vf_loss:3.1 - critic/grad_norm:9.5 - timing_s/step:20.0 -"
        " perf/throughput:900.0\n",
        (1, 20000.0, 900.0, None, 3.1, "critic/vf_loss", None, 9.5),
    ),
    "siiRL counts the tokens of all GPUs": (
        "step:2 - training/epoch:1.000 - actor/grad_norm:0.212 - actor/pg_loss:0.004 -"
        " perf/delta_time/step:125.101 - perf/mfu/actor:0.023 - perf/time_per_step:125.101 -"
        " perf/throughput:3440.914\n",
        (2, 125101.0, None, 0.023, 0.004, "actor/pg_loss", None, 0.212),
    ),
}


@pytest.mark.parametrize("case", VERL)
def test_a_verl_step_is_read_by_key(tmp_path, case):
    line, expected = VERL[case]

    row = tables(tmp_path, line)["iterations"].row(0, named=True)

    names = ("iteration", "step_ms", "tokens_per_s_per_gpu", "mfu", "other_loss", "other_loss_name")
    names += ("lm_loss", "grad_norm")
    approximate = [pytest.approx(v) if isinstance(v, float) else v for v in expected]
    assert [row[name] for name in names] == approximate
    assert row["producer"] == ("siirl" if "siiRL" in case else "verl")


@pytest.mark.parametrize(
    "line",
    [
        "step:0 - val-core/math/acc/mean@1:0.31 - val-aux/num_turns/mean:2.0",
        "we saw actor/grad_norm:0.2 at step:5",
        "metrics: actor/grad_norm:0.2",
        "step:5 - actor/grad_norm:0.2",
        "step:5 took long - see actor/grad_norm: 0.2 - bad",
        "  actor/grad_norm: 0.2",
    ],
)
def test_what_has_no_step_and_two_metrics_is_no_verl_step(tmp_path, line):
    assert not tables(tmp_path, line + "\n")["iterations"].height


def verl(number, loss="0.0132", norm="0.41"):
    return (
        f"(TaskRunner pid=8123) step:{number} - actor/pg_loss:{loss} - actor/grad_norm:{norm} -"
        " perf/mfu/actor:0.31 - perf/time_per_step:61.2 - perf/throughput:1184.2\n"
    )


def test_a_policy_loss_may_be_negative_and_is_no_language_model_loss(tmp_path):
    found = report(tmp_path, "".join(verl(n, "-0.0132") for n in (1, 2, 3)))

    assert found.findings == ()
    assert found.data.run.framework == "verl"
    assert found.data.series.lm_loss.last is None
    assert found.data.series.tokens_per_s_per_gpu.median == pytest.approx(1184.2)


def test_a_policy_loss_that_is_nan_is_found(tmp_path):
    found = report(tmp_path, verl(1) + verl(2, "nan", "nan") + verl(3, "nan", "nan"))

    assert {f.rule: f.iteration for f in found.findings}["HCP202"] == 2


RAY = "(MegatronTrainRayActor pid=10222) "


def slime_step(number, *, head="[2026-03-01 09:14:20] model.py:918 - ", loss="-0.0123"):
    return (
        f"{RAY}{head}step {number}: {{'train/loss': {loss}, 'train/pg_loss': {loss},"
        " 'train/entropy_loss': 0.31, 'train/ppo_kl': 0.0, 'train/grad_norm': 0.1713,"
        f" 'train/lr-pg_0': 1e-06, 'train/step': {number}}}\n"
    )


def slime_perf(number, *, head="[2026-03-01 09:15:02] train_metric_utils.py:44 - ", tflops="90.7"):
    return (
        f"{RAY}{head}perf {number}: {{'perf/train_wait_time': 31.2, 'perf/actor_train_time': 9.8,"
        f" 'perf/train_time': 12.1, 'perf/actor_train_tflops': {tflops},"
        " 'perf/actor_train_tok_per_s': 4825.5, 'perf/step_time': 43.3}\n"
    )


SLIME_NOISE = (
    "(RolloutManager pid=6909) [2026-03-01 09:14:01] rollout.py:1303 - perf 0: {'rollout/response_len"
    "/mean': 1902.1, 'perf/rollout_time': 264.1, 'perf/tokens_per_gpu_per_sec': 175.1}\n"
    f"{RAY}[2026-03-01 09:14:02] data.py:193 - rollout 0: {{'rollout/rewards': 0.1,"
    " 'rollout/kl': 0.0}\n"
    f"{RAY}[2026-03-01 09:14:20] model.py:918 - critic-step 0: {{'train/critic-loss': 0.5,"
    " 'train/critic-grad_norm': 0.2}\n"
)


@pytest.mark.parametrize("old", [False, True], ids=["logged", "printed, until 2025-11"])
def test_rollout_step_and_perf_of_slime_are_one_iteration(tmp_path, old):
    head = {"head": ""} if old else {}
    text = SLIME_NOISE + slime_step(0, **head) + slime_perf(0, **head)
    text += slime_step(1, **head) + slime_perf(1, tflops="92.7", **head)

    found = report(tmp_path, text)

    rows = found.data.iterations.select("iteration", "tflops_per_gpu", "step_ms").rows()
    assert rows == [(0, 90.7, 43300.0), (1, 92.7, 43300.0)]
    assert found.data.run.framework == "slime"
    assert found.data.series.tokens_per_s_per_gpu.median is None
    assert not found.findings


def test_several_steps_of_one_rollout_share_its_time(tmp_path):
    text = slime_step(0) + slime_step(1) + slime_perf(0) + slime_step(2) + slime_step(3)

    rows = report(tmp_path, text + slime_perf(1)).data.iterations

    assert rows["iteration"].to_list() == [0, 1, 2, 3]
    assert rows["step_ms"].to_list() == pytest.approx([21650.0] * 4)
    assert rows["tflops_per_gpu"].to_list() == [90.7] * 4


def test_perf_lines_without_steps_are_iterations_of_their_rollouts(tmp_path):
    rows = report(tmp_path, slime_perf(4) + slime_perf(5)).data.iterations

    assert rows.select("iteration", "lm_loss_present").rows() == [(4, None), (5, None)]


def test_a_supervised_loss_of_slime_is_a_language_model_loss(tmp_path):
    line = f"{RAY}[2026-03-01 09:14:20] model.py:918 - step 4: {{'train/loss': 1.23,"
    row = tables(tmp_path, line + " 'train/grad_norm': 0.17, 'train/step': 4}\n")["iterations"]

    assert row.select("iteration", "lm_loss", "time").rows() == [(4, 1.23, "2026-03-01 09:14:20")]


def test_a_grep_number_before_a_ray_prefix_is_no_part_of_the_line(tmp_path):
    rows = tables(tmp_path, "5012:" + slime_step(4))["iterations"]

    assert rows.select("iteration", "time").rows() == [(4, "2026-03-01 09:14:20")]


def nemo_rl(number, loss="0.4321", *, reward=True, flops=True):
    return (
        f"\n========================= Step {number}/100 =========================\n"
        "▶ Generating responses for batch of size 512...\n"
        "(MegatronPolicyWorker[rank=3] pid=77, ip=10.0.0.5) Loss: 9.9\n"
        f"\n📊 Training Results:\n  • Loss: {loss}\n"
        + ("  • Generation KL Error: 0.0012\n  • Avg Reward: 0.3125\n" if reward else "")
        + "\n⏱️  Timing:\n  • Total step time: 61.25s\n  • policy_training: 20.02s (32.7%)\n"
        "\n🔍 Performance Metrics:\n  • Throughputs (per GPU):\n    - E2E (Samples/sec/gpu): 1.04\n"
        "    - E2E (Tokens/sec/gpu): 512.00\n  • Throughputs (per Group):\n"
        "    - E2E (Tokens/sec): 4096.00\n"
        + (
            "  • Training FLOPS: 3210.00 TFLOPS (401.25 TFLOPS per rank)\n"
            "  • Training Model Floating Point Utilization: 40.57%\n"
            if flops
            else ""
        )
    )


def test_a_record_of_nemo_rl_is_one_iteration_with_the_number_of_its_step(tmp_path):
    found = report(tmp_path, nemo_rl(1) + nemo_rl(2, "-0.0100"))

    rows = found.data.iterations.select(
        "iteration", "step_ms", "tflops_per_gpu", "tokens_per_s_per_gpu", "mfu", "lm_loss"
    ).rows()
    speed = (61250.0, 401.25, 512.0, pytest.approx(0.4057), None)
    assert rows == [(1, *speed), (2, *speed)]
    assert (found.data.run.framework, found.findings) == ("nemo-rl", ())


def test_the_loss_of_supervised_fine_tuning_is_a_language_model_loss(tmp_path):
    found = report(tmp_path, nemo_rl(1, reward=False, flops=False))

    assert found.data.series.lm_loss.last == pytest.approx(0.4321)
    assert found.data.series.tflops_per_gpu.median is None


def test_a_step_of_nemo_rl_without_results_has_not_finished(tmp_path):
    text = "========================= Step 1/100 =========================\n▶ Generating\n"

    attempt = report(tmp_path, text).data.attempts[0]

    assert (attempt.iterations, attempt.facts["training_announced"]) == (0, True)


@pytest.mark.parametrize(
    "text",
    [
        "Training Results:\n  • Accuracy: 0.3\n\n",
        "see Training Results: Loss: 0.4\n",
        "Training Results:\n",
    ],
)
def test_results_without_loss_and_time_are_no_iteration(tmp_path, text):
    assert not tables(tmp_path, text)["iterations"].height
