"""One rank of a thousand fails, and the others wait for it until they time out."""

from hcp_logscan import scan

RANKS, CULPRIT = 1024, 517
STEP = (
    " [2026-03-01 10:05:00.000000] iteration        5/     200 | consumed samples:           80"
    " | elapsed time per iteration (ms): 5120.4 | learning rate: 3.0E-04 | global batch size:    16"
    " | lm loss: 7.5E+00 | loss scale: 1.0 | grad norm: 1.234"
    " | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)


def waits(rank):
    return (
        f"[rank{rank}]:[E301 10:16:02.111222333 ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog"
        " caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1,"
        " NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.\n"
    )


def raises(rank):
    head = f"[rank{rank}]: "
    lines = ["Traceback (most recent call last):", '  File "/opt/app/data.py", line 88, in get']
    lines += ["    return self.samples[index]", "IndexError: index 99 is out of bounds"]
    return "".join(f"{head}{line}\n" for line in lines)


def test_it_is_one_finding_with_one_culprit(tmp_path):
    world = f"using world size: {RANKS}, data-parallel size: {RANKS}, context-parallel size: 1\n"
    for rank in range(RANKS):
        text = raises(rank) if rank == CULPRIT else waits(rank)
        text = (world if rank == 0 else STEP if rank == RANKS - 1 else "") + text
        (tmp_path / f"rank_{rank:04d}.log").write_text(text)
    report = scan(tmp_path)

    errors = [(found.rule, found.ranks) for found in report.findings if found.severity == "error"]
    assert errors == [("HCP508", (CULPRIT,))]
    first, then = report.data.stories[0].sentences[:2]
    assert first.startswith(f"Rank {CULPRIT} broke first in iteration 6")
    assert then == f"Then {RANKS - 1:,} ranks timed out."
    assert [e.role for e in report.data.timeline if e.role != "progress"] == ["root", "cascade"]
