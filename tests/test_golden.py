"""What users rely on does not change unnoticed: `make golden` writes the files again, to be reviewed.

Add to these interfaces, and never rename: a line that vanishes from a file of tests/golden breaks
somebody's job, script or dashboard.
"""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hcp_logscan
from hcp_logscan.reporting.schema import load_schema, load_triage_schema
from hcp_logscan.rules.load import load_rules

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"
STRUCTURE = frozenset({"properties", "items", "$defs", "additionalProperties"})
SAID = frozenset({"description", "title", "$comment"})


def help_text():
    return subprocess.run(
        [sys.executable, "-m", "hcp_logscan", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)},
    ).stdout


def flat(schema, path=""):
    """A line for each member: where it is, and everything that is demanded of it but its words."""
    own = {key: schema[key] for key in sorted(schema) if key not in STRUCTURE | SAID}
    yield f"{path or '.'} {json.dumps(own, ensure_ascii=False)}"
    for name, child in schema.get("properties", {}).items():
        yield from flat(child, f"{path}.{name}")
    for name, child in schema.get("$defs", {}).items():
        yield from flat(child, f"{path}#{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        child = schema.get(key)
        if isinstance(child, dict):
            yield from flat(child, f"{path}{mark}")
        elif child is not None:
            yield f"{path}{mark} {json.dumps(child)}"


def rules():
    return "".join(f"{rule.id} {rule.name} {rule.severity}\n" for rule in load_rules())


def python():
    """The public names, and how they are called."""
    lines = []
    for name in sorted(hcp_logscan.__all__):
        found = getattr(hcp_logscan, name)
        if inspect.isfunction(found):
            lines += [f"{name}(", *(f"    {one}," for one in parameters(found)), ")"]
        elif inspect.isclass(found):
            lines.append(f"class {name}({', '.join(base.__name__ for base in found.__bases__)})")
            lines += sorted(
                f"    .{member}" for member in vars(found) if not member.startswith("_")
            )
        else:
            lines.append(name)
    return "\n".join(lines) + "\n"


def parameters(function):
    kinds = {one.kind for one in inspect.signature(function).parameters.values()}
    assert inspect.Parameter.VAR_POSITIONAL not in kinds
    star = False
    for one in inspect.signature(function).parameters.values():
        if one.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            star = True
            yield "*"
        yield str(one)


MADE = {
    "help.txt": help_text,
    "report.v1.schema.txt": lambda: "\n".join(flat(load_schema())) + "\n",
    "triage.v1.schema.txt": lambda: "\n".join(flat(load_triage_schema())) + "\n",
    "rules.txt": rules,
    "python.txt": python,
}


@pytest.mark.parametrize("name", MADE)
def test_interface_is_the_one_that_was_reviewed(name):
    assert MADE[name]() == (GOLDEN / name).read_text(encoding="utf-8"), "make golden, and review it"


def test_no_file_is_left_over():
    assert {path.name for path in GOLDEN.iterdir()} == set(MADE)


def test_a_change_of_a_schema_is_seen():
    schema = load_schema()
    lines = list(flat(schema))
    assert len(lines) > 200
    schema["properties"]["verdict"]["required"] = []
    assert len(set(flat(schema)) ^ set(lines)) == 2


if __name__ == "__main__":
    for name, make in MADE.items():
        (GOLDEN / name).write_text(make(), encoding="utf-8")
