"""A run beside a known good one: whole runs, from the log to the finding and the documents."""

from __future__ import annotations

import json
import math
import random
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from compose import Job, Shape, arguments, loss_at
from runs import FIXTURES

from hcp_logscan import Report, scan
from hcp_logscan.api import read_baseline
from hcp_logscan.cli.app import main
from hcp_logscan.model.errors import UsageError
from hcp_logscan.reporting.schema import load_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

OFF = FIXTURES / "case01-no-sizes" / "run"
ON = FIXTURES / "case01-twin-a-sizes-set" / "run"
RULES = {"HCP107", "HCP108", "HCP109", "HCP206", "HCP207", "HCP208"}


@dataclass(frozen=True)
class Course:
    """What one run prints, iteration by iteration; noise is that of its seed."""

    job: Job = field(default_factory=lambda: Job(world_size=8, cp=4, sizes=(2, 2)))
    last: int = 120
    first: int = 1
    every: int = 1
    seed: int = 1
    seconds: Callable[[int], float] = lambda _: 10.0
    loss: Callable[[int], float] = loss_at
    norm: Callable[[int], float] = lambda i: 3.0 / (1 + 0.02 * i)
    flops: float = 1.0
    changes: Mapping[str, object] = field(default_factory=dict)
    end: tuple[str, ...] = ()


def write(folder: Path, course: Course) -> Path:
    """A console log of Megatron-LM: the argument dump, then the iterations."""
    shape, made = course.job.shape, random.Random(course.seed)
    dump = {line.split()[0]: line for line in arguments(course.job)[1:-1]}
    dump |= {name: f"  {name} ...... {value}" for name, value in course.changes.items()}
    head, *_, end = arguments(course.job)
    lines = [head, *dump.values(), end, "training ..."]
    window: list[tuple[float, float, float]] = []
    for i in range(course.first, course.last + 1):
        seconds = course.seconds(i) * (1 + made.gauss(0, 0.01)) * (3 if i == course.first else 1)
        window.append(
            (
                seconds,
                course.loss(i) * (1 + made.gauss(0, 0.01)),
                course.norm(i) * (1 + made.gauss(0, 0.15)),
            )
        )
        if i % course.every and i != 1:
            continue
        seconds, loss, norm = (sum(column) / len(window) for column in zip(*window, strict=True))
        norm, window = window[-1][2], []
        counted = shape.batch * (shape.linear + shape.attention) * course.flops
        rate = counted / (seconds * course.job.world_size * 1e12)
        lines.append(
            f" [2026-03-01 09:{i // 60 % 60:02d}:{i % 60:02d}] iteration {i:8d}/{course.last:8d}"
            f" | consumed samples: {i * shape.batch:12d}"
            f" | elapsed time per iteration (ms): {seconds * 1000:.1f}"
            f" | throughput per GPU (TFLOP/s/GPU): {rate:.1f} | learning rate: 3.000000E-04"
            f" | global batch size: {shape.batch:5d} | lm loss: {loss:.6E} | loss scale: 1.0"
            f" | grad norm: {norm:.3f} | number of skipped iterations:   0"
            " | number of nan iterations:   0 |"
        )
    folder.mkdir(parents=True)
    (folder / "train.log").write_text("\n".join((*lines, *course.end)) + "\n", encoding="utf-8")
    return folder


def beside(tmp_path: Path, ours: Course, theirs: Course, **options: Any) -> Report:
    good = write(tmp_path / "good", replace(theirs, seed=theirs.seed + 1))
    return scan(write(tmp_path / "new", ours), baseline=good, **options)


def fired(report: Report) -> set[str]:
    return {finding.rule for finding in report.findings} & RULES


def facts(report: Report) -> dict[str, Any]:
    return dict(report.data.attempts[-1].facts)


@pytest.mark.parametrize("seed", range(3))
def test_equal_runs_with_other_seeds_raise_nothing(tmp_path, seed):
    report = beside(tmp_path, Course(seed=seed * 7, last=30 + 45 * seed), Course(seed=seed * 7 + 3))

    outcomes = {j.rule: j.outcome for j in report.data.judgements if j.rule in RULES}
    assert outcomes == dict.fromkeys(RULES, "clean")
    assert facts(report)["baseline_rate_ratio_late"] == pytest.approx(1, abs=0.02)
    assert facts(report)["baseline_loss_ratio_late"] == pytest.approx(1, abs=0.02)


