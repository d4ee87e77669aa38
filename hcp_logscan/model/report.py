"""ReportData: everything a renderer needs, and nothing it would have to compute."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from hcp_logscan.model.comparison import Comparison
    from hcp_logscan.model.finding import (
        Confidence,
        Finding,
        Judgement,
        Severity,
        Suppressed,
        Verdict,
    )
    from hcp_logscan.model.said import Said

SCHEMA: Final = "hcp-logscan/report/v1"
"""The `schema` member of the JSON report; it changes only with an incompatible change."""

MAX_WORLD: Final = 2**20
"""Most ranks a job is believed to have; a larger number is a damaged or mistyped one."""

AttemptOutcome = Literal[
    "completed",
    "failed",
    "killed",
    "terminated",
    "time_limit",
    "rejected",
    "no_training",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What the run is, as far as its logs say."""

    name: str
    job: str | None = None
    world_size: int | None = None
    gpu: str | None = None
    precision: str | None = None
    framework: str | None = None
    baseline: str | None = None
    "Name of the run that it is compared with."


@dataclass(frozen=True, slots=True)
class AttemptData:
    """One launch of the workers."""

    attempt: int
    verdict: Verdict
    outcome: AttemptOutcome
    started: str | None = None
    "First time stamp of its lines, ISO 8601 without zone; None where no line carries one."

    ended: str | None = None
    first_iteration: int | None = None
    last_iteration: int | None = None
    iterations: int = 0
    "Distinct iterations logged."

    config: Mapping[str, Any] = field(default_factory=dict)
    "CP/HCP keys and model shape, one entry per key of `analysis.facts.CONFIG_FACTS`; None = not"
    " observed."

    facts: Mapping[str, Any] = field(default_factory=dict)
    "Every fact of this attempt by name; None = not observed."

    full_config: tuple[ConfigEntry, ...] = ()
    "Every key of every configuration block, CP/HCP keys first: for the report's configuration"
    " table."


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One configured value, with the place that states it."""

    source: str
    "`args_dump`, `world_size_line`, `bridge_yaml`, `bridge_summary` or `saved_yaml`."

    section: str
    key: str
    value: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and range of one series over all logged iterations; None where nothing was logged."""

    median: float | None = None
    min: float | None = None
    max: float | None = None


@dataclass(frozen=True, slots=True)
class LossSpread:
    """First, last and lowest logged loss; None where no loss was logged."""

    first: float | None = None
    last: float | None = None
    min: float | None = None


@dataclass(frozen=True, slots=True)
class SeriesSummary:
    """The series of the run in a few numbers."""

    iterations: int = 0
    "Distinct (attempt, iteration) pairs that were logged."

    tflops_per_gpu: Spread = field(default_factory=Spread)
    tokens_per_s_per_gpu: Spread = field(default_factory=Spread)
    lm_loss: LossSpread = field(default_factory=LossSpread)
    step_ms: Spread = field(default_factory=Spread)


@dataclass(frozen=True, slots=True)
class RankRow:
    """What the logs hold of one rank."""

    rank: int
    files: tuple[str, ...] = ()
    node: str | None = None
    confirmed: bool = False
    "Runtime evidence of this rank stands behind the verdict."

    last_line: str = ""
    """Its last line where it has files of its own, else its last recognised one; shortened, empty
    where there is none."""

    last_time: str | None = None
    """Wall-clock of the last line of its own files that carries one, else of `last_line`: as
    printed, `MM-DD hh:mm:ss`."""

    last_iteration: int | None = None
    "The last iteration that it printed itself; most ranks print none."

    last_phase: str | None = None
    "Where it failed in the last attempt, if it did: a phase of the fact table `failures`."


