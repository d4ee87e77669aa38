"""Attempts, jobs, ranks and joins on small composed directories."""

import gzip

import pytest

from hcp_logscan.analysis.run import Options, examine
from hcp_logscan.model.errors import UsageError

WORLD = (
    "using world size: {n}, data-parallel size: {n}, context-parallel size: 1, hierarchical"
    " context-parallel sizes: None, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
)


def step(i, total=9, time=None, loss="1.0E+00", ms="100.0", extra=""):
    stamp = f" [{time}]" if time else ""
    loss = f" lm loss: {loss} |" if loss else ""
    return (
        f"{stamp} iteration {i:8d}/{total:8d} | consumed samples: {i * 4:12d} | elapsed time per"
        f" iteration (ms): {ms} |{extra} learning rate: 1.0E-04 | global batch size:     4 |{loss} loss"
        " scale: 1.0 | grad norm: 1.0 | number of skipped iterations:   0 | number of nan iterations:"
        "   0 |\n"
    )


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def shape(analysis):
    return [
        (a.attempt, a.facts["first_iteration"], a.facts["last_iteration"])
        for a in analysis.attempts
    ]


def test_second_start_up_block_in_one_file_is_a_second_attempt(tmp_path):
    text = WORLD.format(n=2) + step(1) + step(2) + WORLD.format(n=2) + step(1) + step(2) + step(3)
    write(tmp_path, {"train.log": text})

    assert shape(examine(tmp_path)) == [(0, 1, 2), (1, 1, 3)]


def test_console_copy_of_rank_files_counts_once(tmp_path):
    start, steps = WORLD.format(n=2), step(1) + step(2)
    tee = "".join(f"[default0]:{line}" for line in start.splitlines(keepends=True))
    tee += "".join(f"[default1]:{line}" for line in steps.splitlines(keepends=True))
    write(
        tmp_path,
        {
            "console.log": tee,
            "logs/none_a1b2c3d4/attempt_0/0/stdout.log": start,
            "logs/none_a1b2c3d4/attempt_0/1/stdout.log": steps,
        },
    )
    analysis = examine(tmp_path)

    assert shape(analysis) == [(0, 1, 2)]
    assert analysis.facts["iterations"]["rank"].to_list() == [1, 1]


def test_rank_file_without_start_up_is_cut_by_the_times_of_the_others(tmp_path):
    mark = "[before the start of training step] datetime: 2026-03-01 {h}:00:00\n"
    rank0 = WORLD.format(n=2) + mark.format(h="09") + WORLD.format(n=2) + mark.format(h="11")
    last = step(1, time="2026-03-01 09:00:05") + step(2, time="2026-03-01 09:00:06")
    last += step(3, time="2026-03-01 11:00:05") + step(4, time="2026-03-01 11:00:06")
    write(tmp_path, {"job_4711_0.log": rank0, "job_4711_1.log": last})

    assert shape(examine(tmp_path)) == [(0, 1, 2), (1, 3, 4)]


def test_rank_file_without_times_is_cut_where_iterations_fall(tmp_path):
    rank0 = WORLD.format(n=2) * 2
    write(tmp_path, {"job_4711_0.log": rank0, "job_4711_1.log": step(1) + step(2) + step(2)})

    assert shape(examine(tmp_path)) == [(0, 1, 2), (1, 2, 2)]


def test_files_of_two_launches_are_two_attempts_in_the_order_of_their_times(tmp_path):
    def launch(hour):
        mark = f"[before the start of training step] datetime: 2026-03-01 {hour}:00:00\n"
        return WORLD.format(n=1) + mark + step(1, time=f"2026-03-01 {hour}:00:01")

    write(tmp_path, {"a.log": launch("12"), "b.log": launch("09")})
    analysis = examine(tmp_path)

    assert len(analysis.attempts) == 2
    assert analysis.facts["iterations"]["file"].to_list() == ["b.log", "a.log"]


def test_newest_job_by_log_times_is_judged_and_another_can_be_picked(tmp_path):
    def job(day, steps):
        text = WORLD.format(n=1)
        return text + "".join(
            step(i, time=f"2026-03-{day} 09:00:0{i}") for i in range(1, steps + 1)
        )

    write(tmp_path, {"slurm-100.out": job("02", 3), "slurm-101.out": job("01", 5)})

    assert examine(tmp_path).job.name == "100"
    assert examine(tmp_path).facts["iterations"].height == 3
    assert examine(tmp_path, Options(job="101")).facts["iterations"].height == 5
    with pytest.raises(UsageError, match="no job 7"):
        examine(tmp_path, Options(job="7"))


def test_slurm_console_and_torchrun_directory_are_one_job(tmp_path):
    write(
        tmp_path,
        {
            "slurm-4711.out": WORLD.format(n=1),
            "logs/none_a1b2c3d4/attempt_0/0/stdout.log": WORLD.format(n=1) + step(1),
        },
    )

    assert len(examine(tmp_path).jobs) == 1


