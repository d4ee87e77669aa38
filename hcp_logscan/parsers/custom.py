"""Users' line formats at work: `--formats`. Their patterns run line by line, under a time limit.

Nobody has checked what such a pattern costs. A line that takes longer than `LINE_TIMEOUT_S` is
drift, under a name that says so. After `MAX_TIMEOUTS` of them in one batch of work, or once all its
lines together take too long, the format is switched off there: the rest of its lines are drift,
under a name that says that.
"""

from __future__ import annotations

from time import thread_time
from typing import TYPE_CHECKING, Final

import polars as pl

from hcp_logscan.model import events
from hcp_logscan.model.line_format import LINE_TIMEOUT_S
from hcp_logscan.parsers.base import conform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hcp_logscan.model.line_format import LineFormat, Value

MAX_TIMEOUTS: Final = 5
"""Lines of one batch that may time out before their format is switched off."""

BUDGET_S: Final = 1.0
LINE_BUDGET_S: Final = 0.0005
"""All lines of a batch may take `BUDGET_S`, and so much for each of them: ten times the usual."""

TIMED_OUT: Final = f" (no answer within {LINE_TIMEOUT_S * 1000:.0f} ms)"
SWITCHED_OFF: Final = " (switched off: its pattern is too slow)"


class CustomParser:
    """One format in one batch of work: it counts what its pattern cost, and gives up in time."""

    def __init__(self, form: LineFormat) -> None:
        self.form = form
        self.name: str = form.name
        self.table: str = form.table
        self.needles: tuple[str, ...] = form.needles
        self._timeouts = 0
        self._lines = 0
        self._spent = 0.0

    @property
    def off(self) -> bool:
        """Whether its pattern has cost too much."""
        too_slow = self._spent > BUDGET_S + LINE_BUDGET_S * self._lines
        return too_slow or self._timeouts >= MAX_TIMEOUTS

    def parse(self, lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Rows of the event table, and the lines that are drift, with the `parser` they drift from.

        `lines` has the common columns of every event table.
        """
        answers = [self._values(text) for text in lines["text"].to_list()]
        found = [values for values in answers if isinstance(values, dict)]
        rows = lines.filter(pl.Series([isinstance(one, dict) for one in answers], dtype=pl.Boolean))
        rows = conform(self.table, rows.with_columns(*self._columns(found)))
        drift = pl.Series("parser", [None if isinstance(one, dict) else one for one in answers])
        return rows, lines.with_columns(drift.cast(pl.String)).drop_nulls("parser")

    def _values(self, text: str) -> dict[str, Value] | str | None:
        """What a line gives; or the name under which it is drift, if it is."""
        if self.off:
            return self.name + SWITCHED_OFF
        begun = thread_time()
        try:
            values = self.form.values(text)
        except TimeoutError:
            self._timeouts += 1
            return self.name + TIMED_OUT
        finally:
            self._spent += thread_time() - begun
            self._lines += 1
        return self.name if values is None and self.form.drift else values

    def _columns(self, found: Sequence[dict[str, Value]]) -> list[pl.Series | pl.Expr]:
        schema = events.schema(self.table)
        names = sorted({name for values in found for name in values})
        columns: list[pl.Series | pl.Expr] = [
            pl.Series(name, [values.get(name) for values in found], dtype=schema[name])
            for name in names
        ]
        said = {"producer": self.form.format, "cut": False, "kind": self.form.kind}
        columns += [
            pl.lit(value).alias(name)
            for name, value in said.items()
            if name in schema and value is not None
        ]
        return columns
