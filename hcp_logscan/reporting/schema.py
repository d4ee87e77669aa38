"""The JSON Schema of the JSON report, as shipped in the package."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Final

SCHEMA_FILE: Final = "report.v1.schema.json"


def load_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) as plain JSON values."""
    text = files("hcp_logscan.reporting").joinpath(SCHEMA_FILE).read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
