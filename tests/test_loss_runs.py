"""Loss health over whole logs: what a message hints at, and what a restart shows."""

import math

import pytest

from hcp_logscan import scan

DUMP = """\
------------------------ arguments ------------------------
  bf16 ............................................ True
  context_parallel_size ........................... {cp}
  fp16 ............................................ False
  fp4 ............................................. {fp4}
  global_batch_size ............................... 8
  seq_length ...................................... 8192
  world_size ...................................... 8
-------------------- end of arguments ---------------------
"""
LINE = (
    " [2031-03-02 11:{minute:02d}:{second:02d}] iteration {i:8d}/    2000 | consumed samples:"
    " {samples:12d} | elapsed time per iteration (ms): {ms:.1f} | learning rate: 1.000000E-06 |"
    " global batch size:     8 |{loss} loss scale: 1.0 | grad norm: {norm} |"
    " number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)


def line(i, loss="7.071234E-01", norm="0.741", ms=5_120.0):
    return LINE.format(
        minute=i // 12 % 60,
        second=i * 5 % 60,
        i=i,
        samples=8 * i,
        ms=ms,
        loss=f" lm loss: {loss} |" if loss else "",
        norm=norm,
    )


def report(tmp_path, *lines, cp=4, fp4="None"):
    (tmp_path / "train.log").write_text(DUMP.format(cp=cp, fp4=fp4) + "".join(lines))
    return scan(tmp_path)


def message(found, rule):
    return next(one.message for one in found.findings if one.rule == rule)


def test_nan_from_the_first_iteration_under_cp_hints_at_padding(tmp_path):
    lines = [line(i, loss=None, norm="nan") for i in range(1, 6)]
    said = message(report(tmp_path, *lines), "HCP201")
    assert said.endswith(
        "It is so from the first iteration, with CP size 4: look for padded data, samples so short"
        " that a CP rank holds only padding (0/0)."
    )


@pytest.mark.parametrize(("first", "cp"), [(900, 4), (1, 1)])
def test_nan_that_comes_later_or_without_cp_does_not(tmp_path, first, cp):
    lines = [line(i, loss="2.3", norm="0.4") for i in range(first - 40, first) if i > 0]
    lines += [line(i, loss="8.1", norm="90.0") for i in range(first - 2, first) if i > 0]
    lines += [line(i, loss=None, norm="nan") for i in range(first, first + 3)]
    assert "padding" not in message(report(tmp_path, *lines, cp=cp), "HCP201")


def test_one_line_alone_may_stand_behind_a_resume(tmp_path):
    assert "padding" not in message(report(tmp_path, line(900, loss=None, norm="nan")), "HCP201")


def test_nan_gradients_in_low_precision_under_cp_say_so(tmp_path):
    lines = [line(i, loss="11.2", norm="nan") for i in range(1, 6)]
    said = message(report(tmp_path, *lines, cp=2, fp4="nvfp4"), "HCP203")
    assert "FP4 tensors split wrongly over CP ranks do it, too." in said


def test_a_restart_that_is_faster_and_worse_is_found(tmp_path):
    before = [line(i, loss="2.31", ms=5_120.0 + i % 7) for i in range(1, 41)]
    after = [line(i, loss="2.95", ms=1_600.0 + i % 7) for i in range(31, 61)]
    found = report(tmp_path, *before, DUMP.format(cp=4, fp4="None"), *after)
    fired = {one.rule: one.message for one in found.findings if one.rule in {"HCP110", "HCP209"}}
    assert set(fired) == {"HCP110", "HCP209"}
    assert "at 3.20 times the speed of attempt 0" in fired["HCP110"]
    jump = next(one for one in found.findings if one.rule == "HCP209")
    assert [jump.iteration, jump.evidence_total] == [31, 20]
    assert "0.64 higher than before (2.31), compared over the same iterations" in fired["HCP209"]


def test_a_restart_that_goes_on_is_quiet(tmp_path):
    before = [line(i, loss="2.31", ms=5_120.0 + i % 7) for i in range(1, 41)]
    after = [line(i, loss="2.30", ms=5_140.0 + i % 7) for i in range(31, 61)]
    found = report(tmp_path, *before, DUMP.format(cp=4, fp4="None"), *after)
    assert not {one.rule for one in found.findings} & {"HCP106", "HCP110", "HCP204", "HCP209"}
    outcomes = {(one.rule, one.attempt): one.outcome for one in found.data.judgements}
    assert outcomes["HCP110", 1] == outcomes["HCP209", 1] == "clean"


def noisy(i, level):
    """A loss of this level in a line, with noise of 1 %."""
    return f"{level * (1.0 + 0.01 * math.sin(12.9898 * i * i)):.6E}"


def test_a_loss_that_grows_slowly_is_found_and_says_where(tmp_path):
    levels = {i: 2.3 * max(1.0, math.exp((i - 500) / 2_000)) for i in range(1, 1_501)}
    found = report(tmp_path, *(line(i, loss=noisy(i, level)) for i, level in levels.items()))
    (growth,) = (one for one in found.findings if one.rule == "HCP204")
    assert 900 < growth.iteration < 1_100
    assert "Its level rose from 2.5" in growth.message
    assert growth.message.endswith("and did not come back.")


def test_a_jump_behind_a_resume_is_no_growth(tmp_path):
    before = [line(i, loss=noisy(i, 2.31)) for i in range(1, 601)]
    after = [line(i, loss=noisy(i, 3.31)) for i in range(501, 1_101)]
    found = report(tmp_path, *before, DUMP.format(cp=4, fp4="None"), *after)
    assert {one.rule for one in found.findings} & {"HCP204", "HCP209"} == {"HCP209"}
