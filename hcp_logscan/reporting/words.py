"""Words and numbers shared by all readable formats, so that they say the same thing."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final, Literal

from hcp_logscan.model.said import N_
from hcp_logscan.reporting import tongue
from hcp_logscan.reporting.tongue import Spoken, _, n_

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hcp_logscan.model.finding import Channel, Evidence, Finding, Severity, Status, Verdict
    from hcp_logscan.model.report import AttemptData, AttemptOutcome, LossSpread, ReportData, Spread

Tone = Literal["good", "bad", "warn", "calm"]
"""How a reader should feel about something; never shown by colour alone."""

NOT_LOGGED: Final = N_("not logged")

STATUS_WORDS: Final[Mapping[Status, tuple[str, str, Tone]]] = Spoken(
    {
        "active": (N_("Active"), N_("Hierarchical context parallelism was on"), "good"),
        "inactive": (
            N_("Inactive"),
            N_("Hierarchical context parallelism was requested, but it was off"),
            "bad",
        ),
        "degenerate": (
            N_("Degenerate"),
            N_("One level has size 1: flat context parallelism ran instead"),
            "warn",
        ),
        "mixed": (N_("Mixed"), N_("On in some places, off in others"), "bad"),
        "rejected": (
            N_("Rejected"),
            N_("The stack refused the configuration; nothing was trained"),
            "bad",
        ),
        "unconfirmed": (
            N_("Unconfirmed"),
            N_("Configured correctly, but these logs cannot prove it ran"),
            "warn",
        ),
        "not_requested": (
            N_("Not requested"),
            N_("This run did not ask for hierarchical context parallelism"),
            "calm",
        ),
        "inconclusive": (N_("Inconclusive"), N_("These logs are too thin to tell"), "calm"),
    }
)
"""Status -> (one word or two, what it means, tone)."""

OUTCOME_WORDS: Final[Mapping[AttemptOutcome, tuple[str, Tone]]] = Spoken(
    {
        "completed": (N_("completed"), "good"),
        "failed": (N_("failed"), "bad"),
        "killed": (N_("killed"), "bad"),
        "terminated": (N_("terminated"), "warn"),
        "time_limit": (N_("time limit reached"), "warn"),
        "rejected": (N_("rejected at start-up"), "bad"),
        "no_training": (N_("no training"), "calm"),
        "unknown": (N_("end not seen"), "calm"),
    }
)

SEVERITY_WORDS: Final[Mapping[str, str]] = Spoken(
    {"error": N_("error"), "warning": N_("warning"), "note": N_("note")}
)
CONFIDENCE_WORDS: Final[Mapping[str, str]] = Spoken(
    {
        "high": N_("high confidence"),
        "medium": N_("medium confidence"),
        "low": N_("low confidence"),
    }
)

LEVEL_WORDS: Final[Mapping[str, str]] = Spoken(
    {"high": N_("high"), "medium": N_("medium"), "low": N_("low")}
)
"""Levels of confidence alone."""

SEVERITY_TONES: Final[Mapping[Severity, Tone]] = {"error": "bad", "warning": "warn", "note": "calm"}

CHANNEL_WORDS: Final[Mapping[Channel, str]] = Spoken(
    {
        "te_debug": N_("Transformer Engine debug lines: what attention really ran with"),
        "flight_recorder": N_("Flight-recorder dumps: collectives on the hierarchical groups"),
        "c10d": N_("PyTorch c10d lines: communicators opened for described groups"),
        "nccl": N_("NCCL lines: communicators and their members"),
        "print": N_("Lines printed by scripts and forks that say groups were created"),
        "config": N_("Configuration dumps: what was asked for"),
        "path": N_("Start-up path: how process groups were built"),
        "assertion": N_("Start-up checks: what the stack refused"),
        "throughput": N_("Printed throughput: a symptom, never proof"),
    }
)
"""Strongest channel first."""


_COUNTED: Final = (
    N_("{count:,} attempt"),
    N_("{count:,} error"),
    N_("{count:,} file"),
    N_("{count:,} finding"),
    N_("{count:,} group"),
    N_("{count:,} iteration"),
    N_("{count:,} line"),
    N_("{count:,} member"),
    N_("{count:,} more group"),
    N_("{count:,} more line"),
    N_("{count:,} name"),
    N_("{count:,} note"),
    N_("{count:,} other file"),
    N_("{count:,} rank"),
    N_("{count:,} rule"),
    N_("{count:,} run"),
    N_("{count:,} secret"),
    N_("{count:,} setting"),
    N_("{count:,} value"),
    N_("{count:,} warning"),
)
"""Nouns of `plural`: their plurals are regular in English, and other languages have one form."""


def plural(count: int, noun: str) -> str:
    """A count with its noun: `1 error`, `1,200 lines`."""
    if tongue.lang() != "en":
        form = "{count:,} " + noun
        return _(form, count=count)
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("y") else f"{count:,} {noun}s"


def not_logged() -> str:
    """What stands for a number that no line has."""
    return _(NOT_LOGGED)


def fixed(value: float | None, digits: int = 1) -> str:
    """A number with thousands separators; `not logged`, `NaN` and `Inf` in words."""
    if value is None:
        return _(NOT_LOGGED)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Inf" if value > 0 else "-Inf")
    return f"{value:,.{digits}f}"


def loss(value: float | None) -> str:
    """A loss or gradient norm with four significant digits.

    >>> loss(10.0), loss(0.00012345), loss(12345.6), loss(None)
    ('10.00', '0.0001234', '12,350', 'not logged')
    """
    if value is None or not math.isfinite(value):
        return fixed(value)
    if 1000 <= abs(value) < 1e7:
        return f"{float(f'{value:.4g}'):,.0f}"
    return f"{value:#.4g}"


def milliseconds(value: float | None) -> str:
    """A step time with its unit, in seconds from one second on."""
    if value is None or not math.isfinite(value):
        return fixed(value)
    return f"{value:,.1f} ms" if abs(value) < 1000 else f"{value / 1000:,.2f} s"


def percent(share: float | None) -> str:
    """A share as percent, with a decimal below ten.

    >>> percent(0.4163), percent(0.0213), percent(1.958), percent(None)
    ('42 %', '2.1 %', '196 %', 'not logged')
    """
    if share is None or not math.isfinite(share):
        return fixed(share)
    return f"{share * 100:,.{0 if abs(share) >= 0.0995 else 1}f} %"


def size(count: int) -> str:
    """Bytes as kB, MB, GB: powers of 1,000."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"


