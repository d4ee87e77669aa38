"""Problem: one thing that is wrong with a rule file, as its author needs to hear it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hcp_logscan.model.errors import RuleError
from hcp_logscan.model.safe import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with one value, by whoever checks it: the file is not known there."""

    what: str
    move: str = ""
    "What the author does next."

    span: tuple[int, int] | None = None
    "Characters of the value that are meant, as a slice; None means all of it."

    def __str__(self) -> str:
        return f"{self.what}; {self.move}" if self.move else self.what


class MistakeError(RuleError):
    """Mistakes in one value."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes: tuple[Mistake, ...] = tuple(mistakes)
        super().__init__("; ".join(str(one) for one in self.mistakes))


def mistake(what: str, move: str = "", span: tuple[int, int] | None = None) -> MistakeError:
    """An error of one mistake, to be raised."""
    return MistakeError([Mistake(what, move, span)])


def mistakes_of(error: RuleError) -> tuple[Mistake, ...]:
    """What an error says, also where it only has a text."""
    return error.mistakes if isinstance(error, MistakeError) else (Mistake(str(error)),)


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake with its place in a file."""

    where: str
    "`file:line:column`, `file:line` or `file`, as far as it is known."

    what: str
    move: str = ""
    excerpt: tuple[str, ...] = ()
    "Lines of the file that are meant, with a mark under the place."

    line: int = 0
    "To sort by; 0 where it is about the file."

    def __str__(self) -> str:
        # Names and values of a rule stand in it, and it goes to terminals as it is.
        return one_line(f"{self.where}: {Mistake(self.what, self.move)}")


class RuleFileError(RuleError):
    """Everything that is wrong with one or more rule files; one line each as text."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(str(one) for one in self.problems))
