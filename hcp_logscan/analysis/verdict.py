"""Evidence and facts -> the verdict of one attempt. Total: every case has one answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.analysis.config import requests_hcp
from hcp_logscan.model.finding import Confidence, Evidence, Grade, Status, Verdict
from hcp_logscan.model.said import N_, joined, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_RUNTIME: Final = frozenset({"te_debug", "flight_recorder", "c10d", "nccl"})
MAX_EVIDENCE: Final = 16
"""Pieces listed of one channel, verdict and explanation; the first and last of them are kept."""


@dataclass(frozen=True, slots=True)
class Combined:
    """What a set of evidence amounts to; status None leaves it to the configuration."""

    status: Status | None
    confidence: Confidence
    contradiction: str | None = None


def _best(evidence: Sequence[Evidence], says: str) -> Grade | None:
    grades: set[Grade] = {piece.grade for piece in evidence if piece.says == says}
    return "A" if "A" in grades else "B" if "B" in grades else None


def _who(piece: Evidence) -> str | None:
    """The process a piece speaks of; None for configuration, path, and where it cannot be told."""
    if piece.channel not in _RUNTIME:
        return None
    rank = piece.location.rank
    return piece.process if rank is None else f"rank {rank}"


def _same_subject(evidence: Sequence[Evidence]) -> bool:
    """Whether some active and some inactive evidence may speak of one process and layer kind.

    Configuration and path belong to no rank and count as the same rank as any; so does runtime
    evidence whose process is unknown.
    """
    strong = [piece for piece in evidence if piece.grade != "C"]
    on = {(_who(piece), piece.layer_kind) for piece in strong if piece.says == "active"}
    off = {(_who(piece), piece.layer_kind) for piece in strong if piece.says == "inactive"}
    return any(
        (None in {one[0], other[0]} or one[0] == other[0])
        and (None in {one[1], other[1]} or one[1] == other[1])
        for one in on
        for other in off
    )


def _runtime_only(evidence: Sequence[Evidence], says: str, grade: Grade) -> bool:
    return any(p.channel in _RUNTIME for p in evidence if p.says == says and p.grade == grade)


def combine(evidence: Sequence[Evidence], ranks_seen: int) -> Combined:
    """The combining table: best active grade x best inactive grade x same subject.

    Grade C decides nothing. `ranks_seen` is the number of ranks told apart (0 if none): runtime
    evidence on fewer ranks lowers a high confidence to medium.
    """
    active, inactive = _best(evidence, "active"), _best(evidence, "inactive")
    if active is None and inactive is None:
        return Combined(None, "low")
    if inactive is None or active is None:
        status: Status = "active" if active else "inactive"
        grade = active or inactive
        if grade == "B":
            return Combined(status, "medium")
        who = {_who(p) for p in evidence if p.says == status and p.grade != "C"}
        partial = None not in who and len(who) < ranks_seen
        return Combined(status, "medium" if partial else "high")
    if not _same_subject(evidence):
        return Combined("mixed", "medium" if "B" in {active, inactive} else "high")
    contradiction = say(
        "evidence of grade {active} says active, evidence of grade {inactive} says inactive",
        active=active,
        inactive=inactive,
    )
    if active == inactive:
        runtime = (
            _runtime_only(evidence, "active", active),
            _runtime_only(evidence, "inactive", inactive),
        )
        if runtime == (True, False):  # what was measured beats what was configured
            return Combined("active", "medium", contradiction)
        if runtime == (False, True):
            return Combined("inactive", "medium", contradiction)
        return Combined("mixed", "low", contradiction)
    return Combined("active" if active == "A" else "inactive", "medium", contradiction)


def measured_against_configured(evidence: Sequence[Evidence]) -> bool:
    """Whether runtime evidence and configuration or path say opposite things, both strongly."""
    strong = [piece for piece in evidence if piece.grade != "C" and piece.says != "neutral"]
    measured = {piece.says for piece in strong if piece.channel in _RUNTIME}
    configured = {piece.says for piece in strong if piece.channel in {"config", "path"}}
    return any(one != other for one in measured for other in configured)


def invalid(facts: Mapping[str, Any]) -> list[str]:
    """What is wrong with a configuration that asks for a2a+p2p, as far as it is seen."""
    wrong = []
    sizes, cp_size = facts["hcp_sizes"], facts["cp_size"]
    if facts["hcp_sizes_product"] is not None and facts["hcp_sizes_product"] != cp_size:
        wrong.append(
            say(
                "the product of the sizes {sizes} is not the context parallel size {cp_size}",
                sizes=sizes,
                cp_size=cp_size,
            )
        )
    if facts["hcp_levels"] is not None and facts["hcp_levels"] != 2:
        wrong.append(
            say(
                "Transformer Engine needs exactly two levels, {sizes} has {hcp_levels}",
                sizes=sizes,
                hcp_levels=facts["hcp_levels"],
            )
        )
    if cp_size and facts["seq_length"] and facts["seq_length"] % (2 * cp_size):
        wrong.append(
            say(
                "the sequence length {seq_length} is not divisible by {twice}",
                seq_length=facts["seq_length"],
                twice=2 * cp_size,
            )
        )
    if facts["te_version_code"] is not None and facts["te_version_code"] < 1_012_000:
        wrong.append(
            say(
                "Transformer Engine {te_version} is older than 1.12.0",
                te_version=facts["te_version"],
            )
        )
    heads, tp_size, inner = facts["query_groups"], facts["tp_size"], facts["hcp_a2a_size"]
    if heads and tp_size and inner and heads % (tp_size * inner):
        wrong.append(
            say(
                "the all-to-all size {inner} does not divide the {heads} key/value heads "
                "over TP {tp_size}",
                inner=inner,
                heads=heads,
                tp_size=tp_size,
            )
        )
    return wrong


_Decision = tuple[Status, Confidence, list[str]]


def _inconclusive(reason: str) -> _Decision:
    return "inconclusive", "low", [reason]


def _status(facts: Mapping[str, Any], combined: Combined) -> _Decision:
    """Status, confidence and reasons, in the order that the cases rule each other out."""
    if facts["rejections"] and not facts["iterations_finished"]:
        reason = say(
            "The configuration was refused before the first iteration "
            "({rejection_check}): {rejection_text}",
            rejection_check=facts["rejection_check"],
            rejection_text=facts["rejection_text"],
        )
        return "rejected", "high", [reason]
    if combined.status in {None, "active"} and _degenerate(facts):
        flat = "p2p" if facts["hcp_a2a_size"] == 1 else "a2a"
        reason = say(
            "The sizes {hcp_sizes} have a level of size 1: Transformer Engine runs flat "
            "{flat}. Context parallelism is on, but it is not hierarchical.",
            hcp_sizes=facts["hcp_sizes"],
            flat=flat,
        )
        return "degenerate", "high", [reason]
    if combined.status is not None:
        reasons = (
            [say("Contradiction: {contradiction}.", contradiction=combined.contradiction)]
            if combined.contradiction
            else []
        )
        return combined.status, combined.confidence, reasons
    return _by_configuration(facts)


def _degenerate(facts: Mapping[str, Any]) -> bool:
    """CP is on, but one of the two levels has size 1."""
    return (
        requests_hcp(facts["cp_comm_type"])
        and (facts["cp_size"] or 0) > 1
        and facts["hcp_min_size"] == 1
        and facts["hcp_levels"] == 2
        and facts["hcp_sizes_product"] == facts["cp_size"]
    )


def _by_configuration(facts: Mapping[str, Any]) -> _Decision:
    """The status where no evidence decides: what was asked for, if that can be seen."""
    cp_size, comm, sizes_set = facts["cp_size"], facts["cp_comm_type"], facts["hcp_sizes_set"]
    if cp_size == 1:
        return "not_requested", "high", [say("The context parallel size is 1.")]
    if other := facts["cp_implementation"]:
        return _by_another(other, cp_size, requested=requests_hcp(comm))
    if comm is not None and not requests_hcp(comm) and sizes_set is False:
        reason = say("cp_comm_type is {comm} and no hierarchical sizes are set.", comm=comm)
        return "not_requested", "high", [reason]
    if comm is None and sizes_set is None:
        seen = say(" (context parallel size {cp_size})", cp_size=cp_size) if cp_size else ""
        return _inconclusive(
            say(
                "The configuration is not visible in these logs{seen}: neither cp_comm_type "
                "nor the hierarchical sizes stand in them.",
                seen=seen,
            )
        )
    if facts["config_complete"] is not True:
        return _inconclusive(
            say(
                "The configuration block is cut off or missing: what it does not show is "
                "unknown, not absent."
            )
        )
    if not facts["iterations_finished"]:
        return _inconclusive(
            say("No iteration finished in these logs: what was configured was never exercised.")
        )
    if not requests_hcp(comm):
        return _inconclusive(say("The configuration does not say what was asked for."))
    if sizes_set is None or cp_size is None:
        return _inconclusive(say("The hierarchical sizes or the CP size are not visible."))
    if wrong := invalid(facts):
        return _inconclusive(
            say(
                "Iterations finished although {wrong}: this configuration cannot have run as "
                "shown.",
                wrong=joined("; ", wrong),
            )
        )
    return (
        "unconfirmed",
        "low",
        [
            (
                say(
                    "Configured correctly (CP {cp_size} = {hcp_sizes}, {comm}), and "
                    "{iterations_finished} iterations finished.",
                    cp_size=cp_size,
                    hcp_sizes=facts["hcp_sizes"],
                    comm=comm,
                    iterations_finished=facts["iterations_finished"],
                )
            ),
            (
                say(
                    "A log at default level holds only intent: no runtime channel was switched "
                    "on, so nothing in it can prove that the hierarchical groups carried traffic."
                )
            ),
        ],
    )


def _by_another(other: str, cp_size: int | None, *, requested: bool) -> _Decision:
    """The status where context parallelism is not Megatron-Core's."""
    size = say(" of size {cp_size}", cp_size=cp_size) if cp_size else ""
    words = say(
        "Context parallelism{size} is not Megatron-Core's but another one: {other}.",
        size=size,
        other=other,
    )
    if requested:
        return _inconclusive(say("{words} What a2a+p2p means to it is not known.", words=words))
    return "not_requested", "high", [say("{words} It has no hierarchical groups.", words=words)]