@dataclass(frozen=True, slots=True)
class RankGroups:
    """The hierarchical groups one rank should be in, and those it was seen in (global ranks)."""

    rank: int
    cp_group: tuple[int, ...]
    l0: tuple[int, ...]
    "Inner, all-to-all group."

    l1: tuple[int, ...]
    "Outer, point-to-point group."

    seen_l0: tuple[int, ...] | None = None
    "Members as a runtime channel shows them; None where none does."

    seen_l1: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that could not be read, and why."""

    file: str
    why: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """Files that are not logs, counted by kind and folder."""

    kind: str
    count: int
    folder: str


@dataclass(frozen=True, slots=True)
class Drift:
    """Lines that hold a parser's needle but do not match its pattern."""

    parser: str
    count: int
    sample: str


@dataclass(frozen=True, slots=True)
class Health:
    """How much of the input was read and understood."""

    files: int = 0
    bytes: int = 0
    lines: int | None = None
    "None where counting would have cost a second pass."

    recognised_lines: int = 0
    unreadable: tuple[Unreadable, ...] = ()
    truncated: tuple[str, ...] = ()
    "Each entry names a file and what of it is cut off."

    skipped: tuple[Skipped, ...] = ()
    drift: tuple[Drift, ...] = ()
    ranks_missing: tuple[int, ...] = ()


RedactionLevel = Literal["secrets", "all", "none"]
REDACTION_LEVELS: Final[tuple[RedactionLevel, ...]] = ("secrets", "all", "none")


@dataclass(frozen=True, slots=True)
class Redaction:
    """What was hidden in this report, file names included."""

    level: RedactionLevel = "none"
    hidden: int = 0
    "Distinct secrets; each has one placeholder, wherever it stood."

    pseudonyms: int = 0
    "Distinct hosts, users and addresses that have another name here; only at the level `all`."


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job of a directory that holds several."""

    job: str
    files: int
    newest: str | None
    "Newest time stamp in its logs."

    judged: bool


@dataclass(frozen=True, slots=True)
class Peak:
    """What the GPUs can do at most, without sparsity: the measure of a printed throughput."""

    precision: str
    "Of the matrix products: `bf16`, `fp16`, `fp8`, `fp4`, `fp32`."

    assumed: bool = False
    "The precision is not in the logs."

    gpu: str | None = None
    "Name in the GPU table, None where the GPU is unknown."

    tflops: float | None = None
    "Dense peak in TFLOP/s of this GPU at this precision; None where it is unknown."

    bound_tflops: float | None = None
    """The most that any GPU it may be does at any precision it may run: equal to `tflops` where
    both are known, None where nothing bounds it."""

    source: str = ""
    "Who says which GPU it is, as words: `the logs`, `--gpu`, `HCP_LOGSCAN_GPU`, ..."

    datasheet: str = ""
    explanation: str = ""
    "One sentence for readers: which peak is meant, and whence."


@dataclass(frozen=True, slots=True)
class RateLevels:
    """What the printed TFLOP/s/GPU of one attempt are read against; in TFLOP/s per GPU."""

    attempt: int

    believable: tuple[float, float] | None = None
    """Least and most that training reaches here: these shares of the dense peak are parameters of
    the rules HCP103 (`believable_from`) and HCP102 (`max_share`). None unless GPU and precision are
    known."""

    if_cp_off: float | None = None
    """The median printed rate with the attention divided by the CP size: what was done if context
    parallelism was off. None where it was not asked for as a2a+p2p, where its verdict is settled
    otherwise, and where rate, CP size or model shape are not known."""

    cp_size: int | None = None
    "That CP size; None where `if_cp_off` is."


@dataclass(frozen=True, slots=True)
class RuleText:
    """What a report can say of a rule, whether it fired or not."""

    id: str
    name: str
    severity: Severity
    confidence: Confidence
    summary: str
    "One sentence without a full stop."

    why: str
    fix: str
    false_positives: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    page: str | None = None
    "URL of its page, which only rules of this package have."


@dataclass(frozen=True, slots=True)
class Place:
    """A line that a sentence rests on."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Story:
    """What broke first, what followed, what ended it and what was kept: at most three sentences."""

    attempt: int | None
    "None for the story of the run."

    sentences: tuple[str, ...] = ()
    "Empty where nothing is known to have broken."

    evidence: tuple[tuple[Place, ...], ...] = ()
    "Per sentence the lines that it rests on, the most telling one first."

    @property
    def pairs(self) -> tuple[tuple[str, tuple[Place, ...]], ...]:
        """Each sentence with its lines."""
        lines = (*self.evidence, *[()] * (len(self.sentences) - len(self.evidence)))
        return tuple(zip(self.sentences, lines, strict=False))


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How far the clock of one node is from that of the reference node."""

    node: str
    reference: str
    seconds: float | None
    "Ahead of the reference's; negative behind it. None where too few events tell."

    events: int
    "Events that both nodes logged."

    spread_s: float | None
    "Median of the absolute deviations from `seconds`."

    corrected: bool = False
    "Times of this node are corrected: the offset is larger than it is uncertain."


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One thing that happened; like things of many ranks are one entry."""

    attempt: int
    time: str | None
    """Wall-clock as `MM-DD hh:mm:ss`, None where nothing tells it; of nodes whose clock is off, on
    the clock of the reference."""

    estimated: bool
    "The time is that of the last dated line above in the same file: it was then or later."

    who: str
    "`job`, `ranks` for several, else in words: `rank 3 on gpu-node07`, `node gpu-node07`."

    ranks: tuple[int, ...]
    "Global ranks as far as they are known."

    role: str
    "`progress`, a role of the fact table `failures`, or `unknown`."

    kind: str
    "`mark`, `checkpoint_saved`, `checkpoint_loaded`, `iteration`, a cause or a kind of failure."

    text: str
    count: int
    "Lines or processes that the entry stands for."

    iteration: int | None
    file: str | None
    line: int | None
    corrected: bool = False
    "The line itself shows another time: the clock of its node is off."


