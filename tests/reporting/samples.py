"""Reports made by hand, one per thing a renderer must get right."""
# log lines and messages stand whole

from __future__ import annotations

import dataclasses
import math
from typing import Any, Final

import polars as pl

from hcp_logscan.analysis.facts import ITERATION_FACTS
from hcp_logscan.analysis.topology import Layout, topology
from hcp_logscan.model.comparison import Comparison, ConfigDifference, Memory, Window
from hcp_logscan.model.finding import Evidence, Finding, Judgement, Location, Suppressed, Verdict
from hcp_logscan.model.report import (
    AttemptData,
    ConfigEntry,
    Drift,
    Health,
    JobRow,
    LossSpread,
    Peak,
    RankGroups,
    RankRow,
    ReportData,
    RuleText,
    RunInfo,
    SeriesSummary,
    Skipped,
    Spread,
    Story,
    TimelineEntry,
    Unreadable,
)

HOSTILE = (
    "<script>alert(1)</script></script><img src=x onerror=alert(1)> {{ 7*7 }} {% raw %} \"q\" 'q' "
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 [red]markup[/] \u202eevil \udcff \ud83d NUL\x00 a|b @all "
    "[x](javascript:alert(1)) </style></pre></code></details> ]]> -->"
)
"""All that must stay text, everywhere."""

H100 = Peak(
    precision="bf16",
    gpu="H100 SXM",
    tflops=989.4,
    bound_tflops=989.4,
    source="the logs",
    datasheet="https://example.org/h100",
    explanation="Dense BF16 peak of H100 SXM: 989.4 TFLOP/s; the GPU is known from the logs.",
)
HOPPER = Peak(
    precision="bf16",
    bound_tflops=989.5,
    source="Transformer Engine, which says sm90",
    explanation="No GPU of this architecture does more than 989.5 TFLOP/s at BF16; known from "
    "Transformer Engine, which says sm90.",
)

STEPS = (
    "Rerun with NVTE_DEBUG=1 NVTE_DEBUG_LEVEL=2 TORCH_CPP_LOG_LEVEL=INFO for 2 to 5 steps.",
    "Keep every rank's stdout and stderr (`--log-dir` with `--redirects 3`).",
    "Scan the new logs; `--expect active` makes it a gate.",
)
CONFIG: dict[str, Any] = {
    "cp_size": 16,
    "cp_comm_type": "a2a+p2p",
    "hcp_sizes": None,
    "hcp_sizes_set": False,
    "seq_length": 131072,
    "tp_size": 2,
    "pp_size": 1,
    "world_size": 32,
    "num_layers": 48,
    "hidden_size": 8192,
    "query_groups": 8,
    "te_version": "2.8.0",
    "precision": "bf16",
}


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    types = {name: fact.dtype for name, fact in ITERATION_FACTS.items()}
    return pl.DataFrame(rows, schema=types)


