"""An expression taken apart at its AND and OR: why it came out as it did, operand by operand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hcp_logscan.rules import sql as sql_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hcp_logscan.rules.sql import Token


@dataclass(frozen=True, slots=True)
class Part:
    """One operand, or a group of them."""

    source: str
    "As its author wrote it, on one line."

    sql: str
    "For `pl.sql_expr`."

    span: tuple[int, int]
    "Characters of the whole expression, as a slice."

    names: tuple[str, ...]
    "Facts and parameters that it reads."

    join: Literal["AND", "OR"] | None = None
    "What stands between its parts; None for an operand, which has none."

    parts: tuple[Part, ...] = ()

    def leaves(self) -> Iterator[Part]:
        """The operands in it, itself if it is one."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()


def split(sql: str) -> Part:
    """The parts of an expression whose words have been checked; groups in parentheses, too."""
    return _part(sql, sql_words.tokens(sql))


def _part(sql: str, tokens: Sequence[Token]) -> Part:
    inner = _bare(tokens)
    span = (tokens[0].start, tokens[-1].end) if tokens else (0, len(sql))
    source = _one_line(sql, tokens)
    names = tuple(dict.fromkeys(one.text for one in tokens if one.kind == "name"))
    text = sql_words.text_of(tokens)
    joins: tuple[Literal["OR", "AND"], ...] = ("OR", "AND")  # OR binds less: it is the outer one
    for join in joins:
        pieces = _pieces(inner, join)
        if len(pieces) > 1 and all(pieces):
            parts = tuple(_part(sql, piece) for piece in pieces)
            return Part(source, text, span, names, join, parts)
    return Part(source, text, span, names)


def _one_line(sql: str, tokens: Sequence[Token]) -> str:
    """The words as written, with one blank for any white space between them."""
    words: list[str] = []
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        apart = following is not None and following.start > token.end
        words.append(sql[token.start : token.end] + (" " if apart else ""))
    return "".join(words)


def _bare(tokens: Sequence[Token]) -> Sequence[Token]:
    """Without the parentheses around all of it."""
    while len(tokens) > 2 and tokens[0].text == "(" and _closing(tokens) == len(tokens) - 1:
        tokens = tokens[1:-1]
    return tokens


def _closing(tokens: Sequence[Token]) -> int:
    """Index of the parenthesis that closes the first one."""
    depth = 0
    for index, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0:
            return index
    return -1


def _pieces(tokens: Sequence[Token], join: str) -> list[list[Token]]:
    """The tokens cut at this word, where no parenthesis and no CASE is open."""
    pieces: list[list[Token]] = [[]]
    depth = betweens = 0
    for token in tokens:
        depth += {"(": 1, "CASE": 1, ")": -1, "END": -1}.get(token.text, 0)
        betweens += depth == 0 and token.text == "BETWEEN"
        if depth == 0 and token.kind == "keyword" and token.text == join:
            if join == "AND" and betweens:  # `x BETWEEN 1 AND 2` is one operand
                betweens -= 1
            else:
                pieces.append([])
                continue
        pieces[-1].append(token)
    return pieces
