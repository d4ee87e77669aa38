"""Small rule files for the tests of this folder."""

from __future__ import annotations

import copy

import yaml

RULE = {
    "id": "USR001",
    "name": "cp-too-big",
    "summary": "the CP size is above the limit",
    "severity": "warning",
    "confidence": "high",
    "over": "attempts",
    "params": {"limit": 8},
    "when": "cp_size > limit",
    "message": "CP size {cp_size} is above {limit}.",
    "why": "It is slow.",
    "fix": "Lower it.",
    "examples": [
        {"name": "above", "outcome": "fires", "facts": {"cp_size": 9}},
        {"name": "at the limit", "outcome": "clean", "facts": {"cp_size": 8}},
        {"name": "not logged", "outcome": "inconclusive", "facts": {}},
    ],
}


def rule_data(**changes):
    """The small rule with some fields replaced; a field set to None is left out."""
    data = copy.deepcopy(RULE) | changes
    return {name: value for name, value in data.items() if value is not None}


def write(directory, file=None, **changes):
    """Write the small rule, changed, under the name that it should have; return the path."""
    data = rule_data(**changes)
    path = directory / (file or f"{data['id']}-{data['name']}.yaml")
    path.write_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path
