"""What broke first as sentences, a drawing and a table: the stories and the timeline of a report.

The drawing has a lane for the job, for every rank that broke by itself, and for the others while
they are few; a thousand ranks that only followed share a lane per role. Marks stand in order, left
to right: ranks fail within seconds of each other, hours after the start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from hcp_logscan.model.said import N_
from hcp_logscan.reporting import words
from hcp_logscan.reporting.safe import cut
from hcp_logscan.reporting.tongue import Spoken, _, n_

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hcp_logscan.model.report import Place, ReportData, Story, TimelineEntry

ROLE_WORDS: Final[Mapping[str, str]] = Spoken(
    {
        "progress": N_("progress of the job"),
        "root": N_("broke by itself, or is suspected"),
        "rejection": N_("refused at start-up"),
        "cascade": N_("failed because of another one"),
        "teardown": N_("was stopped, or ended the job"),
        "confirmation": N_("bears it out"),
        "advice": N_("advice of a library"),
        "unknown": N_("role not known"),
    }
)
"""Roles of entries, and what they mean; a role that is not listed counts as unknown."""

MAX_OWN: Final = 8
"""Ranks that broke by themselves with a lane each."""

MAX_LANES: Final = 14
"""Lanes up to which every rank that took part has one."""

MAX_MARKS: Final = 48
MAX_ROWS: Final = 12
"""Entries of the table that are shown unfolded."""

MAX_LINKS: Final = 3
"""Lines that stand behind a sentence as links."""

_JOB: Final = N_("the job")
_TEXT: Final = 300
_LABEL: Final = 26
_LEFT: Final = 190
_RIGHT: Final = 880
_LANE: Final = 30
_TOP: Final = 14


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of the drawing."""

    y: int
    label: str


@dataclass(frozen=True, slots=True)
class Mark:
    """One entry in the drawing."""

    x: int
    y: int
    role: str
    count: str
    "How many it stands for, empty for one."


@dataclass(frozen=True, slots=True)
class Row:
    """One entry in the table."""

    time: str
    who: str
    role: str
    what: str
    where: str
    anchor: str
    "The finding that the same line is evidence of; empty if there is none."

    id: str = ""
    "Its own anchor, where a sentence leads here."


Sentence: TypeAlias = tuple[tuple[str, str], ...]
"""Parts of a sentence, each with the anchor on this page that it leads to, or none."""


@dataclass(frozen=True, slots=True)
class StoryView:
    """The section of the page."""

    sentences: tuple[Sentence, ...]
    "Of the run."

    attempts: tuple[tuple[int, tuple[Sentence, ...]], ...]
    "Stories of the attempts, where there are several."

    width: int
    height: int
    lanes: tuple[Lane, ...]
    marks: tuple[Mark, ...]
    splits: tuple[tuple[int, str], ...]
    "Where an attempt begins, and its name: empty for one attempt."

    ends: tuple[str, str]
    "Times of the first and the last mark, empty where they are not known."

    left_out: int
    "Entries in the middle that the drawing has no room for."

    legend: tuple[tuple[str, str], ...]
    "Roles drawn, and what they mean."

    rows: tuple[Row, ...]
    more_rows: tuple[Row, ...]
    notes: tuple[str, ...]
    "What is to be known of the times: clocks that are corrected."


