"""Rule: what one YAML file of `rules/` says, checked field by field.

Only shapes are checked here. What a rule *means* (its SQL, the facts that it names) is checked by
`expression` and `load`.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 -- pydantic reads annotations at run time
from typing import Annotated, ClassVar, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)

from hcp_logscan.model.finding import (  # noqa: TC001 -- pydantic, as above
    Confidence,
    Outcome,
    Severity,
)
from hcp_logscan.rules.prose import reflow

EVIDENCE_TABLES: Final = (
    "config",
    "iterations",
    "steps",
    "failures",
    "marks",
    "paths",
    "assertions",
    "tracebacks",
    "exits",
    "causes",
    "drift",
    "truncated",
    "unreadable",
    "versions",
    "gpus",
    "checkpoints",
    "group_lines",
    "attention_lines",
    "communicator_lines",
    "printed_groups",
    "dump_groups",
    "dump_entries",
    "dump_states",
    "timeouts",
    "call_sites",
    "mismatches",
    "stragglers",
    "ray_repeats",
    "interleaved",
)
"""Event tables that a rule may name under `evidence`."""

ROW_TABLES: Final = ("iterations", "failures")
"""Fact tables with many rows per attempt: one row that fires is enough."""

MAX_SQL: Final = 2_000
"""Characters of one SQL expression; it also bounds how deep an expression can nest."""

MAX_EXAMPLES: Final = 100
"""Examples of one rule: each is run, and each is compared with the others."""

Over = Literal["attempts", "iterations", "failures", "run"]
Text = Annotated[str, Field(min_length=1, max_length=8_000, pattern=r"\S")]
Prose = Annotated[Text, AfterValidator(reflow)]
Sql = Annotated[str, Field(min_length=1, max_length=MAX_SQL, pattern=r"\S")]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,59}$")]
Finite = Annotated[StrictFloat, Field(allow_inf_nan=False)]
Int64 = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]
Param = StrictBool | Int64 | Finite | StrictStr
"""Type of a rule's parameter: what YAML gives, never converted."""

FactValue = StrictBool | Int64 | StrictFloat | StrictStr | tuple[Int64 | StrictStr, ...] | None


class _Frozen(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")


class Example(_Frozen):
    """One case that a rule is tested on: a log for the whole chain, or facts for the rule alone."""

    name: Text
    outcome: Outcome
    log: Text | None = None
    "Text of one log file."

    facts: Mapping[Name, FactValue] | None = None
    "One row of the rule's fact table; facts that are not listed were not observed."

    @model_validator(mode="after")
    def _exactly_one_input(self) -> Example:
        if (self.log is None) == (self.facts is None):
            raise ValueError("give exactly one of `log` and `facts`")
        return self


class Translation(_Frozen):
    """The texts of a rule in another language."""

    summary: Prose
    message: Prose
    why: Prose
    fix: Prose


class Rule(_Frozen):
    """One rule: when it fires, what it then says, and the examples that prove it."""

    id: Annotated[str, Field(pattern=r"^[A-Z]{2,10}\d{3}$")]
    name: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    summary: Prose
    "One sentence for lists and headlines, without a full stop."

    severity: Severity
    confidence: Confidence
    over: Over
    "The fact table whose rows are judged."

    when: Sql
    "SQL over the facts and params: TRUE fires, FALSE is clean, NULL is inconclusive."

    message: Prose
    "Template of the finding's message; see `template`."

    why: Prose
    fix: Prose
    params: Mapping[Name, Param] = Field(default_factory=dict)
    "Every threshold of `when`, by name."

    ranks: Name | None = None
    "Column (a list or a number) that names the culprits; `rank` for rules over failures."

    iteration: Name | None = None
    "Column with the first iteration concerned; `iteration` for rules over iterations."

    evidence: Mapping[Name, Sql] = Field(default_factory=dict)
    "Event table -> SQL over its columns: matching rows of the same attempt are shown as file:line."

    null_reason: Text | None = None
    "Why it is right that `when` turns an unobserved fact into an answer; unlocks IS NULL and kin."

    false_positives: tuple[Prose, ...] = ()
    references: tuple[Annotated[str, Field(pattern=r"^https?://\S+$")], ...] = ()
    examples: Annotated[tuple[Example, ...], Field(max_length=MAX_EXAMPLES)] = ()
    never: tuple[Outcome, ...] = ()
    "Outcomes that this rule cannot reach, so that no example is asked for."

    never_reason: Text | None = None
    zh: Translation | None = None
    "The texts in Chinese; English where it is missing."

    @model_validator(mode="after")
    def _never_has_a_reason(self) -> Rule:
        if bool(self.never) != bool(self.never_reason):
            raise ValueError("`never` and `never_reason` stand together")
        return self

    @property
    def rank_column(self) -> str | None:
        """Column that names the culprits, the default of the fact table included."""
        return self.ranks or ("rank" if self.over == "failures" else None)

    @property
    def iteration_column(self) -> str | None:
        """Column with the first iteration concerned, the default of the fact table included."""
        return self.iteration or ("iteration" if self.over == "iterations" else None)

    def texts(self, lang: str) -> Translation:
        """Summary, message, why and fix in `lang` ("en" or "zh")."""
        if lang == "zh" and self.zh is not None:
            return self.zh
        return Translation(summary=self.summary, message=self.message, why=self.why, fix=self.fix)