def padded(text: str, width: int) -> str:
    """Text filled up with blanks to a width in cells of a terminal.

    >>> padded("loss", 6) + "|", padded("损失", 6) + "|"
    ('loss  |', '损失  |')
    """
    from rich.cells import cell_len

    return text + " " * max(width - cell_len(text), 0)


def ranges(numbers: Iterable[int], limit: int = 12) -> str:
    """Ranks as ranges, shortened with a count of what was left out.

    >>> ranges([0, 1, 2, 3, 7])
    '0-3, 7'
    >>> ranges([1, 3, 5], limit=2)
    '1, 3 and 1 more'
    """
    found = runs(numbers)
    shown = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found[:limit])
    rest = sum(b - a + 1 for a, b in found[limit:])
    return _("{shown} and {rest:,} more", shown=shown, rest=rest) if rest else shown


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Consecutive numbers joined, as (first, last)."""
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def members(numbers: Sequence[int], limit: int = 12) -> str:
    """Members of a group in their own order, steps of equal size joined.

    >>> members([0, 1, 2, 3]), members([0, 8]), members([0, 8, 16, 24]), members([1, 0, 2])
    ('0-3', '0, 8', '0-24 in steps of 8', '1, 0, 2')
    >>> members([0, 1, 5, 3], limit=2)
    '0-1, 5 and 1 more'
    """
    parts: list[tuple[str, int]] = []
    start = 0
    while start < len(numbers):
        end = start + 1
        step = numbers[end] - numbers[start] if end < len(numbers) else 0
        while step > 0 and end + 1 < len(numbers) and numbers[end + 1] - numbers[end] == step:
            end += 1
        count = end - start + 1
        if step == 1 or (step > 1 and count > 2):
            steps = "" if step == 1 else _(" in steps of {step:,}", step=step)
            parts.append((f"{numbers[start]}-{numbers[end]}{steps}", count))
            start = end + 1
        else:
            parts.append((str(numbers[start]), 1))
            start += 1
    rest = sum(count for _, count in parts[limit:])
    shown = ", ".join(text for text, _ in parts[:limit])
    return _("{shown} and {rest:,} more", shown=shown, rest=rest) if rest else shown


def ranks(numbers: Iterable[int]) -> str:
    """`rank 3`, `ranks 0-3, 7`, or nothing."""
    listed = sorted(set(numbers))
    if not listed:
        return ""
    return n_("rank {ranks}", "ranks {ranks}", count=len(listed), ranks=ranges(listed))


def spread(found: Spread, unit: str, digits: int = 1) -> str:
    """Median and range of a series, with its unit."""
    if found.median is None:
        return _(NOT_LOGGED)
    text = _("{value} {unit} median", value=fixed(found.median, digits), unit=unit)
    if found.min is None or found.max is None or found.min == found.max:
        return text
    return _(
        "{text} ({low} to {high})",
        text=text,
        low=fixed(found.min, digits),
        high=fixed(found.max, digits),
    )


def step_time(found: Spread) -> str:
    """Median and range of the step time."""
    if found.median is None:
        return _(NOT_LOGGED)
    text = _("{value} median", value=milliseconds(found.median))
    if found.min is None or found.max is None or found.min == found.max:
        return text
    return _(
        "{text} ({low} to {high})",
        text=text,
        low=milliseconds(found.min),
        high=milliseconds(found.max),
    )


def loss_course(found: LossSpread) -> str:
    """First and last loss, and the lowest where it is another."""
    if found.first is None and found.last is None:
        return _(NOT_LOGGED)
    text = f"{loss(found.first)} \u2192 {loss(found.last)}"
    if found.min is None or found.min in (found.first, found.last):
        return text
    return _("{text} (lowest {low})", text=text, low=loss(found.min))


def iteration_span(attempt: AttemptData) -> str:
    """`8 iterations logged, 1 to 8`, or that there is none."""
    if not attempt.iterations:
        return _("no iteration logged")
    text = _("{many} logged", many=plural(attempt.iterations, "iteration"))
    if attempt.first_iteration is None or attempt.last_iteration is None:
        return text
    return _(
        "{text}, {first_iteration:,} to {last_iteration:,}",
        text=text,
        first_iteration=attempt.first_iteration,
        last_iteration=attempt.last_iteration,
    )


def coverage(verdict: Verdict, world_size: int | None) -> str:
    """On how many ranks the verdict was seen, out of how many."""
    if configured(verdict):
        return _("decided by configuration, for all ranks")
    seen = plural(verdict.ranks_seen, "rank")
    if not verdict.ranks_seen and verdict.ranks_confirmed:
        named = plural(verdict.ranks_confirmed, "rank")
        world = _(" of {world_size:,}", world_size=world_size) if world_size is not None else ""
        return _("seen in lines that name {named}{world}", named=named, world=world)
    if not verdict.ranks_seen:
        text = _("ranks cannot be told apart in these logs")
    elif not verdict.ranks_confirmed and _deciding(verdict):
        text = _("seen in lines that name no rank; {seen} in these logs", seen=seen)
    elif not verdict.ranks_confirmed:
        text = _("runtime evidence on none of {seen}", seen=seen)
    else:
        text = _(
            "seen on {ranks_confirmed:,} of {seen}",
            ranks_confirmed=verdict.ranks_confirmed,
            seen=seen,
        )
    if world_size is not None and 0 < verdict.ranks_seen < world_size:
        text += _("; the world has {world_size:,}", world_size=world_size)
    return text


_CONFIGURED: Final = frozenset({"config", "path", "assertion"})


def _deciding(verdict: Verdict) -> list[Evidence]:
    """Evidence that is strong enough to decide and says what the verdict says."""
    return [p for p in verdict.evidence if p.says == verdict.status and p.grade != "C"]


def configured(verdict: Verdict) -> bool:
    """Whether the configuration, the same on all ranks, decided and no rank had to confirm it."""
    if verdict.ranks_confirmed:
        return False
    if verdict.status in {"not_requested", "rejected", "degenerate"}:
        return True
    deciding = _deciding(verdict)
    by_channel = any(piece.channel in _CONFIGURED for piece in deciding)
    return verdict.status == "inactive" and (by_channel or not deciding)


def run_traits(data: ReportData) -> tuple[str, ...]:
    """What the run is, in short pieces; only what the logs say."""
    run = data.run
    gpus = run.gpu or ""
    if run.world_size is not None:
        many = plural(run.world_size, "rank")
        gpus = f"{run.world_size:,} \u00d7 {gpus}" if gpus else many
    job = _("job {job}", job=run.job) if run.job else ""
    return tuple(part for part in (job, run.framework or "", gpus, run.precision or "") if part)


def counted(findings: Iterable[Finding]) -> str:
    """`2 errors, 1 note`, worst first; `none` where there is none."""
    found = [finding.severity for finding in findings]
    parts = [plural(found.count(s), s) for s in SEVERITY_TONES if found.count(s)]
    return _(", ").join(parts) or _("none")


def leads_with_progress(data: ReportData) -> bool:
    """Whether something else matters more to the reader than the HCP verdict."""
    status = data.verdict.status
    return status == "not_requested" or (status == "inconclusive" and not data.series.iterations)


def worst(data: ReportData) -> Finding | None:
    """The finding to lead with: the first of the worst, unless it is a mere note."""
    first = data.findings[0] if data.findings else None
    return first if first is not None and first.severity != "note" else None


def progress(data: ReportData) -> str:
    """How far the run came, in one sentence."""
    if not data.attempts:
        return _("No launch of workers was recognised in these logs.")
    last = data.attempts[-1]
    outcome = OUTCOME_WORDS[last.outcome][0]
    who = _("Attempt {attempt}", attempt=last.attempt) if len(data.attempts) > 1 else _("The run")
    if not last.iterations or last.last_iteration is None:
        return _("{who} finished no logged iteration ({outcome}).", who=who, outcome=outcome)
    return _(
        "{who} reached iteration {last_iteration:,} ({outcome}).",
        who=who,
        last_iteration=last.last_iteration,
        outcome=outcome,
    )


def paragraphs(text: str) -> tuple[str, ...]:
    r"""Prose split at blank lines and list items, other line breaks joined.

    >>> paragraphs("a\nb\n\nc:\n- d\n  e\n- f\n")
    ('a b', 'c:', '- d e', '- f')
    """
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+[.)])\s)", text.strip())
    return tuple(
        " ".join(line.strip() for line in block.strip().split("\n"))
        for block in blocks
        if block.strip()
    )


def first_advice(text: str) -> str:
    """The first paragraph of a fix, with the next one where it ends in a colon."""
    parts: list[str] = []
    for part in paragraphs(text):
        parts.append(part)
        if not part.endswith((":", "：")):
            break
    return " ".join(parts)


def alike(findings: Iterable[Finding]) -> list[tuple[Finding, tuple[int, ...]]]:
    """Findings of one rule joined: the first, and the other attempts that have it too."""
    joined: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        joined.setdefault((finding.rule, finding.severity), []).append(finding)
    return [(same[0], tuple(other.attempt for other in same[1:])) for same in joined.values()]


def same_pieces(evidence: Iterable[Evidence]) -> list[list[Evidence]]:
    """Evidence that says one thing, joined.

    Strongest channel first; within it neutral pieces last, and the few before the many.
    """
    joined: dict[tuple[int, bool, str, str, str, str], list[Evidence]] = {}
    order = list(CHANNEL_WORDS)
    for piece in evidence:
        key = (
            order.index(piece.channel),
            piece.says == "neutral",
            piece.grade,
            piece.says,
            piece.layer_kind or "",
            piece.explanation,
        )
        joined.setdefault(key, []).append(piece)
    return [joined[key] for key in sorted(joined, key=lambda key: (*key[:3], len(joined[key])))]


def lines_on_ranks(pieces: Sequence[Evidence]) -> str:
    """`128 lines, ranks 0-63`: how often something was said, and where that is known."""
    found = {piece.location.rank for piece in pieces}
    parts = (plural(len(pieces), "line"), ranks(rank for rank in found if rank is not None))
    return _(", ").join(part for part in parts if part)


def safe_link(reference: str) -> bool:
    """Whether a reference may become a link: https with a host, no blanks or controls."""
    return (
        re.fullmatch(r"https://[A-Za-z0-9][A-Za-z0-9.-]*(?::\d+)?(?:[/?#][!-~]*)?", reference)
        is not None
    )