def story_view(data: ReportData, anchors: Mapping[tuple[str, int], str]) -> StoryView | None:
    """The section; None where nothing is known to have broken.

    `anchors` maps (file, line) to the finding whose evidence that line is.
    """
    from hcp_logscan.analysis.timeline import bounded

    if not data.stories or not data.stories[0].sentences:
        return None
    drawn: list[TimelineEntry] = bounded(list(data.timeline), MAX_MARKS)
    lane_of, labels = _lanes(drawn)
    xs = _positions(len(drawn))
    lanes = tuple(Lane(_TOP + n * _LANE + _LANE // 2, label) for n, label in enumerate(labels))
    marks = tuple(
        Mark(x, lanes[lane].y, _role(entry), _count(entry))
        for x, lane, entry in zip(xs, lane_of, drawn, strict=True)
    )
    roles = {mark.role for mark in marks}
    own = _own_anchors(data, anchors)
    table = [_row(entry, anchors, own.get(n, "")) for n, entry in enumerate(data.timeline)]
    shown = _first_rows(data.timeline, table)
    leads = {
        where: own[n] for n, e in enumerate(data.timeline) if n in own and (where := _place(e))
    }
    leads.update(anchors)
    told = [(s.attempt, _sentences(s, leads)) for s in data.stories[1:] if s.attempt is not None]
    return StoryView(
        sentences=_sentences(data.stories[0], leads),
        attempts=tuple(told) if len(told) > 1 else (),
        width=_RIGHT + 20,
        height=_TOP + len(lanes) * _LANE + 26,
        lanes=lanes,
        marks=marks,
        splits=tuple(_splits(drawn, xs)),
        ends=(drawn[0].time or "", drawn[-1].time or "") if len(drawn) > 1 else ("", ""),
        left_out=len(data.timeline) - len(drawn),
        legend=tuple((role, meaning) for role, meaning in ROLE_WORDS.items() if role in roles),
        rows=tuple(shown),
        more_rows=_whole(table, shown) if len(table) > len(shown) else (),
        notes=data.clock_notes,
    )


def _role(entry: TimelineEntry) -> str:
    return entry.role if entry.role in ROLE_WORDS else "unknown"


def _count(entry: TimelineEntry) -> str:
    many = len(entry.ranks) or entry.count
    return f"\u00d7{many:,}" if many > 1 else ""


def _who(entry: TimelineEntry) -> str:
    if entry.who == "ranks" and entry.ranks:
        return n_("rank {ranks}", "ranks {ranks}", count=2, ranks=words.ranges(entry.ranks))
    return _(_JOB) if entry.who == "job" else entry.who


def _lanes(entries: Sequence[TimelineEntry]) -> tuple[list[int], list[str]]:
    """The lane of each entry, and the labels of the lanes, the job's first."""
    own = dict.fromkeys(_who(e) for e in entries if e.role in {"root", "rejection"})
    every = dict.fromkeys(_who(entry) for entry in entries)
    few = len(every) <= MAX_LANES
    alone = set(list(own)[:MAX_OWN])

    def name(entry: TimelineEntry) -> tuple[int, str]:
        who = _who(entry)
        if who == _(_JOB):
            return 0, who
        if who in alone or few:
            return (1 if who in own else 2), who
        return 3, ROLE_WORDS[_role(entry)]

    named = [name(entry) for entry in entries]
    order = sorted(dict.fromkeys(named), key=lambda lane: lane[0])
    return [order.index(one) for one in named], [cut(label, _LABEL) for _, label in order]


def _positions(count: int) -> list[int]:
    first, last = _LEFT + 16, _RIGHT - 16
    if count < 2:
        return [first] * count
    return [round(first + n * (last - first) / (count - 1)) for n in range(count)]


def _splits(entries: Sequence[TimelineEntry], xs: Sequence[int]) -> list[tuple[int, str]]:
    """Where attempts begin, if there are several."""
    if len({entry.attempt for entry in entries}) < 2:
        return []
    found, before = [], None
    for entry, x in zip(entries, xs, strict=True):
        if entry.attempt != before:
            found.append((x - 10, _("attempt {attempt}", attempt=entry.attempt)))
            before = entry.attempt
    return found


def _place(entry: TimelineEntry) -> tuple[str, int] | None:
    return None if entry.file is None or entry.line is None else (entry.file, entry.line)


def _own_anchors(data: ReportData, anchors: Mapping[tuple[str, int], str]) -> dict[int, str]:
    """Number of an entry -> its anchor: where a sentence rests on its line and no finding does."""
    wanted = {(p.file, p.line) for s in data.stories for places in s.evidence for p in places}
    found: dict[tuple[str, int], int] = {}
    for number, entry in enumerate(data.timeline):
        place = _place(entry)
        if place in wanted and place not in anchors and place is not None:
            found.setdefault(place, number)
    return {number: f"timeline-{number}" for number in found.values()}


def _sentences(story: Story, leads: Mapping[tuple[str, int], str]) -> tuple[Sentence, ...]:
    """The sentences of a story with links to what they rest on, as far as it is on this page."""
    return tuple(_linked(text, places, leads) for text, places in story.pairs)


def _linked(text: str, places: Sequence[Place], leads: Mapping[tuple[str, int], str]) -> Sentence:
    """A sentence whose bracketed places are links; others stand behind it."""
    spans: list[tuple[int, int, str]] = []
    behind: list[tuple[str, str]] = []
    for place in places:
        anchor = leads.get((place.file, place.line), "")
        words = f"{place.file}:{place.line}"
        at = text.rfind(f"[{words}]")
        if anchor and at >= 0:
            spans.append((at + 1, at + 1 + len(words), anchor))
        elif anchor and len(behind) < 2 * MAX_LINKS:
            short = f"{place.file.rpartition('/')[2]}:{place.line}"
            behind += [(", " if behind else " \u2192 ", ""), (short, anchor)]
    parts, done = [], 0
    for start, end, anchor in sorted(spans):
        parts += [(text[done:start], ""), (text[start:end], anchor)]
        done = end
    return tuple(part for part in (*parts, (text[done:], ""), *behind) if part[0])


def _whole(table: Sequence[Row], shown: Sequence[Row]) -> tuple[Row, ...]:
    """All rows; those that stand above have their anchors there."""
    above = {row.id for row in shown}
    return tuple(replace(row, id="") if row.id in above else row for row in table)


def _row(entry: TimelineEntry, anchors: Mapping[tuple[str, int], str], own: str) -> Row:
    time = entry.time or ""
    if entry.corrected:
        time = _("{time} (corrected)", time=time)
    place = _place(entry)
    return Row(
        time=_("{time} or later", time=time) if time and entry.estimated else time,
        who=cut(_who(entry), _TEXT),
        role=ROLE_WORDS[_role(entry)],
        what=cut(entry.text, _TEXT),
        where=f"{place[0]}:{place[1]}" if place else "",
        anchor=anchors.get(place, "") if place else "",
        id=own,
    )


def _first_rows(entries: Sequence[TimelineEntry], table: Sequence[Row]) -> list[Row]:
    """What matters: what broke, and what stands nearest to the first of it, while there is room."""
    if len(table) <= MAX_ROWS:
        return list(table)
    wanted = [n for n, e in enumerate(entries) if e.role in {"root", "rejection"}][:MAX_ROWS]
    wanted = wanted or [n for n, e in enumerate(entries) if e.role != "progress"][:MAX_ROWS]
    middle = wanted[0] if wanted else 0
    others = (n for n in range(len(table)) if n not in wanted)
    near = sorted(others, key=lambda n: abs(n - middle))[: MAX_ROWS - len(wanted)]
    return [table[n] for n in sorted([*wanted, *near])]
