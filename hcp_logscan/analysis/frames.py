"""Tables as rules and users see them: fact tables, and event tables with names and ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from hcp_logscan.analysis.facts import schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hcp_logscan.analysis.attempt import AttemptAnalysis
    from hcp_logscan.analysis.failures import Failures
    from hcp_logscan.analysis.ranks import Coverage
    from hcp_logscan.model.report import Health


def attempt_frame(analysed: Sequence[AttemptAnalysis]) -> pl.DataFrame:
    """The fact table `attempts`."""
    wanted = schema("attempts")
    rows = [{name: a.facts[name] for name in wanted} for a in analysed]
    return pl.DataFrame(rows, schema=wanted, strict=False)


def run_frame(
    judged: int,
    events: Mapping[str, pl.DataFrame],
    health: Health,
    coverage: Coverage,
    analysed: Sequence[AttemptAnalysis],
    came: Mapping[str, Any],
) -> pl.DataFrame:
    """The fact table `run`: one row; `came` are facts of its progress."""
    row = {
        "attempt": judged,
        "drift_lines": sum(drift.count for drift in health.drift),
        "drift_parsers": [drift.parser for drift in health.drift],
        "truncated_inputs": len(health.truncated),
        "unreadable_files": len(health.unreadable),
        "interleaved_lines": int(events["interleaved"]["count"].sum()),
        "ray_repeats": int(events["ray_repeats"]["count"].sum()),
        "files": health.files,
        "recognised_lines": health.recognised_lines,
        "ranks_missing": None if coverage.missing is None else list(coverage.missing),
        "ranks_missing_count": None if coverage.missing is None else len(coverage.missing),
        "world_size": next(a.facts["world_size"] for a in analysed if a.attempt == judged),
        **came,
    }
    return pl.DataFrame([row], schema=schema("run"))


def located(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """File indices become file names; `rank` is the resolved one where the table has none."""
    file = pl.col("file")
    named = frame.with_columns(
        file.replace_strict(
            list(range(len(names))), list(names), return_dtype=pl.String, default=None
        )
        if frame.height
        else file.cast(pl.String)
    )
    if "event_rank" in named.columns:
        if "rank" in named.columns:
            named = named.rename({"rank": "said_rank"})
        named = named.rename({"event_rank": "rank"})
    return named


def public(
    events: Mapping[str, pl.DataFrame], health: Health, names: Sequence[str]
) -> dict[str, pl.DataFrame]:
    """Event tables as rules and users see them; the log's own troubles as tables, too."""
    tables = {name: located(frame, names) for name, frame in events.items()}
    for name, entries in (
        ("truncated", [(entry.split(": ")[0], entry) for entry in health.truncated]),
        ("unreadable", [(u.file, f"{u.file}: {u.why}") for u in health.unreadable]),
    ):
        tables[name] = pl.DataFrame(
            [(0, None, file, 1, text) for file, text in entries],
            schema={
                "attempt": pl.Int64,
                "rank": pl.Int64,
                "file": pl.String,
                "line": pl.Int64,
                "text": pl.String,
            },
            orient="row",
        )
    first = ["attempt", "rank", "file", "line", "text"]
    return {
        name: frame.select(*first, pl.exclude(*first, "stream", "line_rank"))
        for name, frame in tables.items()
    }


def assertions(events: Mapping[str, pl.DataFrame], failed: Mapping[int, Failures]) -> pl.DataFrame:
    """Failed start-up checks: from tracebacks, else from bare lines; with `rank`, per attempt."""
    rows = [
        {
            name: row[name]
            for name in ("attempt", "rank", "file", "line", "text", "check", "message")
        }
        for found in failed.values()
        for row in found.rows
        if row["role"] == "rejection"
    ]
    have = {row["attempt"] for row in rows}
    table = events["assertions"].sort("file", "line")
    for row in table.iter_rows(named=True):
        finished = events["iterations"].filter(pl.col("attempt") == row["attempt"]).height
        if row["attempt"] not in have and not finished:
            wanted = ("attempt", "file", "line", "text", "check", "message")
            rows.append({**{name: row[name] for name in wanted}, "rank": row["event_rank"]})
    return pl.DataFrame(
        rows,
        schema={
            "attempt": pl.Int64,
            "rank": pl.Int64,
            "file": pl.Int64,
            "line": pl.Int64,
            "text": pl.String,
            "check": pl.String,
            "message": pl.String,
        },
    )