@dataclass(frozen=True, slots=True)
class ReportData:
    """A whole report as data. Renderers are pure functions of it."""

    tool_name: str
    tool_version: str
    run: RunInfo
    verdict: Verdict
    "That of the last attempt with a finished iteration, else of the last attempt."

    judged_attempt: int
    attempts: tuple[AttemptData, ...]
    findings: tuple[Finding, ...]
    "Worst first."

    judgements: tuple[Judgement, ...]
    series: SeriesSummary
    health: Health
    iterations: pl.DataFrame
    """One row per logged (attempt, iteration): `attempt`, `iteration`, `step_ms`, `tflops_per_gpu`,
    `tokens_per_s_per_gpu`, `lm_loss`, `grad_norm` and more; nulls where a line lacks the field."""

    ranks: tuple[RankRow, ...] = ()
    topology: tuple[RankGroups, ...] = ()
    "Of the judged attempt, one row per rank; empty where sizes or the rank order are unknown."

    jobs: tuple[JobRow, ...] = ()
    "Empty unless the directory holds several jobs."

    peak: Peak | None = None
    "Of the judged attempt; None where neither a GPU nor an architecture is known."

    levels: tuple[RateLevels, ...] = ()
    "One per attempt, in their order."

    comparison: Comparison | None = None
    "With the baseline; None where none was given."

    rules: tuple[RuleText, ...] = ()
    "The rules that were judged, by id."

    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    "Event tables by name; empty unless a format is asked for that shows them, for they are large."

    stories: tuple[Story, ...] = ()
    "That of the run first, then one per attempt."

    timeline: tuple[TimelineEntry, ...] = ()
    "In order, a few hundred entries at most."

    clocks: tuple[ClockOffset, ...] = ()
    "One per node; empty where the logs are not known to be of several."

    clock_notes: tuple[str, ...] = ()
    "What is said of clocks that were corrected, in words; empty where none was."

    redaction: Redaction = field(default_factory=Redaction)
    "What is hidden in all of the above; nothing as long as nobody redacted it."

    suppressed: tuple[Suppressed, ...] = ()
    "Findings that a user accepts, with the reason, worst first: none of them is in `findings`."

    said: Mapping[str, Said] = field(default_factory=dict)
    "How texts above were put together, for `reporting.translate`; as redacted as they are."
