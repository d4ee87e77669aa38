"""HCP106 and HCP110 over whole logs, by whatever tells the time of a step."""

import datetime as dt
import math
import re

from hcp_logscan import scan

START = dt.datetime(2031, 5, 1, 10)  # noqa: DTZ001 - logs have no zone
DUMP = """\
------------------------ arguments ------------------------
  bf16 ............................................ True
  context_parallel_size ........................... 1
  fp16 ............................................ False
  global_batch_size ............................... 8
  seq_length ...................................... 8192
  world_size ...................................... 8
-------------------- end of arguments ---------------------
"""


def steps(first, last, seconds):
    """(iteration, stamp, seconds of the step) with noise of a percent."""
    at = START + dt.timedelta(days=first)
    for i in range(first, last + 1):
        took = seconds(i) * (1.0 + 0.01 * math.sin(12.9898 * i * i))
        at += dt.timedelta(seconds=took)
        yield i, f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1_000:03d}", took


def titan(first, last, seconds):
    """Torchtitan's lines: tokens/s and no step time."""
    return "".join(
        f"[rank0]:[titan] {stamp.replace('.', ',')} - root - INFO - step: {i}  loss:  6.1120"
        "  grad_norm:  0.8123  memory: 61.20GiB(77.00%)"
        f"  tps: {8_192 / took:,.0f}  tflops: {800 / took:.2f}  mfu: {80 / took:.2f}%\n"
        for i, stamp, took in steps(first, last, seconds)
    )


def megatron(first, last, seconds, *, timed=True):
    """Megatron's lines, also with a step time that is no number."""
    return "".join(
        f" [{stamp[:19]}] iteration {i:8d}/    2000 | consumed samples: {8 * i:12d} |"
        f" elapsed time per iteration (ms): {format(1_000 * took, '.1f') if timed else 'n/a'} |"
        " learning rate: 1.000000E-06 | global batch size:     8 | lm loss: 2.310000E+00 | loss"
        " scale: 1.0 | grad norm: 0.741 | number of skipped iterations:   0 | number of nan"
        " iterations:   0 |\n"
        for i, stamp, took in steps(first, last, seconds)
    )


def report(tmp_path, *texts):
    (tmp_path / "train.log").write_text("".join(texts))
    return scan(tmp_path)


def outcomes(found, rule):
    return [one.outcome for one in found.data.judgements if one.rule == rule]


def said(found, rule):
    return next(one for one in found.findings if one.rule == rule)


def slower(i):
    return 30.0 if i <= 300 else 39.0


def steady(i):
    return 330.0 if i % 100 == 0 else 30.0  # every hundredth step saves


def test_a_trainer_without_step_times_gets_slower_by_its_tokens(tmp_path):
    found = report(tmp_path, titan(1, 400, slower))
    finding = said(found, "HCP106")
    assert re.search(
        r"a step takes 1\.30 times as long .*: 21[01] tokens/s/GPU against 27[34] tokens/s/GPU"
        r" \(medians, by the printed tokens/s\)",
        finding.message,
    )
    assert 300 < finding.iteration <= 400
    assert finding.evidence_total == 401 - finding.iteration


def test_a_steady_one_is_clean(tmp_path):
    found = report(tmp_path, titan(1, 400, steady))
    assert outcomes(found, "HCP106") == ["clean"]


def test_lines_without_any_speed_are_told_by_their_stamps(tmp_path):
    found = report(tmp_path, DUMP, megatron(1, 400, slower, timed=False))
    finding = said(found, "HCP106")
    assert "39,0" in finding.message
    assert "ms against 30,0" in finding.message
    assert "by the time stamps of the lines" in finding.message
    assert finding.evidence_total == 401 - finding.iteration


def test_saves_between_the_stamps_are_no_slowdown(tmp_path):
    found = report(tmp_path, DUMP, megatron(1, 400, steady, timed=False))
    assert outcomes(found, "HCP106") == ["clean"]


def test_lines_without_speed_or_stamps_cannot_tell(tmp_path):
    text = megatron(1, 400, slower, timed=False)
    found = report(tmp_path, DUMP, re.sub(r"(?m)^ \[[^]]*\]", "", text))
    assert outcomes(found, "HCP106") == ["inconclusive"]
    (judged,) = (one for one in found.data.judgements if one.rule == "HCP106")
    assert "pace_change" in judged.missing


def test_attempts_with_and_without_step_times_are_compared_by_their_stamps(tmp_path):
    before = megatron(1, 60, lambda _: 30.0)
    after = megatron(41, 100, lambda _: 12.0, timed=False)
    found = report(tmp_path, DUMP, before, DUMP, after)
    finding = said(found, "HCP110")
    assert "at 2.50 times the speed of attempt 0" in finding.message
    assert "by the time stamps of the lines" in finding.message


def test_of_one_speed_they_are_clean(tmp_path):
    before = megatron(1, 60, lambda _: 30.0)
    after = megatron(41, 100, lambda _: 30.5, timed=False)
    found = report(tmp_path, DUMP, before, DUMP, after)
    assert outcomes(found, "HCP110") == ["inconclusive", "clean"]


def test_attempts_without_a_source_in_common_cannot_tell(tmp_path):
    before = megatron(1, 60, lambda _: 30.0)
    after = re.sub(r"(?m)^ \[[^]]*\]", "", megatron(41, 100, lambda _: 12.0, timed=False))
    found = report(tmp_path, DUMP, before, DUMP, after)
    assert outcomes(found, "HCP110") == ["inconclusive", "inconclusive"]
