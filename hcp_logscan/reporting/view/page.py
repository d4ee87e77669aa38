"""Everything that the template of the report needs, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.reporting import suppressed, words
from hcp_logscan.reporting.charts.chart import charts
from hcp_logscan.reporting.lanes import story_view
from hcp_logscan.reporting.text import health_line
from hcp_logscan.reporting.topology import topology_view
from hcp_logscan.reporting.view.attempts import attempt_view, judged_attempt
from hcp_logscan.reporting.view.beside import baseline_view
from hcp_logscan.reporting.view.evidence import channels, reasons, spoken
from hcp_logscan.reporting.view.findings import (
    MAX_FINDINGS,
    anchor,
    evidence_anchors,
    finding_views,
    on_charts,
    top_views,
)
from hcp_logscan.reporting.view.numbers import numbers, places
from hcp_logscan.reporting.view.ranks import MAX_RANKS, map_of_ranks, rank_view
from hcp_logscan.reporting.view.rules import rule_counts, rules, without_baseline
from hcp_logscan.reporting.view.settings import facts, parted, settings

if TYPE_CHECKING:
    from hcp_logscan.model.report import ReportData
    from hcp_logscan.reporting.words import Tone

MAX_ROWS: Final = 2_000


def page(data: ReportData) -> dict[str, Any]:
    """Everything the template needs, by name."""
    word, meaning, tone = words.STATUS_WORDS[data.verdict.status]
    said = data.verdict.summary
    aside = words.leads_with_progress(data)
    lead = words.worst(data) if aside else None
    judged = judged_attempt(data)
    observed, unobserved = parted(settings(data, judged))
    drawn = charts(data)
    keys = [chart.key for chart in drawn]
    found = finding_views(data, keys)
    judged_rules, apart = without_baseline(data)
    return {
        "data": data,
        "traits": words.run_traits(data),
        "status_word": word,
        "status_meaning": meaning,
        "sentence": "" if said.rstrip(".") == meaning else said,
        "confidence": words.CONFIDENCE_WORDS[data.verdict.confidence],
        "level": words.LEVEL_WORDS[data.verdict.confidence],
        "severities": words.SEVERITY_WORDS,
        "tone": words.SEVERITY_TONES[lead.severity] if lead else tone,
        "aside": aside,
        "lead": lead,
        "lead_anchor": anchor(lead) if lead else "",
        "progress": words.progress(data),
        "coverage": words.coverage(data.verdict, data.run.world_size),
        "coverage_share": _share(data),
        "story": story_view(data, evidence_anchors(data)),
        "numbers": numbers(data),
        "number_places": places(data, keys),
        "reasons": reasons(data.verdict),
        "top": top_views(data, lead),
        "advice": _advice(data),
        "counted": words.counted(data.findings),
        "findings": found,
        "more_findings": data.findings[MAX_FINDINGS:],
        "suppressed": list(suppressed.entries(data))[:MAX_ROWS],
        "suppressed_counted": suppressed.counted(data),
        "channels": channels(data.verdict),
        "silent": [name for name in words.CHANNEL_WORDS if name not in spoken(data.verdict)],
        "charts": drawn,
        "chart_names": {chart.key: chart.title for chart in drawn},
        "chart_findings": on_charts(found),
        "plots": [chart.plot for chart in drawn],
        "beside": baseline_view(data.comparison),
        "attempts": [attempt_view(data, attempt) for attempt in data.attempts],
        "judged": judged,
        "settings": observed,
        "unobserved": unobserved,
        "others_differ": any(setting.others for setting in observed),
        "full_config": judged.full_config[:MAX_ROWS] if judged else (),
        "hidden_config": max(len(judged.full_config) - MAX_ROWS, 0) if judged else 0,
        "facts": facts(judged, compared=data.comparison is not None),
        "topology": topology_view(data.topology),
        "rank_map": map_of_ranks(data),
        "ranks": [rank_view(row) for row in data.ranks[:MAX_RANKS]],
        "hidden_ranks": max(len(data.ranks) - MAX_RANKS, 0),
        "rules": rules(judged_rules),
        "rule_counts": rule_counts(judged_rules),
        "rules_apart": apart,
        "health_line": health_line(data),
        "health_tone": _health_tone(data),
        "missing_ranks": words.ranges(data.health.ranks_missing),
        "size": words.size(data.health.bytes),
    }


def _advice(data: ReportData) -> tuple[str, str, str] | None:
    """What to do about the worst finding: (anchor, name, words), where the verdict asks nothing."""
    worst = words.worst(data)
    if worst is None or data.verdict.next_steps or not worst.fix.strip():
        return None
    return anchor(worst), f"{worst.rule} {worst.name}", words.first_advice(worst.fix)


def _share(data: ReportData) -> int | None:
    """Confirmed ranks in percent of all, for the meter; None where no rank had to confirm."""
    if words.configured(data.verdict):
        return None
    whole = max(data.verdict.ranks_seen, data.run.world_size or 0)
    return data.verdict.ranks_confirmed * 100 // whole if data.verdict.ranks_seen else None


def _health_tone(data: ReportData) -> Tone:
    health = data.health
    lacks = health.unreadable or health.truncated or health.drift or health.ranks_missing
    return "warn" if lacks else "good"