def iteration(attempt: int, number: int, **values: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(ITERATION_FACTS)
    row |= {"attempt": attempt, "iteration": number, "step_ms": 5210.0 + number % 7 * 13}
    row |= {"tflops_per_gpu": 1937.2 - number % 5 * 11.4, "tokens_per_s_per_gpu": 4211.0}
    row |= {"lm_loss": 11.2 * math.exp(-number / 60) + 2.1 + number % 3 * 0.05}
    return row | {"grad_norm": 3.1 + number % 4 * 0.2} | values


def place(line: int, text: str, rank: int | None = 0, *, context: bool = False) -> Location:
    around = tuple(
        (n, text if n == line else f"line {n} of the log") for n in range(line - 2, line + 3)
    )
    return Location(f"logs/rank_{rank or 0:05d}.log", line, text, rank, around if context else ())


STORIES: Final = (
    Story(None, ("Rank 3 broke first in iteration 7.", "Then 31 ranks timed out.")),
    Story(0),
)
TIMELINE: Final = (
    TimelineEntry(
        0, "03-01 10:00:00", False, "job", (), "progress", "mark", "training starts", 1, None,
        "console.log", 4,
    ),
    TimelineEntry(
        0, None, False, "ranks", (0, 1, 2), "cascade", "exception", "RuntimeError: x", 3, 6, None,
        None,
    ),
)  # fmt: skip


def inactive() -> ReportData:
    verdict = Verdict(
        status="inactive",
        confidence="high",
        summary="a2a+p2p was trained without hierarchical sizes, so context parallelism was silently off.",
        reasons=(
            "The argument dump is complete and gives no hierarchical_context_parallel_sizes.",
            "8 iterations finished, so no start-up check refused this.",
            "Printed throughput is 1.96 times the dense BF16 peak: what CP off looks like.",
        ),
        next_steps=STEPS,
        ranks_confirmed=30,
        ranks_seen=32,
        evidence=(
            Evidence(
                "te_debug",
                "inactive",
                "A",
                place(
                    812,
                    "[DEBUG | DotProductAttention]: Running with config={'context_parallel': False, 'cp_comm_type': 'a2a+p2p', 'is_training': True}",
                    3,
                ),
                "Attention ran with context parallelism off.",
            ),
            Evidence(
                "config",
                "inactive",
                "A",
                place(41, "  context_parallel_size ........................... 16"),
                "CP 16 was asked for.",
            ),
            Evidence(
                "config",
                "inactive",
                "A",
                place(44, "  hierarchical_context_parallel_sizes ............. None", context=True),
                "No sizes in a complete dump.",
            ),
            Evidence(
                "throughput",
                "inactive",
                "C",
                place(
                    911,
                    " iteration        8/    5000 | throughput per GPU (TFLOP/s/GPU): 1937.2 |",
                    31,
                ),
                "Above the dense peak.",
            ),
        ),
        not_seen=(
            "c10d: no rank printed INFO lines, so missing group openings prove nothing (set TORCH_CPP_LOG_LEVEL=INFO).",
            "flight_recorder: no dump beside the logs.",
        ),
    )
    first = dataclasses.replace(
        verdict, status="rejected", summary="The product of the sizes is not the CP size."
    )
    rows = [iteration(1, n) for n in range(1, 121)]
    for gone in (60, 61, 62, 90):
        rows[gone - 1]["lm_loss"] = None
        rows[gone - 1]["grad_norm"] = math.nan
    findings = (
        Finding(
            "HCP002",
            "hcp-sizes-missing",
            "error",
            "high",
            1,
            "Attempt 1 trained 120 iterations with cp_comm_type=a2a+p2p, CP=16 and no hierarchical sizes.",
            "Transformer Engine is handed no group and computes with CP size 1, printing nothing.\n\nEach rank attends only inside its own tokens.",
            "Set `--hierarchical-context-parallel-sizes 8 2` (their product is the CP size), then rerun\nand check that the verdict is active.",
            ranks=(),
            references=(
                "https://github.com/NVIDIA-NeMo/Megatron-Bridge/issues/2667",
                "Megatron-LM arguments.py",
            ),
            evidence=tuple(
                place(40 + n, f"  argument_{n} ................ value", context=n < 3)
                for n in range(6)
            ),
            evidence_total=40,
        ),
        Finding(
            "HCP101",
            "above-dense-peak",
            "error",
            "high",
            1,
            "1,937.2 TFLOP/s/GPU is 1.96 times the dense BF16 peak of H200 (989.4).",
            "No GPU exceeds it.",
            "Do not believe this number.",
            iteration=1,
            evidence=(
                place(904, " iteration 1/ 5000 | throughput per GPU (TFLOP/s/GPU): 1937.2 |", 31),
            ),
            evidence_total=120,
        ),
        Finding(
            "HCP201",
            "loss-vanished",
            "error",
            "medium",
            1,
            "The loss field vanished at iteration 60 with a NaN gradient norm.",
            "NaN is not printed.",
            "Look at rank 5 first.",
            iteration=60,
            ranks=(5, 6, 7, 21),
            evidence=(place(1060, " iteration 60/ 5000 | grad norm: nan |", 31),),
            evidence_total=1,
        ),
        Finding(
            "HCP904",
            "ranks-missing",
            "warning",
            "high",
            1,
            "Ranks 30 and 31 left no log.",
            "What they did is unknown.",
            "Collect one file per rank.",
            ranks=(30, 31),
        ),
        Finding(
            "HCP013",
            "pure-a2a-would-do",
            "note",
            "low",
            1,
            "Pure a2a would do here.",
            "It is simpler.",
            "Consider `--cp-comm-type a2a`.",
        ),
    )
    return ReportData(
        "hcp-logscan",
        "0.1.0",
        RunInfo("llama-70b-cp16-h200", "812345", 32, "H200", "bf16", "megatron-bridge"),
        verdict,
        1,
        (
            AttemptData(
                0,
                first,
                "rejected",
                "2026-03-01T10:00:00",
                "2026-03-01T10:01:10",
                config=CONFIG | {"hcp_sizes": [4, 2], "hcp_sizes_set": True},
            ),
            AttemptData(
                1,
                verdict,
                "time_limit",
                "2026-03-01T10:05:00",
                None,
                1,
                120,
                120,
                CONFIG,
                CONFIG
                | {
                    "attempt": 1,
                    "ranks_seen": list(range(30)),
                    "exception_type": None,
                    "late_skipped_share": 0.1234567,
                },
                tuple(
                    ConfigEntry(
                        "args_dump",
                        "",
                        f"argument_{n}",
                        f"value {n}",
                        "logs/rank_00000.log",
                        100 + n,
                    )
                    for n in range(60)
                ),
            ),
        ),
        findings,
        (
            Judgement("HCP002", 1, "fires"),
            Judgement("HCP101", 1, "fires"),
            Judgement("HCP008", 0, "inconclusive", ("te_version",)),
            Judgement("HCP008", 1, "inconclusive", ("te_version",)),
            Judgement("HCP004", 0, "clean"),
            Judgement("HCP004", 1, "clean"),
        ),
        SeriesSummary(
            120,
            Spread(1914.4, 1891.6, 1937.2),
            Spread(4211.0, 4211.0, 4211.0),
            LossSpread(13.06, 3.616, 3.612),
            Spread(5249.0, 5210.0, 5288.0),
        ),
        Health(
            31,
            48_123_456,
            401_223,
            3_812,
            (Unreadable("logs/rank_00030.log.gz", "not a gzip file"),),
            ("logs/rank_00012.log: the last line has no end",),
            (Skipped("source code", 41, "src"), Skipped("checkpoint", 64, "ckpt")),
            (Drift("megatron_iteration", 3, " iteration 7/ 10 elapsed"),),
            (30, 31),
        ),
        frame(rows),
        tuple(
            RankRow(
                n,
                (f"logs/rank_{n:05d}.log",),
                f"node{n // 8}",
                n > 1,
                "[after training is done] datetime: 2026-03-01",
            )
            for n in range(30)
        ),
        jobs=(
            JobRow("812345", 31, "2026-03-01T11:00:00", judged=True),
            JobRow("812001", 31, None, judged=False),
        ),
        rules=tuple(
            RuleText(
                found.rule,
                found.name,
                found.severity,
                found.confidence,
                f"the {found.name} rule fired",
                found.why,
                found.fix,
                ("a fork",),
                found.references[:1],
                "https://example.org/HCP002.md" if found.rule == "HCP002" else None,
            )
            for found in sorted(findings, key=lambda found: found.rule)
        ),
        stories=STORIES,
        timeline=TIMELINE,
    )


def measured(*tflops: float | None, peak: Peak | None = H100, mfu: float | None = None) -> Any:
    """A run of one attempt that printed these rates."""
    rows = [iteration(0, n, tflops_per_gpu=rate, mfu=mfu) for n, rate in enumerate(tflops, start=1)]
    rates = sorted(rate for rate in tflops if rate is not None and math.isfinite(rate))
    spread = Spread(rates[len(rates) // 2], rates[0], rates[-1]) if rates else Spread()
    base = unconfirmed()
    series = dataclasses.replace(base.series, tflops_per_gpu=spread)
    return dataclasses.replace(base, iterations=frame(rows), series=series, peak=peak)


def unconfirmed() -> ReportData:
    base = inactive()
    verdict = Verdict(
        "unconfirmed",
        "low",
        "Configured correctly, 50 iterations finished, no runtime channel was logged.",
        ("Sizes [8, 2] fit CP 16.",),
        STEPS,
        0,
        32,
        base.verdict.evidence[1:2],
        ("te_debug: NVTE_DEBUG was not set.",),
    )
    attempt = AttemptData(
        0,
        verdict,
        "completed",
        None,
        None,
        1,
        50,
        50,
        CONFIG | {"hcp_sizes": [8, 2], "hcp_sizes_set": True},
    )
    return dataclasses.replace(
        base,
        verdict=verdict,
        judged_attempt=0,
        attempts=(attempt,),
        findings=(),
        judgements=(),
        jobs=(),
        iterations=frame([iteration(0, n, tflops_per_gpu=512.3 + n % 3) for n in range(1, 51)]),
        health=Health(32, 9_000, None, 400),
    )


def beside() -> ReportData:
    """A run that lags behind its baseline and has a higher loss, and ran out of memory."""
    base = unconfirmed()
    rows = [
        iteration(0, n, tflops_per_gpu=612.3, lm_loss=2.0 + n % 3, grad_norm=None)
        for n in range(1, 91)
    ]
    thirds = (("early", 1, 17, 1.001), ("middle", 18, 33, 0.91), ("late", 34, 50, 0.8371))
    windows = [
        Window("tflops_per_gpu", name, first, last, 16, 512.3, 612.3, ratio, ratio, 0.92, 0.01)
        for name, first, last, ratio in thirds
    ]
    windows.append(Window("lm_loss", "late", 34, 50, 1, 9.9, 3.0, 3.3, 3.3, 3.3, None))
    differences = (
        ConfigDifference("context parallelism", "context_parallel_size", ("4", "16")),
        ConfigDifference("recompute", "recompute_granularity", (None, "full")),
        *(ConfigDifference("other", f"option_{n}", ("on", "off")) for n in range(23)),
    )
    found = Comparison(
        name="llama-70b-good",
        job="4700",
        status="inactive",
        aligned_by="iteration",
        iterations=50,
        windows=tuple(windows),
        incomparable=("global_batch_size",),
        differences=differences,
        differences_total=40,
        memory=Memory(61240.25, 51033.5, "MB"),
        out_of_memory=True,
        series=frame(rows),
    )
    run = dataclasses.replace(base.run, baseline=found.name)
    return dataclasses.replace(base, run=run, comparison=found)


def not_requested() -> ReportData:
    base = inactive()
    verdict = Verdict("not_requested", "high", "cp_comm_type is p2p.", ranks_seen=8)
    attempt = AttemptData(
        0, verdict, "failed", None, None, 1, 37, 37, CONFIG | {"cp_comm_type": "p2p"}
    )
    finding = Finding(
        "HCP501",
        "gpu-out-of-memory",
        "error",
        "high",
        0,
        "Rank 3 ran out of GPU memory after iteration 37.",
        "It does not fit.",
        "Lower the micro batch size.",
        37,
        (3,),
        (),
        (
            place(
                77,
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB",
                3,
                context=True,
            ),
        ),
        1,
    )
    return dataclasses.replace(
        base,
        verdict=verdict,
        judged_attempt=0,
        attempts=(attempt,),
        findings=(finding,),
        jobs=(),
        iterations=frame(
            [
                iteration(0, n, tflops_per_gpu=402.0, step_ms=91234.0 if n == 1 else 880.0 + n)
                for n in range(1, 38)
            ]
        ),
        series=SeriesSummary(
            37,
            Spread(402.0, 402.0, 402.0),
            Spread(),
            LossSpread(12.0, 7.1, 7.1),
            Spread(899.0, 881.0, 91234.0),
        ),
    )


def empty() -> ReportData:
    verdict = Verdict(
        "inconclusive", "low", "Nothing of the configuration is visible.", next_steps=STEPS
    )
    return ReportData(
        "hcp-logscan",
        "0.1.0",
        RunInfo("empty"),
        verdict,
        0,
        (),
        (),
        (),
        SeriesSummary(),
        Health(files=1, bytes=12),
        pl.DataFrame(),
    )


def huge() -> ReportData:
    base = inactive()
    count = 100_000
    numbers = pl.DataFrame({"iteration": range(1, count + 1)}).with_columns(
        attempt=pl.lit(0, pl.Int64),
        step_ms=5000.0 + pl.col("iteration") % 97,
        tflops_per_gpu=400.0 + pl.col("iteration") % 89 / 3,
        lm_loss=pl.when(pl.col("iteration") == 77_777)
        .then(9999.5)
        .otherwise(2 + 30_000 / (pl.col("iteration") + 3_000)),
        grad_norm=1.0 + pl.col("iteration") % 31 / 7,
    )
    verdict = Verdict(
        "active",
        "high",
        "L0 and L1 communicators opened on every rank.",
        ranks_confirmed=1023,
        ranks_seen=1024,
        evidence=tuple(
            Evidence(
                "c10d",
                "active",
                "A",
                place(
                    90,
                    f"[rank{n}] ncclCommInitRankConfig HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L{n % 2}",
                    n,
                ),
                "Group opened.",
            )
            for n in range(64)
        ),
    )
    attempt = AttemptData(
        0,
        verdict,
        "completed",
        None,
        None,
        1,
        count,
        count,
        CONFIG | {"world_size": 1024},
        {},
        base.attempts[1].full_config * 6,
    )
    ranks = tuple(
        RankRow(
            n,
            (f"logs/node{n // 8:03d}/rank_{n:05d}.out", f"logs/node{n // 8:03d}/rank_{n:05d}.err"),
            f"node{n // 8:03d}",
            n != 512,
            "[2026-03-01 10:00:00] iteration 100000/100000 | consumed samples: 12800000 | elapsed time per iteration (ms): 5012.1 |",
            "03-01 10:00:00",
            count,
        )
        for n in range(1024)
    )
    judgements = tuple(Judgement(f"HCP{n:03d}", 0, "clean") for n in range(1, 72))
    return dataclasses.replace(
        base,
        run=dataclasses.replace(base.run, world_size=1024),
        verdict=verdict,
        judged_attempt=0,
        attempts=(attempt,),
        findings=base.findings[3:],
        judgements=judgements,
        ranks=ranks,
        iterations=numbers,
        jobs=(),
    )


def groups(
    world: int,
    sizes: tuple[int, int],
    *,
    tp: int = 1,
    seen: range = range(0),
    wrong: tuple[int, ...] = (),
) -> tuple[RankGroups, ...]:
    """Hierarchical groups; ranks of `wrong` were seen on L0 with the members of their L1 group."""
    tables = {
        "dump_groups": pl.DataFrame(
            schema={"event_rank": pl.Int64, "description": pl.String, "ranks": pl.List(pl.Int64)}
        ),
        "group_lines": pl.DataFrame(
            schema={
                "kind": pl.String,
                "description": pl.String,
                "guid": pl.String,
                "global_rank": pl.Int64,
                "size": pl.Int64,
            }
        ),
    }
    rows = topology(tables, Layout(world, tp, sizes[0] * sizes[1], 1, sizes))
    return tuple(
        dataclasses.replace(row, seen_l0=row.l1 if row.rank in wrong else row.l0, seen_l1=row.l1)
        if row.rank in seen
        else row
        for row in rows
    )


def mixed() -> ReportData:
    """64 ranks, each with evidence of several channels; two of them are off."""
    base = inactive()
    ranks, off = range(64), (17, 42)
    line = "[DEBUG | DotProductAttention]: Running with config={'context_parallel': %s, 'cp_comm_type': 'a2a+p2p', 'is_training': True}"
    asked = "The configuration asks for hierarchical context parallelism; that is intent, no proof."
    opened = "The communicators of both hierarchical levels were opened; nothing but attention uses them."
    used = "All-to-all on level L0 and send/recv on level L1 were recorded."
    on = "Context parallelism is on in a layer with a2a+p2p: there the wrapper passes the hierarchical groups or nothing."
    evidence = [
        Evidence("config", "neutral", "C", place(44, "  cp_comm_type ... ['a2a+p2p']"), asked),
        *(
            Evidence(
                "c10d",
                "active",
                "A",
                place(
                    700 + k,
                    f"[rank{n}]:[I301 09:13:51.400 ProcessGroupNCCL.cpp:2774] [PG ID 9 PG GUID 31(HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L{k}) Rank 0] ProcessGroupNCCL broadcast unique ID through store took 0.093 ms",
                    n,
                ),
                opened,
            )
            for n in ranks
            for k in (0, 1)
        ),
        *(
            Evidence(
                "te_debug",
                "inactive" if n in off else "active",
                "A",
                place(900, line % (n not in off), n),
                "A training layer that asks for a2a+p2p ran with context parallelism off."
                if n in off
                else on,
                layers,
            )
            for n in ranks
            for layers in ("text", "vision")
        ),
        *(
            Evidence(
                "flight_recorder",
                "active",
                "A",
                place(3 + k, f"('3{k}', 'HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L{k}')", n),
                used,
            )
            for n in ranks
            for k in (0, 1)
        ),
        Evidence("nccl", "neutral", "C", place(77, "NCCL INFO comm 0x55 rank 1 nranks 2", None)),
        Evidence(
            "print", "active", "B", place(60, "> hierarchical groups created", None), "By hand."
        ),
    ]
    verdict = Verdict(
        "mixed",
        "low",
        "Hierarchical context parallelism was on in some places and off in others.",
        ("Contradiction: evidence of grade A says active, evidence of grade A says inactive.",),
        STEPS,
        0,
        64,
        tuple(evidence),
    )
    attempt = AttemptData(0, verdict, "completed", None, None, 1, 120, 120, CONFIG)
    return dataclasses.replace(
        base,
        run=dataclasses.replace(base.run, world_size=64),
        verdict=verdict,
        judged_attempt=0,
        attempts=(attempt,),
        findings=(),
        suppressed=tuple(
            Suppressed(found, "accepted until the next release", "pyproject.toml of the place")
            for found in base.findings
        ),
        jobs=(),
        topology=groups(64, (8, 2), seen=range(60), wrong=off),
    )


def filled(value: Any, text: str) -> Any:
    """The same report with `text` in every free text field."""
    if isinstance(value, pl.DataFrame):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {
            field.name: _replaced(field.name, getattr(value, field.name), text)
            for field in dataclasses.fields(value)
        }
        return dataclasses.replace(value, **changes)
    if isinstance(value, tuple):
        return tuple(filled(item, text) for item in value)
    return text if isinstance(value, str) else value


_FIXED = {
    "status",
    "level",
    "confidence",
    "severity",
    "channel",
    "says",
    "grade",
    "outcome",
    "aligned_by",
    "unit",
    "metric",
    "window",
}


def _replaced(name: str, value: Any, text: str) -> Any:
    if name in _FIXED or value is None:
        return value
    if isinstance(value, dict):
        return {key: text if isinstance(item, str) else item for key, item in value.items()}
    if name == "context":
        return tuple((number, text) for number, _ in value)
    return filled(value, text)


ALL = (inactive, unconfirmed, beside, not_requested, empty, mixed)