_SUMMARY: Final[Mapping[str, str]] = {
    "active": N_("Hierarchical context parallelism was on."),
    "inactive": N_("Hierarchical context parallelism was requested and was OFF."),
    "degenerate": N_("Context parallelism was on, but not hierarchical: one level has size 1."),
    "mixed": N_("Hierarchical context parallelism was on in one place and off in another."),
    "rejected": N_("The stack refused the configuration; nothing was trained."),
    "unconfirmed": N_(
        "Hierarchical context parallelism is configured correctly; these logs cannot "
        "confirm that it ran."
    ),
    "not_requested": N_("Hierarchical context parallelism was not requested."),
    "inconclusive": N_("These logs cannot tell whether hierarchical context parallelism was on."),
}


def _summary(status: Status, facts: Mapping[str, Any]) -> str:
    if status != "inactive":
        return _SUMMARY[status]
    cp_size = facts["cp_size"]
    if requests_hcp(facts["cp_comm_type"]) and cp_size:
        return say(
            "{summary} Each rank attended only to its own 1/{cp_size} of the sequence: "
            "the gradients are wrong and the printed throughput is too high.",
            summary=_SUMMARY[status],
            cp_size=cp_size,
        )
    return say("{summary} Attention used flat context parallelism.", summary=_SUMMARY[status])


