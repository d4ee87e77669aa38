"""Chart geometry: series of the iterations table as plotly traces and as static SVG shapes.

Long series are reduced so that the lowest and the highest value of every stretch survive: a
spike of one iteration stays visible in a run of a million.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import median_low
from typing import TYPE_CHECKING, Any, Final, Literal

from hcp_logscan.reporting import baseline, peak, words
from hcp_logscan.reporting.limitline import LimitLine, limit_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from hcp_logscan.model.report import ReportData
    from hcp_logscan.reporting.peak import Limit

MAX_POINTS: Final = 2_000
"""Points of one interactive trace."""

SVG_POINTS: Final = 480
"""Points of one static line: the drawing is about as many units wide."""

TREND_POINTS: Final = 160
"""Points of the line of medians that long series get."""

MAX_MARKS: Final = 100
"""Marks for missing values of one attempt and chart; more are counted in the note."""

MAX_ABOVE: Final = 60
"""Marks for values above the peak, of one attempt; the caption counts them all."""

_ALL_TRACES: Final = 40_000
_ALL_SVG: Final = 3_000
_MANY_MARKERS: Final = 120
COLOURS: Final = 6
_BASELINE_COLOUR: Final = COLOURS
"""A colour of its own, which no attempt has."""

_BASELINE_DASHES: Final = ("dash", "6 3")
_DASHES: Final = ("solid", "dash", "dot", "dashdot")
_SVG_DASHES: Final = ("", "7 4", "2 4", "7 4 2 4")
_LEGEND: Final = 9

Point = tuple[float, float | None]
"""Iteration and value; None is a gap."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One series of one attempt."""

    attempt: int
    name: str
    points: tuple[Point, ...]
    svg_points: tuple[Point, ...]
    trend: tuple[Point, ...]
    "Medians of stretches; empty where every point is drawn."

    missing: tuple[float, ...]
    "Iterations whose line lacks the field although others have it."

    not_finite: tuple[float, ...]
    "Iterations that printed NaN or Inf."

    logged: int
    baseline: bool = False
    "The baseline's series, laid over those of the attempts."


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick with its label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Line:
    """One unbroken stretch of a line."""

    points: str
    colour: int
    dash: str
    wide: bool
    "A line of extremes, drawn thin behind the line of medians."


@dataclass(frozen=True, slots=True)
class Dot:
    """A lone value, or a mark for a missing one."""

    x: float
    y: float
    colour: int


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of the legend."""

    label: str
    colour: int
    dash: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Svg:
    """Everything the SVG macro loops over, in drawing units."""

    width: int
    height: int
    left: float
    right: float
    top: float
    bottom: float
    middle: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[Line, ...]
    dots: tuple[Dot, ...]
    missing: tuple[Dot, ...]
    not_finite: tuple[Dot, ...]
    keys: tuple[Key, ...]
    limit: LimitLine | None
    above: tuple[Dot, ...]
    "Marks on values above the limit."

    x_range: tuple[float, float]
    y_range: tuple[float, float] | None
    "In the scaled unit of the axis; None where there is no value."


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart: a title with its unit, the story in words, and two ways to draw it."""

    key: str
    title: str
    unit: str
    log_scale: bool
    traces: tuple[Trace, ...]
    caption: str
    notes: tuple[str, ...]
    svg: Svg
    plot: dict[str, Any]
    "What the script hands to plotly, plain JSON values."


@dataclass(frozen=True, slots=True)
class _Kind:
    key: str
    column: str
    title: str
    unit: str
    noun: str
    show: Callable[[float | None], str]


KINDS: Final = (
    _Kind("tflops", "tflops_per_gpu", "Throughput", "TFLOP/s/GPU", "throughput", words.fixed),
    _Kind("loss", "lm_loss", "Loss", "lm loss", "loss", words.loss),
    _Kind("step", "step_ms", "Step time", "ms", "step time", words.fixed),
    _Kind("grad", "grad_norm", "Gradient norm", "norm", "gradient norm", words.loss),
)


def charts(data: ReportData) -> tuple[Chart, ...]:
    """The charts that have something to show, in reading order."""
    rows = _attempt_rows(data.iterations)
    found = (_chart(kind, data, rows) for kind in KINDS)
    return tuple(chart for chart in found if chart is not None)


