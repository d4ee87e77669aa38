"""The event tables as a folder of Parquet files, for whatever reads those: polars, pandas, DuckDB.

Each table is one file with the types it has in `Report.tables`. A further file says whose folder it
is, so that a later report may replace it.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.reporting.json import dumps, plain_value

if TYPE_CHECKING:
    from hcp_logscan.model.report import ReportData
    from hcp_logscan.reporting.wishes import Wishes

TABLES_SCHEMA: Final = "hcp-logscan/tables/v1"

CONTENTS: Final = "_hcp_logscan.json"
"""Name of the file that lists the others; readers of whole folders pass over an underscore."""


def render_parquet(data: ReportData, _wishes: Wishes | None = None) -> dict[str, bytes]:
    """File name -> content, one `<table>.parquet` per table of `data.tables` and the contents."""
    files: dict[str, bytes] = {}
    for name, frame in sorted(data.tables.items()):
        file = BytesIO()
        frame.write_parquet(file, compression="zstd")
        files[f"{name}.parquet"] = file.getvalue()
    contents: dict[str, Any] = {
        "schema": TABLES_SCHEMA,
        "tool": {"name": data.tool_name, "version": data.tool_version},
        "run": {"name": data.run.name, "job": data.run.job},
        "redaction": data.redaction.level,
        "tables": {name: frame.height for name, frame in sorted(data.tables.items())},
    }
    files[CONTENTS] = dumps(plain_value(contents)).encode()
    return files
