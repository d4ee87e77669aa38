"""Restarts as jobs of their own: what links them, and what does not."""

import pytest

from hcp_logscan import scan
from hcp_logscan.analysis.run import examine

HEAD = (
    "using world size: 16, data-parallel size: 16, context-parallel size: 1, hierarchical"
    " context-parallel sizes: None, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
)


def arguments(**values):
    lines = [f"  {key} {'.' * (46 - len(key))} {value}" for key, value in sorted(values.items())]
    head = "------------------------ arguments ------------------------"
    end = "-------------------- end of arguments ---------------------"
    return "\n".join([head, *lines, end]) + "\n"


def step(day, hour, minute, iteration):
    return (
        f" [2031-06-{day:02d} {hour:02d}:{minute:02d}:10.123456] iteration {iteration:8d}/    5000 |"
        " consumed samples:          968 | elapsed time per iteration (ms): 60000.0 | learning rate:"
        " 1.000000E-04 | global batch size:     8 | lm loss: 6.790000E+00 | loss scale: 1.0 | grad"
        " norm: 1.234 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def slice_of(
    number, *, hour, start=120, last=127, saved=None, load="/ckpt/a", save="/ckpt/a", layers=8
):
    """The console of one Slurm job that is ended by its time limit."""
    text = HEAD + arguments(load=load, save=save, num_layers=layers, hidden_size=64)
    if start:
        text += (
            f"  successfully loaded checkpoint from {load} [ t 1/1, p 1/1 ] at iteration {start}\n"
        )
    text += f"[before the start of training step] datetime: 2031-06-02 {hour:02d}:05:01.100000 \n"
    steps = [
        step(2, hour, 10 + at, iteration) for at, iteration in enumerate(range(start + 1, last + 1))
    ]
    text += "".join(steps)
    if saved:
        text += f"  successfully saved checkpoint from iteration {saved:7d} to {save} [ t 1/1, p 1/1 ]\n"
    return text + (
        f"slurmstepd: error: *** JOB {number} ON node01 CANCELLED AT 2031-06-02T{hour:02d}:55:00 DUE"
        " TO TIME LIMIT ***\n"
    )


@pytest.fixture
def run(tmp_path):
    def write(**jobs):
        for name, text in jobs.items():
            (tmp_path / f"pretrain_{name.removeprefix('j')}.out").write_text(text)
        return scan(tmp_path)

    return write


def stuck(report):
    return [one for one in report.findings if one.rule == "HCP301"]


def test_three_jobs_from_one_checkpoint_get_nowhere(run):
    report = run(**{f"j{n}": slice_of(n, hour=6 + n - 7001) for n in (7001, 7002, 7003)})

    (found,) = stuck(report)
    assert "last 3 attempts all began at iteration 120" in found.message
    assert "lost in all attempts: 21" in found.message
    assert found.message.endswith("[7001 → 7002 → 7003]")
    assert report.data.run.job == "7003"


def test_jobs_that_go_on_from_what_the_former_saved_get_on(run):
    report = run(
        j7001=slice_of(7001, hour=6, last=165, saved=160),
        j7002=slice_of(7002, hour=7, start=160, last=205, saved=200),
        j7003=slice_of(7003, hour=8, start=200, last=245, saved=240),
    )

    assert not stuck(report)


def test_a_chain_of_jobs_has_the_progress_of_all(run, tmp_path):
    run(
        j7001=slice_of(7001, hour=6, start=0, last=45, saved=40),
        j7002=slice_of(7002, hour=7, start=40, last=85, saved=80),
        j7003=slice_of(7003, hour=8, start=80, last=99),
    )

    facts = examine(tmp_path).facts["run"].row(0, named=True)
    assert facts["chain_jobs"] == ["7001", "7002", "7003"]
    assert (facts["chain_net_iterations"], facts["chain_stuck_attempts"]) == (80, 1)
    assert (facts["net_iterations"], facts["stuck_attempts"]) == (0, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"save": "/ckpt/own"},
        {"load": "ckpt/a", "save": "ckpt/a"},
        {"load": None, "save": None},
        {"start": 0, "last": 7},
    ],
    ids=["a sweep that forks", "relative paths", "no directories", "each begins anew"],
)
def test_what_is_no_chain_stays_quiet(run, change):
    report = run(**{f"j{n}": slice_of(n, hour=6 + n - 7001, **change) for n in (7001, 7002, 7003)})

    assert not stuck(report)


def test_jobs_at_the_same_time_are_no_chain(run):
    report = run(**{f"j{n}": slice_of(n, hour=6) for n in (7001, 7002, 7003)})

    assert not stuck(report)


def test_a_checkpoint_that_the_former_never_had_is_no_chain(run):
    starts = {7001: 120, 7002: 320, 7003: 320}
    report = run(
        **{
            f"j{n}": slice_of(n, hour=6 + n - 7001, start=start, last=start + 7)
            for n, start in starts.items()
        }
    )

    assert not stuck(report)


def test_another_model_is_no_chain(run):
    report = run(
        **{f"j{n}": slice_of(n, hour=6 + n - 7001, layers=n - 6999) for n in (7001, 7002, 7003)}
    )

    assert not stuck(report)


def test_a_stranger_between_two_jobs_does_not_cut_the_chain(run):
    report = run(
        j7001=slice_of(7001, hour=6),
        j7002=slice_of(7002, hour=7),
        j7003=slice_of(7003, hour=8, save="/ckpt/b", load="/ckpt/b", start=900, last=910),
        j7004=slice_of(7004, hour=9),
    )

    (found,) = stuck(report)
    assert found.message.endswith("[7001 → 7002 → 7004]")


def test_the_job_that_was_asked_for_ends_the_chain(run, tmp_path):
    run(**{f"j{n}": slice_of(n, hour=6 + n - 7001) for n in (7001, 7002, 7003)})

    assert not stuck(scan(tmp_path, job="7002"))