def test_slower_in_the_late_third_only_is_told_with_what_was_configured_otherwise(tmp_path):
    experts = {"num_experts": 8, "moe_router_topk": 2, "moe_ffn_hidden_size": 1024}
    good = Course(
        seconds=lambda i: 27 + 4.3 * math.exp(-i / 60),
        changes={**experts, "moe_aux_loss_coeff": 0.001},
    )
    bad = Course(seconds=lambda _: 31.8, changes={**experts, "moe_aux_loss_coeff": 0.0})
    report = beside(tmp_path, bad, good)

    assert fired(report) == {"HCP109"}
    assert facts(report)["baseline_rate_ratio_early"] > 0.9
    assert facts(report)["baseline_rate_ratio_late"] == pytest.approx(27.8 / 31.8, abs=0.01)
    found = next(one for one in report.findings if one.rule == "HCP109")
    assert found.iteration == 81
    assert found.evidence[0].file == "train.log"
    [difference] = report.data.comparison.differences
    assert (difference.group, difference.key) == ("model shape", "moe_aux_loss_coeff")
    assert difference.value == ("0.0", "0.001")


def test_a_loss_that_is_smooth_but_too_high(tmp_path):
    high = Course(loss=lambda i: loss_at(i) * (1.12 - 0.12 * math.exp(-i / 25)))
    report = beside(tmp_path, high, Course())

    assert fired(report) == {"HCP206"}
    lower = beside(tmp_path / "lower", Course(), high)
    assert not fired(lower)


def test_factors_near_the_cp_size(tmp_path):
    report = beside(tmp_path, Course(loss=lambda i: 4 * loss_at(i), norm=lambda _: 0.25), Course())
    assert fired(report) == {"HCP206", "HCP207"}  # the norm of the baseline falls, so no factor

    report = beside(tmp_path / "b", Course(norm=lambda _: 0.25), Course(norm=lambda _: 1.0))
    assert fired(report) == {"HCP208"}
    assert facts(report)["baseline_grad_norm_size"] == "the CP size 4"


def test_attention_without_cp_is_faster_by_the_predicted_factor():
    report = scan(OFF, baseline=ON)
    assert fired(report) == {"HCP108"}
    assert facts(report)["baseline_rate_by"] == "TFLOP/s/GPU"  # ranks are not known
    assert facts(report)["baseline_rate_ratio_late"] == pytest.approx(3.43, abs=0.01)
    assert report.data.run.baseline == "case01-twin-a-sizes-set"
    assert [(d.key, d.value) for d in report.data.comparison.differences] == [
        ("model.hierarchical_context_parallel_sizes", ("default", "[8, 2]"))
    ]
    # beside itself nothing is told, and a baseline that is off itself says so
    again = scan(OFF, baseline=OFF)
    assert not fired(again)
    assert again.data.comparison.status == "inactive"


def test_another_formula_in_the_same_time(tmp_path):
    report = beside(tmp_path, Course(flops=1.3), Course())
    assert fired(report) == {"HCP107"}
    assert facts(report)["baseline_flops_ratio"] == pytest.approx(1.3, abs=0.01)


def test_runs_of_other_batches_meet_at_consumed_samples(tmp_path):
    job = Course().job
    double = replace(job, shape=Shape(batch=32))
    ours = Course(job=double, last=60, loss=lambda i: loss_at(2 * i), seconds=lambda _: 20.0)
    report = beside(tmp_path, ours, Course())
    found = facts(report)

    assert found["baseline_aligned_by"] == "consumed samples"
    assert found["baseline_differences"] == ["global_batch_size"]
    assert found["baseline_loss_ratio_late"] == pytest.approx(1, abs=0.01)
    assert found["baseline_rate_by"] == "tokens/s/GPU"
    assert found["baseline_rate_ratio_late"] == pytest.approx(1, abs=0.01)
    assert found["baseline_step_ratio_late"] is None
    assert not fired(report)
    assert report.data.comparison.series["iteration"].max() == 60  # in our count


def test_lines_that_average_over_other_intervals_meet_in_their_middle(tmp_path):
    steep = Course(loss=lambda i: 10.0 - 0.08 * i)
    report = beside(tmp_path, replace(steep, every=10), steep)

    for window in ("early", "middle", "late"):
        assert facts(report)[f"baseline_loss_ratio_{window}"] == pytest.approx(1, abs=0.015)


def test_a_run_resumed_where_the_baseline_never_came_is_compared_by_speed_only(tmp_path):
    report = beside(tmp_path, Course(first=500, last=560, seconds=lambda _: 14.0), Course(last=80))
    assert facts(report)["baseline_aligned_by"] == "order of lines"
    assert facts(report)["baseline_loss_ratio_late"] is None
    assert fired(report) == {"HCP109"}