def rerun_recipe(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """What to switch on for a few iterations, so that the next log can tell."""
    steps = [
        (
            say(
                "Rerun 2 to 5 iterations with NVTE_DEBUG=1 NVTE_DEBUG_LEVEL=2 "
                "TORCH_CPP_LOG_LEVEL=INFO set on every rank."
            )
        ),
        (
            say(
                "Where torch is older than 2.4 or Megatron-Core older than 0.11, add "
                "NCCL_DEBUG=INFO: process groups carry no description there."
            )
        ),
        (
            say(
                "Keep the stdout and stderr of every rank (torchrun --log-dir DIR --tee 3); "
                "under Ray also set RAY_DEDUP_LOGS=0."
            )
        ),
        say("Scan again with --expect active."),
    ]
    if facts["cp_comm_type"] is None or facts["config_complete"] is not True:
        steps.insert(
            0,
            say(
                "Keep rank 0's start-up output to the end of the configuration block, or the "
                "saved run configuration beside the logs."
            ),
        )
    return tuple(steps)


def _gpu_step(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """How to have a printed throughput judged, where nothing says what the GPUs can do."""
    if facts["tflops_median"] is None or facts["peak_bound_tflops"] is not None:
        return ()
    missing = (
        say("no dense peak is known for this GPU")
        if facts["gpu"]
        else say(
            "these logs do not name the GPU, so whether the printed throughput is "
            "possible could not be judged"
        )
    )
    advice = (
        "--peak-tflops X"
        if facts["gpu"]
        else say("--gpu NAME, or print `nvidia-smi -L` in the job")
    )
    return (
        say(
            "For the throughput: {missing}. Scan again with {advice}.",
            missing=missing,
            advice=advice,
        ),
    )


_PLURAL: Final = N_(
    "HIERARCHICAL_CONTEXT_PARALLEL_GROUPS: stock Megatron never prints this name "
    "(it is a Python global), so its absence proves nothing."
)
_SILENT: Final[Mapping[str, str]] = {
    "c10d": N_(
        "c10d: no line with a process group description (TORCH_CPP_LOG_LEVEL=INFO "
        "was off, or the backend is gloo)."
    ),
    "te_debug": N_("Transformer Engine: no attention debug line (NVTE_DEBUG was off)."),
    "flight_recorder": N_("Flight recorder: no dump was read."),
    "nccl": N_("NCCL: no communicator line was read."),
}


def not_seen(evidence: Sequence[Evidence], status: Status) -> tuple[str, ...]:
    """The channels that are silent, and why their silence proves nothing."""
    if status in {"not_requested", "rejected"}:
        return ()
    spoke = {piece.channel for piece in evidence}
    silent = [text for channel, text in _SILENT.items() if channel not in spoke]
    return (*silent, *(() if "print" in spoke else (_PLURAL,)))


def _capped(evidence: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """Enough of each kind: a thousand equal lines must not hide the one that differs."""
    kinds: dict[tuple[str, str, str], list[int]] = {}
    for index, piece in enumerate(evidence):
        kinds.setdefault((piece.channel, piece.says, piece.explanation), []).append(index)
    half = MAX_EVIDENCE // 2
    kept = {
        index
        for indices in kinds.values()
        for index in (indices if len(indices) <= MAX_EVIDENCE else indices[:half] + indices[-half:])
    }
    return tuple(piece for index, piece in enumerate(evidence) if index in kept)


def verdict(
    facts: Mapping[str, Any],
    evidence: tuple[Evidence, ...],
    ranks_seen: int,
    wrong_groups: Sequence[str] = (),
) -> Verdict:
    """The verdict of one attempt. Total: it always has an answer, `inconclusive` included.

    `wrong_groups` names hierarchical groups with other members than the sizes and the rank order
    ask for: such groups are no proof of what was configured, and the confidence is lower.
    """
    status, confidence, reasons = _status(facts, combine(evidence, ranks_seen))
    if wrong_groups and status == "active":
        confidence = "low"
    if wrong_groups:
        more = (
            say(" (and {count} more)", count=len(wrong_groups) - 1) if len(wrong_groups) > 1 else ""
        )
        reasons = [
            *reasons,
            say("Wrong membership: {wrong}{more}.", wrong=wrong_groups[0], more=more),
        ]
    deciding = [piece for piece in evidence if piece.says == status and piece.grade != "C"]
    reasons = [*reasons, *dict.fromkeys(piece.explanation for piece in deciding)]
    symptoms = [piece.explanation for piece in evidence if piece.channel == "throughput"]
    reasons += symptoms if status != "active" else []
    if status == "inactive" and facts["iterations_finished"]:
        reasons.append(
            say(
                "{iterations_finished} iterations finished, so no check stopped it.",
                iterations_finished=facts["iterations_finished"],
            )
        )
    shown = _capped(evidence)
    if len(shown) < len(evidence):
        reasons.append(
            say(
                "{count} pieces of evidence; {shown} of them are listed, the first and last "
                "of each kind.",
                count=len(evidence),
                shown=len(shown),
            )
        )
    speaking = [piece for piece in evidence if piece.says != "neutral" and piece.grade != "C"]
    counted = speaking if status == "mixed" else deciding
    confirmed = {piece.location.rank for piece in counted if piece.channel in _RUNTIME} - {None}
    return Verdict(
        status=status,
        confidence=confidence,
        summary=_summary(status, facts),
        reasons=tuple(reasons),
        next_steps=(() if confidence == "high" else rerun_recipe(facts)) + _gpu_step(facts),
        ranks_confirmed=len(confirmed),
        ranks_seen=ranks_seen,
        evidence=shown,
        not_seen=not_seen(evidence, status),
    )
