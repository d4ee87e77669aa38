"""Event tables file by file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl


class ByFile:
    """Event tables cut by file, each in one pass: a run has thousands of files."""

    def __init__(self, tables: Mapping[str, pl.DataFrame]) -> None:
        self._tables = tables
        self._parts: dict[str, dict[object, pl.DataFrame]] = {}

    def rows(self, table: str, file: int) -> pl.DataFrame:
        """The rows of one file in one table."""
        if table not in self._parts:
            parts = self._tables[table].partition_by("file", as_dict=True, maintain_order=True)
            self._parts[table] = {key[0]: part for key, part in parts.items()}
        found = self._parts[table].get(file)
        return self._tables[table].clear() if found is None else found

    def all_rows(self, file: int) -> dict[str, pl.DataFrame]:
        """The rows of one file in every table."""
        return {table: self.rows(table, file) for table in self._tables}