def test_restarts_of_the_baseline_make_one_series(tmp_path):
    parts = [
        (write(tmp_path / str(n), course) / "train.log").read_text()
        for n, course in enumerate((Course(last=60), Course(first=41, seed=9)))
    ]
    good = tmp_path / "good"
    good.mkdir()
    (good / "train.log").write_text("".join(parts))
    report = scan(write(tmp_path / "new", Course(seed=4)), baseline=good)

    assert facts(report)["baseline_iterations"] == 120
    assert facts(report)["baseline_loss_ratio_early"] == pytest.approx(1, abs=0.02)
    assert not fired(report)
    # the other way round, each attempt is compared by itself
    attempts = scan(good, baseline=tmp_path / "new").data.attempts
    assert [attempt.facts["baseline_iterations"] for attempt in attempts] == [60, 80]


def test_step_lines_without_numbers_tell_of_speed(tmp_path):
    for name, run in (("new", OFF), ("good", ON)):
        text = (run / "slurm-4711.out").read_text()
        (tmp_path / name).mkdir()
        kept = "".join(line for line in text.splitlines(True) if "] iteration " not in line)
        (tmp_path / name / "train.log").write_text(kept)
    report = scan(tmp_path / "new", baseline=tmp_path / "good")

    assert facts(report)["baseline_aligned_by"] == "order of lines"
    assert facts(report)["baseline_late_from"] is None
    assert fired(report) == {"HCP108"}
    assert "Dashed: the baseline good." in report.to_html(charts="static")


def test_a_handful_of_iterations_is_not_compared(tmp_path):
    report = beside(tmp_path, Course(last=4, seconds=lambda _: 30.0), Course())
    assert facts(report)["baseline_aligned_by"] is None
    assert not fired(report)
    assert "no iterations that both logged" in report.to_markdown()


def test_step_times_are_compared_where_lines_print_no_tokens_and_ranks_are_known(tmp_path):
    alike = replace(Course().job, shape=Shape(seq=0))
    report = beside(tmp_path, Course(job=alike, seconds=lambda _: 15.0), Course(job=alike))
    assert facts(report)["baseline_rate_by"] == "step time"
    assert fired(report) == {"HCP109"}


def test_another_model_is_not_compared(tmp_path):
    small = replace(Course().job, shape=Shape(layers=16))
    report = beside(tmp_path, Course(seconds=lambda _: 20.0), Course(job=small))
    assert facts(report)["baseline_differences"] == ["num_layers"]
    assert facts(report)["baseline_rate_ratio_late"] is None
    assert not fired(report)
    assert not report.data.comparison.windows


def test_what_a_run_out_of_memory_changed_is_listed_first(tmp_path):
    trace = (
        "Traceback (most recent call last):",
        '  File "/opt/train.py", line 12, in <module>',
        "    main()",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    )
    ours = Course(end=trace, changes={"lr": 0.1, "recompute_granularity": "selective"})
    report = beside(tmp_path, ours, Course(job=Job(world_size=8, cp=8, sizes=(4, 2))))
    found = report.data.comparison

    assert found.out_of_memory
    assert [d.key for d in found.differences][:3] == [
        "context_parallel_size",
        "hierarchical_context_parallel_sizes",
        "data_parallel_size",
    ]
    assert found.differences[-1].key == "lr"
    assert not scan(tmp_path / "new", baseline=tmp_path / "new").data.comparison.out_of_memory


def test_memory_is_compared_where_both_print_it_in_one_unit(tmp_path):
    lines = {
        "MB": "[Rank {}] (after 2 iterations) memory (MB) | allocated: 205.5 | max allocated: {}"
        " | reserved: 900.0 | max reserved: 990.0",
        "GB": "[Rank {}] (after 2 iterations) memory (GB) | mem-allocated-gigabytes: 6.1 |"
        " mem-max-allocated-gigabytes: {} | mem-max-reserved-gigabytes: 99.0",
    }
    ours = Course(last=8, end=tuple(lines["GB"].format(n, 40.5 + n) for n in range(3)))
    report = beside(tmp_path, ours, Course(last=8, end=(lines["GB"].format(0, 34.0),)))
    assert facts(report)["memory_max_allocated"] == 42.5
    assert facts(report)["baseline_memory_ratio"] == 1.25
    assert json.loads(report.to_json())["comparison"]["memory"]["baseline_value"] == 34.0

    other = write(tmp_path / "other", Course(last=8, end=(lines["MB"].format(0, 34000.25),)))
    report = scan(other, baseline=tmp_path / "good")
    assert facts(report)["memory_max_allocated"] == 34000.25
    assert report.data.comparison.memory is None


