"""The SQL that rules may use: tokens, the list of allowed words, and the text made from them.

The text that reaches polars is put together from the checked tokens, so comments, `<=>`, `::` and
whatever else a later SQL dialect learns cannot slip through between them.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hcp_logscan.model.errors import RuleError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_TOKEN: Final = re.compile(
    r"\s+"
    r"|(?P<string>'(?:[^']|'')*')"
    r"|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<sign><>|!=|<=|>=|-(?!-)|/(?!\*)|[=<>+*%(),])",
    re.ASCII,
)
_CONSTANTS: Final = frozenset({"TRUE", "FALSE", "NULL"})
_OPERATORS: Final = frozenset({"AND", "OR", "NOT", "LIKE", "ILIKE", "IN", "BETWEEN"})
_NULL_WORDS: Final = frozenset({"IS", "COALESCE", "CASE", "WHEN", "THEN", "ELSE", "END"})
_KEYWORDS: Final = _CONSTANTS | _OPERATORS | _NULL_WORDS
_FUNCTIONS: Final = frozenset(
    {
        *("ABS", "ROUND", "FLOOR", "CEIL", "NULLIF"),
        *("LOWER", "UPPER", "LENGTH", "STARTS_WITH", "ENDS_WITH"),
        *("ARRAY_LENGTH", "ARRAY_CONTAINS", "COALESCE"),
    }
)
# polars counts in unsigned 32 bits: without the cast, `ARRAY_LENGTH(x) - 5` wraps to four billion.
_UNSIGNED: Final = frozenset({"LENGTH", "ARRAY_LENGTH"})
_MAX_DEPTH: Final = 20
RESERVED: Final = frozenset(word.lower() for word in _KEYWORDS | _FUNCTIONS)
"""Names that no parameter can have."""


@dataclass(frozen=True, slots=True)
class CheckedSql:
    """One expression of which every word is allowed."""

    text: str
    "For `pl.sql_expr`."

    names: tuple[str, ...]
    "Columns and parameters that it reads, in order of appearance."


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    "`string`, `number`, `sign`, `name`, `keyword` or `function`."

    text: str
    "Keywords and functions in capitals."

    @property
    def counts(self) -> bool:
        """A call that polars answers with an unsigned number."""
        return self.kind == "function" and self.text in _UNSIGNED

    @property
    def starts_operand(self) -> bool:
        return (
            self.kind in {"string", "number", "name", "function"}
            or self.text in _CONSTANTS
            or self.text in {"(", "CASE"}
        )

    @property
    def ends_operand(self) -> bool:
        return (
            self.kind in {"string", "number", "name"}
            or self.text in _CONSTANTS
            or self.text in {")", "END"}
        )


def check(sql: str, known: Collection[str], *, nulls_allowed: bool) -> CheckedSql:
    """Check every word of an expression; `known` are the columns and parameters there are.

    `nulls_allowed` unlocks IS NULL, COALESCE and CASE. Raises `RuleError`.
    """
    tokens = _tokens(sql)
    _check(tokens, known, nulls_allowed=nulls_allowed)
    names = dict.fromkeys(token.text for token in tokens if token.kind == "name")
    return CheckedSql(_text(tokens), tuple(names))


def short(sql: str) -> str:
    """The beginning of an expression, for messages."""
    return sql if len(sql) <= 60 else sql[:57] + "..."


def _tokens(sql: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    while position < len(sql):
        match = _TOKEN.match(sql, position)
        if match is None:
            raise RuleError(
                f"`{short(sql[position:])}` is not understood at character {position + 1}; "
                "strings stand in single quotes, names are plain, comments are not allowed"
            )
        position = match.end()
        if match.lastgroup is not None:
            tokens.append(_token(match.lastgroup, match[0], sql, position))
    return tokens


def _token(kind: str, text: str, sql: str, end: int) -> _Token:
    if kind != "word":
        return _Token(kind, text)
    capitals = text.upper()
    called = sql[end:].lstrip().startswith("(")
    if capitals in _KEYWORDS and capitals != "COALESCE":
        return _Token("keyword", capitals)
    return _Token("function", capitals) if called else _Token("name", text)


def _check(tokens: Sequence[_Token], known: Collection[str], *, nulls_allowed: bool) -> None:
    depth = 0
    for position, token in enumerate(tokens):
        before = tokens[position - 1] if position else None
        following = tuple(one.text for one in tokens[position + 1 : position + 3])
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth > _MAX_DEPTH:
            raise RuleError(f"parentheses nest deeper than {_MAX_DEPTH}: simplify the expression")
        _check_word(token, known)
        if before is not None and before.ends_operand and token.starts_operand:
            # SQL would read the second of two operands as an alias and ignore it.
            raise RuleError(f"an operator is missing between `{before.text}` and `{token.text}`")
        if token.text == "/" and following[:1] != ("NULLIF",):
            raise RuleError(
                "`/` needs NULLIF: write a / NULLIF(b, 0), because x/0 is infinity and would fire"
            )
        if token.text in _NULL_WORDS and not nulls_allowed:
            raise RuleError(
                f"{token.text} turns a fact that was not observed into an answer: drop it, "
                "or say under `null_reason` why that is right"
            )
        if token.text == "IS" and not (following[:1] == ("NULL",) or following == ("NOT", "NULL")):
            raise RuleError("IS is only allowed as IS NULL and IS NOT NULL")
        after_is = before is not None and before.text == "IS"
        if token.text == "NOT" and following[:1] == ("NULL",) and not after_is:
            raise RuleError("write IS NOT NULL, with a `null_reason`")


def _check_word(token: _Token, known: Collection[str]) -> None:
    if token.kind == "function" and token.text not in _FUNCTIONS:
        raise RuleError(
            f"function {token.text} is not allowed; use one of {', '.join(sorted(_FUNCTIONS))}"
        )
    if token.kind == "name" and token.text not in known:
        raise RuleError(
            f"`{token.text}` is neither a fact nor a parameter here{_hint(token.text, known)}"
        )


def _text(tokens: Sequence[_Token]) -> str:
    """SQL of the checked tokens: names quoted, lengths cast to signed numbers."""
    words: list[str] = []
    casts: list[bool] = []
    for before, token in zip([None, *tokens[:-1]], tokens, strict=True):
        if token.text == "(":
            casts.append(before is not None and before.counts)
        if token.counts:
            words.append("CAST (")
        # Quoted, a parameter may be called `limit` or `window`.
        words.append(f'"{token.text}"' if token.kind == "name" else token.text)
        if token.text == ")" and casts and casts.pop():
            words.append("AS BIGINT )")
    return " ".join(words)


def _hint(word: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean `{near[0]}`?" if near else ""
