"""The SQL that rules may use: tokens, the list of allowed words, and the text made from them.

The text that reaches polars is put together from the checked tokens, so comments, `<=>`, `::` and
whatever else a later SQL dialect learns cannot slip through between them.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hcp_logscan.rules.problem import Mistake, MistakeError, mistake

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

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
FUNCTIONS: Final = frozenset(
    {
        *("ABS", "ROUND", "FLOOR", "CEIL", "NULLIF"),
        *("LOWER", "UPPER", "LENGTH", "STARTS_WITH", "ENDS_WITH"),
        *("ARRAY_LENGTH", "ARRAY_CONTAINS", "COALESCE"),
    }
)
"""What a rule may call; COALESCE only with a `null_reason`."""

# polars counts in unsigned 32 bits: without the cast, `ARRAY_LENGTH(x) - 5` wraps to four billion.
_UNSIGNED: Final = frozenset({"LENGTH", "ARRAY_LENGTH"})
_MAX_DEPTH: Final = 20
_MANY_ROWS: Final = frozenset(
    {
        *("SUM", "AVG", "MEAN", "MEDIAN", "COUNT", "MIN", "MAX", "STDDEV", "STDEV", "VARIANCE"),
        *("VAR", "FIRST", "LAST", "QUANTILE", "QUANTILE_CONT", "QUANTILE_DISC", "CORR", "COVAR"),
        *("STRING_AGG", "ARRAY_AGG", "GROUP_CONCAT", "LISTAGG"),
        *("OVER", "ROW_NUMBER", "RANK", "DENSE_RANK", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE"),
    }
)
_QUERY_WORDS: Final = frozenset({"SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "EXISTS"})
_ONE_ROW: Final = (
    "use a fact that counts it already (`--explain attempts` lists them), or judge row by row with"
    " `over: iterations`: one row that fires is enough, and `{count}` in the message says how many"
)
RESERVED: Final = frozenset(word.lower() for word in _KEYWORDS | FUNCTIONS)
"""Names that no parameter can have."""


@dataclass(frozen=True, slots=True)
class CheckedSql:
    """One expression of which every word is allowed."""

    text: str
    "For `pl.sql_expr`."

    names: tuple[str, ...]
    "Columns and parameters that it reads, in order of appearance."


@dataclass(frozen=True, slots=True)
class Token:
    """One word of an expression."""

    kind: str
    "`string`, `number`, `sign`, `name`, `keyword` or `function`."

    text: str
    "Keywords and functions in capitals."

    start: int
    end: int
    "Where it stands in the expression, as a slice."

    @property
    def counts(self) -> bool:
        """A call that polars answers with an unsigned number."""
        return self.kind == "function" and self.text in _UNSIGNED

    @property
    def starts_operand(self) -> bool:
        """Where it stands, an operand begins."""
        return (
            self.kind in {"string", "number", "name", "function"}
            or self.text in _CONSTANTS
            or self.text in {"(", "CASE"}
        )

    @property
    def ends_operand(self) -> bool:
        """Where it stands, an operand ends."""
        return (
            self.kind in {"string", "number", "name"}
            or self.text in _CONSTANTS
            or self.text in {")", "END"}
        )


def check(
    sql: str,
    known: Collection[str],
    *,
    nulls_allowed: bool,
    hint: Callable[[str], str] | None = None,
) -> CheckedSql:
    """Check every word of an expression; `known` are the columns and parameters there are.

    `nulls_allowed` unlocks IS NULL, COALESCE and CASE. `hint` says what to do about an unknown
    name. Raises `MistakeError` with every mistake.
    """
    found = tokens(sql)
    if mistakes := list(_mistakes(found, known, hint, nulls_allowed=nulls_allowed)):
        raise MistakeError(mistakes)
    names = dict.fromkeys(token.text for token in found if token.kind == "name")
    return CheckedSql(text_of(found), tuple(names))


def short(sql: str) -> str:
    """The beginning of an expression, for messages."""
    return sql if len(sql) <= 60 else sql[:57] + "..."


def tokens(sql: str) -> list[Token]:
    """The words of an expression. Raises `MistakeError` where a character begins none."""
    found: list[Token] = []
    position = 0
    while position < len(sql):
        match = _TOKEN.match(sql, position)
        if match is None:
            raise mistake(
                f"`{short(sql[position:])}` is not understood at character {position + 1}",
                _unreadable(sql[position:]),
                (position, position + 1),
            )
        if match.lastgroup is not None:
            found.append(_token(match.lastgroup, match[0], sql, position))
        position = match.end()
    return found


def _unreadable(rest: str) -> str:
    """What to do about a character that begins no word."""
    if rest[0] == "'":
        return "close the string: strings stand in single quotes"
    if rest[0] in '"`':
        return "strings stand in single quotes, names are plain"
    if rest.startswith(("--", "/*", "#")):
        return "comments are not allowed; say it under `why`"
    if rest[0] in "{}":
        return "names are plain: fields in braces are for `message`"
    return "strings stand in single quotes, names are plain, comments are not allowed"


def _token(kind: str, text: str, sql: str, start: int) -> Token:
    end = start + len(text)
    if kind != "word":
        return Token(kind, text, start, end)
    capitals = text.upper()
    called = sql[end:].lstrip().startswith("(")
    if capitals in _KEYWORDS and capitals != "COALESCE":
        return Token("keyword", capitals, start, end)
    return Token("function", capitals, start, end) if called else Token("name", text, start, end)


def _mistakes(
    found: Sequence[Token],
    known: Collection[str],
    hint: Callable[[str], str] | None,
    *,
    nulls_allowed: bool,
) -> Iterator[Mistake]:
    depth = 0
    for position, token in enumerate(found):
        span = (token.start, token.end)
        before = found[position - 1] if position else None
        following = tuple(one.text for one in found[position + 1 : position + 3])
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth > _MAX_DEPTH:
            yield Mistake(
                f"parentheses nest deeper than {_MAX_DEPTH}", "simplify the expression", span
            )
            return
        if token.kind == "function" and token.text not in FUNCTIONS:
            yield _function(token, span)
        elif token.kind == "name" and token.text not in known:
            yield _name(token, known, hint)
        elif before is not None and before.ends_operand and token.starts_operand:
            # SQL would read the second of two operands as an alias and ignore it.
            yield Mistake(
                f"an operator is missing between `{before.text}` and `{token.text}`",
                "write AND, OR or a comparison there",
                span,
            )
        if token.text == "/" and following[:1] != ("NULLIF",):
            yield Mistake(
                "`/` needs NULLIF",
                "write a / NULLIF(b, 0), because x/0 is infinity and would fire",
                span,
            )
        if token.text in _NULL_WORDS and not nulls_allowed:
            yield Mistake(
                f"{token.text} turns a fact that was not observed into an answer",
                "drop it, or say under `null_reason` why that is right",
                span,
            )
        elif token.text == "IS" and not (
            following[:1] == ("NULL",) or following == ("NOT", "NULL")
        ):
            yield Mistake("IS is only allowed as IS NULL and IS NOT NULL", "compare with `=`", span)
        after_is = before is not None and before.text == "IS"
        if token.text == "NOT" and following[:1] == ("NULL",) and not after_is:
            yield Mistake("NOT NULL is no test", "write IS NOT NULL, with a `null_reason`", span)


def _function(token: Token, span: tuple[int, int]) -> Mistake:
    if token.text in _MANY_ROWS:
        return Mistake(
            f"function {token.text} is not allowed: it looks at many rows, and a rule judges each"
            " row by itself",
            _ONE_ROW,
            span,
        )
    near = difflib.get_close_matches(token.text, FUNCTIONS, n=1)
    meant = f"did you mean {near[0]}? There are" if near else "use one of"
    return Mistake(
        f"function {token.text} is not allowed", f"{meant} {', '.join(sorted(FUNCTIONS))}", span
    )


def _name(token: Token, known: Collection[str], hint: Callable[[str], str] | None) -> Mistake:
    span = (token.start, token.end)
    if token.text.upper() in _QUERY_WORDS | _MANY_ROWS:
        return Mistake(
            f"`{token.text}` is neither a fact nor a parameter here, and a rule is one expression:"
            " it holds no query",
            _ONE_ROW,
            span,
        )
    move = hint(token.text) if hint is not None else near_name(token.text, known)
    return Mistake(f"`{token.text}` is neither a fact nor a parameter here", move, span)


def text_of(found: Iterable[Token]) -> str:
    """SQL of checked tokens: names quoted, lengths cast to signed numbers."""
    words: list[str] = []
    casts: list[bool] = []
    before: Token | None = None
    for token in found:
        if token.text == "(":
            casts.append(before is not None and before.counts)
        if token.counts:
            words.append("CAST (")
        # Quoted, a parameter may be called `limit` or `window`.
        words.append(f'"{token.text}"' if token.kind == "name" else token.text)
        if token.text == ")" and casts and casts.pop():
            words.append("AS BIGINT )")
        before = token
    return " ".join(words)


def near_name(word: str, known: Iterable[str]) -> str:
    """`did you mean ...?`, or nothing where no known word is near."""
    near = difflib.get_close_matches(word[:60].lower(), list(known), n=3)
    return f"did you mean {' or '.join(f'`{one}`' for one in near)}?" if near else ""