def test_damaged_numbers_break_nothing(tmp_path):
    damages = (
        (r"global batch size: +\d+", "global batch size:     0"),
        (r"consumed samples: +\d+", "consumed samples: 999999999999999999"),
        (r"lm loss: \S+", "lm loss: 1.797693E+308"),
        (r"iteration +\d+/", "iteration 999999999999999999/"),
        (r"\(ms\): \S+", "(ms): 0.0"),
        (r"grad norm: \S+", "grad norm: nan"),
    )
    good = write(tmp_path / "good", Course())
    lines = (good / "train.log").read_text().splitlines()
    for name, whole in (("here and there", False), ("everywhere", True)):
        bad = tmp_path / name
        bad.mkdir()
        for number, line in enumerate(lines):
            for old, new in damages[:3] if whole else (damages[number % len(damages)],):
                line = re.sub(old, new, line)  # noqa: PLW2901 - damaged by one after the other
            lines[number] = line
        (bad / "train.log").write_text("\n".join(lines))
        for ours, theirs in ((bad, good), (good, bad)):
            report = scan(ours, baseline=theirs)
            jsonschema.validate(json.loads(report.to_json()), load_schema())
            assert not fired(report)


def test_secrets_of_both_configurations_are_hidden(tmp_path):
    ours = Course(changes={"wandb_api_key": "0123456789abcdef0123456789abcdef01234567"})
    theirs = Course(changes={"wandb_api_key": "89abcdef0123456789abcdef0123456789abcdef"})
    report = beside(tmp_path, ours, theirs)

    assert "0123456789abcdef" not in report.to_json() + report.to_html(charts="static")
    assert "wandb_api_key" in report.to_json()


def test_without_a_baseline_its_rules_are_inconclusive_and_quiet():
    report = scan(ON)
    missing = {j.rule: j.missing for j in report.data.judgements if j.outcome == "inconclusive"}

    assert missing.keys() >= RULES
    page = report.to_html(charts="static")
    assert "<code>--baseline RUN_DIR</code>" in page
    assert '<th scope="row">HCP206</th>' not in page
    assert "baseline_loss_ratio_late" not in page
    assert json.loads(report.to_json())["comparison"] is None


@pytest.mark.parametrize(
    ("baseline", "said"),
    [
        ("/no/such/run", "the baseline cannot be used: cannot read"),
        ("strange", "the baseline cannot be used: nothing understood"),
        ("-", "the baseline cannot be used: nothing understood"),
    ],
)
def test_a_baseline_that_cannot_be_read_is_a_usage_error(
    tmp_path, capsys, monkeypatch, baseline, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "a.log").write_text("hello\n")

    assert main([str(ON), "--baseline", baseline]) == 2
    assert said in capsys.readouterr().err.lower()
    assert not (tmp_path / "reports").exists()
    with pytest.raises(UsageError, match="baseline"):
        scan(ON, baseline=baseline)


def test_standard_input_is_one_run(capsys):
    assert main(["-", "--baseline", "-"]) == 2
    assert "not both" in capsys.readouterr().err


def test_one_baseline_for_several_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = main([str(OFF), str(ON), "--baseline", str(ON), "-f", "json", "--include", "slurm*"])
    runs = json.loads(capsys.readouterr().out)["runs"]

    assert code == 1
    assert [run["report"]["run"]["baseline"] for run in runs] == ["case01-twin-a-sizes-set"] * 2
    assert str(FIXTURES) not in json.dumps(runs)


def test_a_baseline_read_once_serves_many(tmp_path):
    good = read_baseline(ON)
    assert scan(OFF, baseline=good).to_json() == scan(OFF, baseline=ON).to_json()


def test_a_followed_run_is_compared_too(capsys):
    assert main([str(OFF), "--follow", "--baseline", str(ON), "-f", "json"]) == 1
    rules = {found["rule"] for found in json.loads(capsys.readouterr().out)["findings"]}
    assert "HCP108" in rules


def test_the_document_shows_what_is_printed_and_its_snippet_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, run in (("new_run", OFF), ("good_run", ON)):
        (tmp_path / name).symlink_to(run)
    document = (FIXTURES.parents[1] / "docs" / "baseline.md").read_text(encoding="utf-8")
    shown = re.search(r"```text\n(.*?)```", document, re.DOTALL)[1].split("...\n")[1]
    main(["new_run", "--baseline", "good_run", "-o", "report.json"])
    assert shown.splitlines()[1:] == _section(capsys.readouterr().out)[1:]

    exec(re.search(r"```python\n(.*?)```", document, re.DOTALL)[1], {})
    assert capsys.readouterr().out.splitlines() == [
        "3.43 times as fast at the end",
        "context parallelism | model.hierarchical_context_parallel_sizes | default | [8, 2]",
    ]


def _section(text: str) -> list[str]:
    """The lines of a summary about the baseline."""
    lines = text.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("Baseline "))
    return lines[first : lines.index("", first)]
