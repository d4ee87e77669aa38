"""A walk over a report that puts other texts in the place of its texts, whatever its fields are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

_STAMP: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?$"
"""Nothing but a time stamp, of which a series has a million: it tells nobody's name or secret."""

Lines = tuple[tuple[int, str], ...]
"""Numbered lines, as in `Location.context`."""


class Visitor(Protocol):
    """What a walk does with texts."""

    def text(self, text: str) -> str:
        """What stands for a text."""

    def lines(self, lines: Lines) -> Lines:
        """What stands for neighbouring lines: as many, with the same numbers."""

    def value(self, name: str, value: str) -> str:
        """What stands for the value of a setting or fact of this name."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk over dataclasses, containers and polars data; it rebuilds only what changes."""

    visitor: Visitor

    def walk(self, value: Any) -> Any:
        """The same value with other texts; the very same object where no text changes."""
        if isinstance(value, str):
            return _kept(value, self.visitor.text(value))
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if is_dataclass(value) and not isinstance(value, type):
            return self._record(value)
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, (tuple, list)):
            return self._sequence(value)
        if isinstance(value, AbstractSet):
            items = sorted(value, key=repr)
            new = [self.walk(item) for item in items]
            return type(value)(new) if _differ(items, new) else value  # type: ignore[call-arg]
        if hasattr(value, "get_columns"):
            return self._frame(value)
        return self._series(value) if hasattr(value, "to_list") else value

    def _record(self, value: Any) -> Any:
        old = {field.name: getattr(value, field.name) for field in fields(value)}
        new = {name: self.walk(item) for name, item in old.items() if name != "value"}
        if "value" in old:
            new["value"] = self._named(old.get("key"), old["value"])
        changed = {name: item for name, item in new.items() if item is not old[name]}
        return replace(value, **changed) if changed else value

    def _named(self, name: Any, value: Any) -> Any:
        if isinstance(name, str) and isinstance(value, str):
            return _kept(value, self.visitor.value(name, value))
        if isinstance(name, str) and isinstance(value, (tuple, list)) and value:
            new = [self._named(name, item) for item in value]
            return type(value)(new) if _differ(value, new) else value
        return self.walk(value)

    def _mapping(self, value: Mapping[Any, Any]) -> Mapping[Any, Any]:
        new = {self.walk(key): self._named(key, item) for key, item in value.items()}
        same = not _differ(value, new) and not _differ(value.values(), new.values())
        return value if same else new

    def _sequence(self, value: Sequence[Any]) -> Any:
        if isinstance(value, tuple) and value and all(map(_is_line, value)):
            return _kept(value, self.visitor.lines(value))
        new = [self.walk(item) for item in value]
        return type(value)(new) if _differ(value, new) else value  # type: ignore[call-arg]

    def _frame(self, frame: pl.DataFrame) -> pl.DataFrame:
        frame = self._settings(frame)
        changed = [new for old in frame.get_columns() if (new := self._series(old)) is not old]
        return frame.with_columns(changed) if changed else frame

    def _settings(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Values in a column `value` are named by the column `key`, as in a record."""
        import polars as pl

        if not all(frame.schema.get(name) == pl.String for name in ("key", "value")):
            return frame
        pairs = frame.select("key", "value").drop_nulls().unique(maintain_order=True).rows()
        new = [(*pair, shown) for pair in pairs if (shown := self._named(*pair)) is not pair[1]]
        if not new:
            return frame
        shown = pl.DataFrame(new, schema=["key", "value", "_shown"], orient="row")
        joined = frame.join(shown, on=["key", "value"], how="left", maintain_order="left")
        return joined.with_columns(value=pl.coalesce("_shown", "value")).drop("_shown")

    def _series(self, series: pl.Series) -> pl.Series:
        import polars as pl

        if series.dtype == pl.String:
            texts = series.drop_nulls().unique(maintain_order=True)
            named = texts.filter(~texts.str.contains(_STAMP)).to_list()
            new = {text: shown for text in named if (shown := self.walk(text)) is not text}
            return series.replace(new) if new else series
        categories = isinstance(series.dtype, (pl.Categorical, pl.Enum))
        if not categories and not series.dtype.is_nested():
            return series
        old = series.to_list()
        changed = [self.walk(item) for item in old]
        dtype = series.dtype if series.dtype.is_nested() else pl.String
        return pl.Series(series.name, changed, dtype=dtype) if _differ(old, changed) else series


def _is_line(value: Any) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and isinstance(value[0], int)
        and isinstance(value[1], str)
    )


def _kept(old: Any, new: Any) -> Any:
    """The old object where the new one equals it."""
    return old if new == old else new


def _differ(old: Iterable[Any], new: Iterable[Any]) -> bool:
    return any(a is not b for a, b in zip(old, new, strict=True))