def downsample(points: Sequence[Point], limit: int) -> tuple[Point, ...]:
    """At most `limit` points: first, last, and the extremes of equal stretches between them.

    A stretch without any value becomes one gap.
    """
    if len(points) <= limit:
        return tuple(points)
    inner = points[1:-1]
    stretches = max((limit - 2) // 2, 1)
    kept: list[Point] = [points[0]]
    for number in range(stretches):
        start = number * len(inner) // stretches
        stretch = inner[start : (number + 1) * len(inner) // stretches]
        valued = [(y, at) for at, (_, y) in enumerate(stretch) if y is not None]
        if valued:
            kept.extend(stretch[at] for at in sorted({min(valued)[1], max(valued)[1]}))
        elif stretch:
            kept.append(stretch[0])
    return (*kept, points[-1])


def trend(points: Sequence[Point]) -> tuple[Point, ...]:
    """Medians of equal stretches, each at the middle of its stretch; gaps stay gaps."""
    stretches = min(TREND_POINTS, len(points))
    found: list[Point] = []
    for number in range(stretches):
        start = number * len(points) // stretches
        stretch = points[start : (number + 1) * len(points) // stretches]
        values = [y for _, y in stretch if y is not None]
        middle = stretch[len(stretch) // 2][0]
        found.append((middle, median_low(values) if values else None))
    return tuple(found)


def _attempt_rows(frame: pl.DataFrame) -> dict[int, dict[str, list[Any]]]:
    """Columns per attempt, in iteration order; step lines without a number keep line order."""
    if frame.is_empty() or "attempt" not in frame.columns:
        return {}
    wanted = [kind.column for kind in KINDS if kind.column in frame.columns]
    rows: dict[int, dict[str, list[Any]]] = {}
    for (attempt,), part in sorted(frame.partition_by("attempt", as_dict=True).items()):
        numbered = part
        if "iteration" in part.columns and part["iteration"].null_count() < part.height:
            numbered = part.drop_nulls("iteration").sort("iteration", maintain_order=True)
            xs = numbered["iteration"].to_list()
        else:
            xs = list(range(1, part.height + 1))
        rows[int(str(attempt))] = {"x": xs, **{c: numbered[c].to_list() for c in wanted}}
    return rows


def _chart(kind: _Kind, data: ReportData, rows: dict[int, dict[str, list[Any]]]) -> Chart | None:
    logged = {
        attempt: (columns["x"], columns[kind.column])
        for attempt, columns in rows.items()
        if any(value is not None for value in columns.get(kind.column, ()))
    }
    if not logged:
        return None
    beside = baseline.points(
        data.comparison, kind.column, [x for xs, _ in logged.values() for x in xs]
    )
    shares = len(logged) + (beside is not None)
    traces = tuple(_trace(n, xs, ys, shares) for n, (xs, ys) in logged.items())
    values = [y for trace in traces for _, y in trace.points if y is not None]
    over = () if beside is None else (_baseline_trace(*beside, shares),)
    if over and len(traces) == 1:
        traces = (replace(traces[0], name="this run"),)
    held = [*values, *(y for trace in over for _, y in trace.points if y is not None)]
    log_scale = _wants_log(held)
    unit = f"{kind.unit}, log scale" if log_scale else kind.unit
    limit = peak.limit(data.peak) if kind.key == "tflops" else None
    drawn = limit if limit and peak.fits(limit, values, log_scale=log_scale) else None
    notes = _notes(kind, data, rows, traces)
    if kind.key == "tflops":
        whole = [y for _, ys in logged.values() for y in ys if _drawable(y)]
        notes = [*peak.notes(data, whole, drawn), *notes]
    if over and data.comparison is not None:
        notes.append(baseline.caption(data.comparison, kind.column))
    above = [_above(trace.points, limit, MAX_ABOVE) for trace in traces]
    svg = _svg((*traces, *over), held, limit=limit, drawn=drawn, log_scale=log_scale)
    return Chart(
        key=kind.key,
        title=kind.title,
        unit=unit,
        log_scale=log_scale,
        traces=traces,
        caption=_caption(kind, values, len(traces)),
        notes=tuple(notes),
        svg=svg,
        plot=_plot(kind, (*traces, *over), unit, log_scale=log_scale) | _axes(svg, drawn, above),
    )


def _above(points: Sequence[Point], limit: Limit | None, most: int) -> tuple[Point, ...]:
    """Points beyond the limit, at most so many."""
    if limit is None:
        return ()
    return downsample([p for p in points if p[1] is not None and p[1] > limit.tflops], most)


def _axes(svg: Svg, drawn: Limit | None, above: Sequence[Sequence[Point]]) -> dict[str, Any]:
    """Axes and limit as the script draws them: those of the still drawing."""
    line = svg.limit
    marked = [point for points in above for point in points]
    return {
        "xs": svg.x_range,
        "ys": svg.y_range,
        "limit": None
        if line is None or drawn is None
        else {
            "y": _six(drawn.tflops),
            "label": line.label,
            "dash": "dash" if line.dash else "solid",
            "at": line.anchor,
            "over": line.above,
        },
        "above": {"x": [x for x, _ in marked], "y": [_six(y) for _, y in marked]},
    }


def _trace(attempt: int, xs: list[Any], ys: list[Any], shares: int) -> Trace:
    points = [(x, y if _drawable(y) else None) for x, y in zip(xs, ys, strict=True)]
    small = min(SVG_POINTS, max(_ALL_SVG // shares, 12))
    return Trace(
        attempt=attempt,
        name=f"attempt {attempt}",
        points=downsample(points, min(MAX_POINTS, max(_ALL_TRACES // shares, 20))),
        svg_points=downsample(points, small),
        trend=trend(points) if len(points) > SVG_POINTS <= small else (),
        missing=tuple(x for x, y in zip(xs, ys, strict=True) if y is None),
        not_finite=tuple(
            x for x, y in zip(xs, ys, strict=True) if y is not None and not _drawable(y)
        ),
        logged=len(points),
    )


def _baseline_trace(name: str, xs: list[Any], ys: list[Any], shares: int) -> Trace:
    """The baseline as one line: its medians where they are enough."""
    found = _trace(-1, xs, ys, shares)
    course = found.trend or found.points
    return replace(
        found,
        name=f"{name}, medians" if found.trend else name,
        points=course,
        svg_points=found.trend or found.svg_points,
        trend=(),
        missing=(),
        not_finite=(),
        baseline=True,
    )


def _look(number: int, trace: Trace) -> tuple[int, str, str]:
    """Colour, and dashes of the script and of the still drawing."""
    if trace.baseline:
        return (_BASELINE_COLOUR, *_BASELINE_DASHES)
    style = number // COLOURS % len(_DASHES)
    return number % COLOURS, _DASHES[style], _SVG_DASHES[style]


def _drawable(value: float | None) -> bool:
    """Finite, and small enough that differences do not overflow."""
    return value is not None and math.isfinite(value) and abs(value) < 1e100


_LOG_FLOOR: Final = 1e-300
"""Below it a tick under the least value would be zero."""


def _wants_log(values: list[float]) -> bool:
    """One slow first iteration or one spike must not flatten the rest of the line."""
    if len(values) < 3 or min(values) < _LOG_FLOOR:
        return False
    return max(values) > 10 * sorted(values)[len(values) // 2]


def _caption(kind: _Kind, values: list[float], attempts: int) -> str:
    if not values:
        return f"No finite {kind.noun} was printed."
    where = f" over {attempts} attempts" if attempts > 1 else ""
    unit = f" {kind.unit}" if kind.unit in {"ms", "TFLOP/s/GPU"} else ""
    first, last = kind.show(values[0]), kind.show(values[-1])
    low, high = kind.show(min(values)), kind.show(max(values))
    return f"First {first}, last {last}, lowest {low}, highest {high}{unit}{where}."


def _notes(
    kind: _Kind,
    data: ReportData,
    rows: dict[int, dict[str, list[Any]]],
    traces: tuple[Trace, ...],
) -> list[str]:
    notes: list[str] = []
    if any(trace.logged > len(trace.svg_points) for trace in traces):
        logged = sum(trace.logged for trace in traces)
        still = max(len(trace.svg_points) for trace in traces)
        live = max(len(trace.points) for trace in traces)
        notes.append(
            f"{logged:,} logged iterations, reduced to at most {still:,} points per line"
            + (f" ({live:,} where the chart is interactive)" if live > still else "")
            + "; the lowest and highest value of every stretch are kept"
            + (", and a line shows the medians." if any(trace.trend for trace in traces) else ".")
        )
    for name, found in (
        (f"without a printed {kind.noun}", [x for t in traces for x in t.missing]),
        ("with NaN or Inf", [x for t in traces for x in t.not_finite]),
    ):
        if found:
            first = min(found)
            notes.append(
                f"{words.plural(len(found), 'line')} {name}, the first at iteration {first:,}."
            )
    silent = len(set(rows) - {trace.attempt for trace in traces})
    if silent and len(data.attempts) > 1:
        notes.append(f"{words.plural(silent, 'attempt')} printed no {kind.noun} at all.")
    return notes


def _six(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _plot(kind: _Kind, traces: tuple[Trace, ...], unit: str, *, log_scale: bool) -> dict[str, Any]:
    series = [
        {
            "name": name,
            "x": [x for x, _ in points],
            "y": [_six(y) for _, y in points],
            "mode": "lines" if trace.baseline else _mode(points),
            "colour": _look(number, trace)[0],
            "dash": _look(number, trace)[1],
            "wide": wide,
        }
        for number, trace in enumerate(traces)
        for name, points, wide in (
            (
                f"{trace.name}, extremes" if trace.trend else trace.name,
                trace.points,
                bool(trace.trend),
            ),
            (f"{trace.name}, medians", trace.trend, False),
        )
        if points
    ]
    marks = [
        {"name": name, "symbol": symbol, "x": xs[:MAX_MARKS]}
        for name, symbol, xs in (
            (
                f"no {kind.noun} printed",
                "triangle-up",
                [x for t in traces for x in _starts(t.missing)],
            ),
            ("NaN or Inf", "x", [x for t in traces for x in _starts(t.not_finite)]),
        )
        if xs
    ]
    return {"key": kind.key, "unit": unit, "log": log_scale, "series": series, "marks": marks}


def _mode(points: Sequence[Point]) -> Literal["lines", "markers", "lines+markers"]:
    gaps = sum(y is None for _, y in points)
    if len(points) <= _MANY_MARKERS:
        return "lines+markers"
    return "markers" if gaps * 5 > len(points) else "lines"


def _starts(xs: tuple[float, ...]) -> list[float]:
    """The first of each run of neighbours."""
    return [x for at, x in enumerate(xs) if at == 0 or x - xs[at - 1] > 1]


_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 480, 62.0, 470.0, 14.0, 204.0


def _svg(
    traces: tuple[Trace, ...],
    values: list[float],
    *,
    limit: Limit | None,
    drawn: Limit | None,
    log_scale: bool,
) -> Svg:
    """The still drawing; the axis holds the limit only where it is `drawn`."""
    xs = [x for trace in traces for x, _ in trace.svg_points]
    x_low, x_high = min(xs), max(xs)
    held = [*values, drawn.tflops] if drawn else values
    y_ticks = log_ticks(held) if log_scale else linear_ticks(held)
    low, high = _scaled(y_ticks[0], log=log_scale), _scaled(y_ticks[-1], log=log_scale)
    if values:
        low = min(low, _scaled(min(values), log=log_scale))
        high = max(high, _scaled(max(values), log=log_scale))

    def place(x: float) -> float:
        share = (x - x_low) / (x_high - x_low) if x_high > x_low else 0.5
        return round(_LEFT + share * (_RIGHT - _LEFT), 1)

    def height(y: float) -> float:
        share = (_scaled(y, log=log_scale) - low) / (high - low) if high > low else 0.5
        return round(_BOTTOM - share * (_BOTTOM - _TOP), 1)

    lines: list[Line] = []
    dots: list[Dot] = []
    courses: list[list[tuple[float, float]]] = []
    for number, trace in enumerate(traces):
        colour, _, dash = _look(number, trace)
        for points, wide in ((trace.svg_points, bool(trace.trend)), (trace.trend, False)):
            for stretch in _stretches(points):
                course = [(place(x), height(y)) for x, y in stretch]
                courses.append(course)
                if len(course) == 1:
                    dots.append(Dot(*course[0], colour))
                else:
                    path = " ".join(f"{x:g},{y:g}" for x, y in course)
                    lines.append(Line(path, colour, dash, wide))
    keys = _keys(traces)
    return Svg(
        width=_WIDTH,
        height=int(keys[-1].y if keys else _BOTTOM + 38) + 8,
        left=_LEFT,
        right=_RIGHT,
        top=_TOP,
        bottom=_BOTTOM,
        middle=(_LEFT + _RIGHT) / 2,
        x_ticks=tuple(Tick(place(x), f"{x:,.0f}") for x in whole_ticks(x_low, x_high)),
        y_ticks=tuple(Tick(height(y), _label(y)) for y in y_ticks if values),
        lines=tuple(lines),
        dots=tuple(dots),
        missing=_marks([t.missing for t in traces], place),
        not_finite=_marks([t.not_finite for t in traces], place),
        keys=keys,
        limit=limit_line(
            drawn.label,
            height(drawn.tflops),
            courses,
            dash="" if drawn.exact else "8 5",
            box=(_LEFT, _RIGHT, _TOP, _BOTTOM),
        )
        if drawn
        else None,
        above=tuple(
            Dot(place(x), height(y), 0)
            for trace in traces
            if not trace.baseline
            for x, y in _above(trace.svg_points, limit, MAX_ABOVE)
            if y is not None
        ),
        x_range=(x_low, x_high),
        y_range=(low, high) if values else None,
    )


def _marks(found: list[tuple[float, ...]], place: Callable[[float], float]) -> tuple[Dot, ...]:
    places = sorted({place(x) for xs in found for x in _starts(xs)})
    return tuple(Dot(x, _BOTTOM - 6, 0) for x in places[:MAX_MARKS])


def _stretches(points: tuple[Point, ...]) -> list[list[tuple[float, float]]]:
    found: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is not None:
            found[-1].append((x, y))
        elif found[-1]:
            found.append([])
    return [stretch for stretch in found if stretch]


def _keys(traces: tuple[Trace, ...]) -> tuple[Key, ...]:
    """A legend in three columns; none for a single line."""
    if len(traces) == 1:
        return ()
    attempts = [trace for trace in traces if not trace.baseline]
    keys = [
        _key(number, trace, number % 3, number // 3)
        for number, trace in enumerate(attempts[:_LEGEND])
    ]
    if len(attempts) > _LEGEND:
        keys[-1] = replace(keys[-1], label=f"and {len(attempts) - _LEGEND + 1} more", colour=-1)
    # its name takes more room than one column
    column, row = (1, 0) if len(attempts) == 1 else (0, (len(keys) + 2) // 3)
    keys += [_key(0, trace, column, row) for trace in traces if trace.baseline]
    return tuple(keys)


def _key(number: int, trace: Trace, column: int, row: int) -> Key:
    colour, _, dash = _look(number, trace)
    return Key(trace.name, colour, dash, x=12 + 156.0 * column, y=_BOTTOM + 58 + 18.0 * row)


def _scaled(value: float, *, log: bool) -> float:
    return math.log10(value) if log else value


def linear_ticks(values: Sequence[float]) -> list[float]:
    """Four to seven round numbers around the values.

    >>> linear_ticks([3.0, 11.0])
    [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]
    """
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if low == high:
        margin = abs(low) * 0.1 or 1.0
        low, high = low - margin, high + margin
    step = _round_step((high - low) / 5)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def log_ticks(values: Sequence[float]) -> list[float]:
    """Powers of ten around the values.

    >>> log_ticks([0.5, 300.0])
    [0.1, 1.0, 10.0, 100.0, 1000.0]
    """
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    stride = max(1, (high - low) // 5)
    return [10.0**power for power in range(low, high + stride, stride)]


def whole_ticks(low: float, high: float) -> list[float]:
    """Round whole numbers within the range, and its begin where there is room for it.

    >>> whole_ticks(1, 120)
    [1, 50.0, 100.0]
    """
    if low == high:
        return [low]
    step = max(_round_step((high - low) / 4), 1.0)
    first, last = math.ceil(low / step), math.floor(high / step)
    ticks = [number * step for number in range(first, last + 1)]
    return [low, *ticks] if ticks[0] - low > 0.4 * step else ticks


def _round_step(wanted: float) -> float:
    power = 10.0 ** math.floor(math.log10(max(wanted, 1e-100)))
    return next(power * factor for factor in (1, 2, 5, 10) if wanted <= power * factor * 1.0000001)


def _label(value: float) -> str:
    size = abs(value)
    if size and (size >= 1e6 or size < 1e-3):
        return f"{value:.0e}"
    return f"{value:,.6g}"
