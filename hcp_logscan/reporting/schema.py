"""The JSON Schemas of the JSON report and of the triage of several runs, as shipped."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Final

SCHEMA_FILE: Final = "report.v1.schema.json"
TRIAGE_SCHEMA_FILE: Final = "triage.v1.schema.json"


def load_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) as plain JSON values."""
    return _load(SCHEMA_FILE)


def load_triage_schema() -> dict[str, Any]:
    """That of the triage document, with the report's in it: complete in itself."""
    schema = _load(TRIAGE_SCHEMA_FILE)
    return {**schema, "$defs": {"report": load_schema()}}


def _load(name: str) -> dict[str, Any]:
    text = files("hcp_logscan.reporting").joinpath(name).read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