def test_equal_run_ids_are_two_jobs_only_where_both_started(tmp_path):
    both = {
        f"logs/none_{r}/attempt_0/0/stdout.log": WORLD.format(n=1) + step(1)
        for r in ("aaaaaaaa", "bbbbbbbb")
    }
    nodes = {
        "node0/none_aaaaaaaa/attempt_0/0/stdout.log": WORLD.format(n=2),
        "node1/none_bbbbbbbb/attempt_0/0/stdout.log": step(1),
    }
    assert len(examine(write(tmp_path / "two", both)).jobs) == 2
    analysis = examine(write(tmp_path / "one", nodes))
    assert len(analysis.jobs) == 1
    assert analysis.attempts[0].facts["ranks_seen"] == [0, 1]


def test_node_directories_times_local_ranks_give_global_ranks(tmp_path):
    files = {
        f"node{n}/x_aaaaaaa{n}/attempt_0/{r}/stdout.log": step(1) if (n, r) == (1, 3) else ""
        for n in range(2)
        for r in range(4)
    }
    files["node0/x_aaaaaaa0/attempt_0/0/stdout.log"] = WORLD.format(n=8)
    analysis = examine(write(tmp_path, files))

    assert analysis.attempts[0].facts["ranks_seen"] == list(range(8))
    assert analysis.facts["iterations"]["rank"].to_list() == [7]


def test_missing_rank_files_are_named(tmp_path):
    files = {f"rank_{r}.log": "" for r in (1, 3)}
    files["rank_0.log"] = WORLD.format(n=4) + step(1)
    analysis = examine(write(tmp_path, files))

    assert analysis.health.ranks_missing == (2,)


def test_one_file_of_unknown_rank_misses_nobody(tmp_path):
    analysis = examine(write(tmp_path, {"train.log": WORLD.format(n=64) + step(1)}))

    assert analysis.health.ranks_missing == ()
    assert analysis.facts["run"]["ranks_missing_count"].to_list() == [None]


def test_srun_labels_are_ranks_only_where_there_is_one_task_per_rank(tmp_path):
    def labelled(n):
        text = "0: " + WORLD.format(n=n) + "1:" + step(1)
        return {"slurm-1.out": text}

    per_rank = examine(write(tmp_path / "a", labelled(2)))
    per_node = examine(write(tmp_path / "b", labelled(16)))

    assert per_rank.facts["iterations"]["rank"].to_list() == [1]
    assert per_node.facts["iterations"]["rank"].to_list() == [None]


def test_step_lines_of_rank_0_join_iteration_lines_of_the_last_rank(tmp_path):
    line = "Step Time : {s:.2f}s GPU utilization: {t:.1f}MODEL_TFLOP/s/GPU\n"
    rank0 = WORLD.format(n=2) + "".join(
        line.format(s=s, t=t) for s, t in ((2, 10), (1, 20), (1, 30))
    )
    last = step(1, ms="2004.0") + step(2, ms="1001.0", loss=None) + step(3, ms="5000.0")
    write(tmp_path, {"rank_0.log": rank0, "rank_1.log": last})
    rows = examine(tmp_path).facts["iterations"]

    assert rows["tflops_per_gpu"].to_list() == [10.0, 20.0, None]
    assert rows["lm_loss"].to_list() == [1.0, None, 1.0]
    assert rows["lm_loss_present"].to_list() == [True, False, True]


def test_step_lines_alone_are_iterations_without_numbers(tmp_path):
    text = "Step Time : 2.00s GPU utilization: 10.0MODEL_TFLOP/s/GPU\n" * 3
    rows = examine(write(tmp_path, {"train.log": text})).facts["iterations"]

    assert rows["iteration"].to_list() == [None] * 3
    assert rows["lm_loss_present"].to_list() == [None] * 3


def test_tokens_per_second_follow_from_batch_sequence_time_and_ranks(tmp_path):
    dump = (
        "------------------------ arguments ------------------------\n"
        "  seq_length ...................................... 1024\n"
        "-------------------- end of arguments ---------------------\n"
    )
    text = WORLD.format(n=2) + dump + step(1, ms="500.0")
    rows = examine(write(tmp_path, {"train.log": text})).facts["iterations"]

    assert rows["tokens_per_s_per_gpu"].to_list() == [4 * 1024 / 0.5 / 2]


def test_stage_that_prints_no_loss_does_not_hide_the_one_that_does(tmp_path):
    text = "[default0]:" + step(1, loss=None) + "[default1]:" + step(1, loss="2.5E+00")
    rows = examine(write(tmp_path, {"console.log": text})).facts["iterations"]

    assert rows["lm_loss"].to_list() == [2.5]


def test_compressed_and_plain_files_give_the_same_facts(tmp_path):
    text = WORLD.format(n=1) + step(1) + step(2)
    write(tmp_path / "plain", {"train.log": text})
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "train.log.gz").write_bytes(gzip.compress(text.encode()))
    plain, packed = examine(tmp_path / "plain"), examine(tmp_path / "packed")

    drop = ["file", "text"]
    assert plain.facts["iterations"].drop(drop).equals(packed.facts["iterations"].drop(drop))
    assert packed.facts["iterations"]["text"].str.contains("iteration").all()
