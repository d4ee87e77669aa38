"""The hierarchical groups of the run: which ranks belong together, and who was seen elsewhere.

One grid per context parallel group: a row is one L0 group (all-to-all), a column one L1 group
(point-to-point). Groups that look alike are drawn a few times and counted; groups with wrong
members come first.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from hcp_logscan.model.said import N_, capital
from hcp_logscan.reporting import words
from hcp_logscan.reporting.tongue import Spoken, _, gap, n_

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hcp_logscan.model.report import RankGroups
    from hcp_logscan.reporting.words import Tone

MAX_CELLS: Final = 1_024
"""Ranks that are drawn."""

MAX_GROUPS: Final = 24
"""Context parallel groups that are drawn."""

MAX_ROWS: Final = 40
"""Rows of the table of differences; the JSON report has them all."""

_ALL_DRAWN: Final = 128
"""Ranks up to which no group is left out and cells carry numbers."""

_ALIKE: Final = 4
"""Groups drawn of each kind, where there are more ranks."""

_TALL: Final = 800

State = Literal["wrong", "agrees", "expected"]
STATE_WORDS: Final[Mapping[State, str]] = Spoken(
    {
        "wrong": N_("seen with other members"),
        "agrees": N_("seen as expected"),
        "expected": N_("expected, members not seen"),
    }
)
LEVEL_WORDS: Final = ("L0 (all-to-all)", "L1 (p2p)")

Kind = Literal["wrong", "agrees", "partly", "expected"]
_ALIKE_WORDS: Final[Mapping[Kind, str]] = Spoken(
    {
        "agrees": N_("alike, every rank seen as expected"),
        "partly": N_("with ranks seen as expected and ranks not seen"),
        "expected": N_("alike, no rank seen"),
    }
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A rank that was seen in another group than its place asks for."""

    rank: int
    level: int
    expected: tuple[int, ...]
    seen: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Groups:
    """The hierarchical groups in a few numbers."""

    cp_size: int
    sizes: tuple[int, int]
    ranks: int
    "All ranks of the layout."

    ranks_seen: int
    "Ranks with members of at least one level seen."

    level_seen: tuple[int, int]
    wrong: tuple[Difference, ...]

    @property
    def wrong_ranks(self) -> tuple[int, ...]:
        """Ranks with a difference on either level."""
        return tuple(sorted({found.rank for found in self.wrong}))


@dataclass(frozen=True, slots=True)
class Label:
    """A number in a cell; `filled` says that the cell has a dark ground."""

    x: int
    y: int
    text: str
    filled: bool


@dataclass(frozen=True, slots=True)
class Grid:
    """One context parallel group as shapes, and the same in words."""

    caption: str
    differ: str
    title: str
    desc: str
    width: int
    height: int
    bands: str
    "One shape per row: an L0 group."

    columns: str
    "One line per column: an L1 group."

    shapes: tuple[tuple[State, str], ...]
    labels: tuple[Label, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table of differences: ranks of one place and one group joined."""

    ranks: str
    level: str
    expected: str
    seen: str


@dataclass(frozen=True, slots=True)
class TopologyView:
    """The section, ready to show."""

    sentence: str
    badge: str
    membership: str
    tone: Tone
    grids: tuple[Grid, ...]
    tall: bool
    "A drawing is so high that it had better scroll."

    legend: tuple[tuple[State, str, str], ...]
    more: tuple[str, ...]
    "What is not drawn, one sentence each."

    rows: tuple[Row, ...]
    hidden_rows: int


def groups(rows: Sequence[RankGroups]) -> Groups | None:
    """The numbers; None where no layout is known."""
    if not rows:
        return None
    first = rows[0]
    return Groups(
        cp_size=len(first.cp_group),
        sizes=(len(first.l0), len(first.l1)),
        ranks=len(rows),
        ranks_seen=sum(row.seen_l0 is not None or row.seen_l1 is not None for row in rows),
        level_seen=(
            sum(row.seen_l0 is not None for row in rows),
            sum(row.seen_l1 is not None for row in rows),
        ),
        wrong=tuple(found for row in rows for found in _differences(row)),
    )


def _differences(row: RankGroups) -> Iterator[Difference]:
    for level, expected, seen in ((0, row.l0, row.seen_l0), (1, row.l1, row.seen_l1)):
        if seen is not None and seen != expected:
            yield Difference(row.rank, level, expected, seen)


def formula(found: Groups) -> str:
    """`CP 16 = 8 x 2`, with a proper sign."""
    return f"CP {found.cp_size} = {found.sizes[0]} \u00d7 {found.sizes[1]}"


def sentence(found: Groups) -> str:
    """How many groups of which size there should be."""
    inner, outer = ((found.ranks // size, words.plural(size, "member")) for size in found.sizes)
    return _(
        "{formula} over {ranks}: {groups} of {inner} with {members}, {others} of {outer} with"
        " {other_members}.",
        formula=formula(found),
        ranks=words.plural(found.ranks, "rank"),
        groups=words.plural(inner[0], "group"),
        inner=LEVEL_WORDS[0],
        members=inner[1],
        others=f"{outer[0]:,}",
        outer=LEVEL_WORDS[1],
        other_members=outer[1],
    )


def membership(found: Groups) -> tuple[str, str, Tone]:
    """Whether members were seen and agree: a few words, a sentence, a tone."""
    if not found.ranks_seen:
        text = _("No runtime channel showed members: this is what the sizes ask for.")
        return _("not seen"), text, "calm"
    seen = capital(_seen(found))
    if not found.wrong:
        return _("as expected"), _("{meaning}.", meaning=seen), "good"
    ranks = words.ranks(found.wrong_ranks)
    text = n_(
        "{seen}; {ranks} was in another group.",
        "{seen}; {ranks} were in other groups.",
        count=len(found.wrong_ranks),
        seen=seen,
        ranks=ranks,
    )
    return _differ(found), text, "bad"


def _seen(found: Groups) -> str:
    inner, outer = found.level_seen
    levels = (
        _(" (L0 on {inner:,}, L1 on {outer:,})", inner=inner, outer=outer) if inner != outer else ""
    )
    return _(
        "members seen on {seen:,} of {ranks}{levels}",
        seen=found.ranks_seen,
        ranks=words.plural(found.ranks, "rank"),
        levels=levels,
    )


def _differ(found: Groups) -> str:
    return n_("{count:,} rank differs", "{count:,} ranks differ", count=len(found.wrong_ranks))


def line(rows: Sequence[RankGroups]) -> str:
    """One line for the short formats; empty where no members were seen."""
    found = groups(rows)
    if found is None or not found.ranks_seen:
        return ""
    text = _("; ").join((formula(found), _seen(found)))
    if not found.wrong:
        return _("{text}, as expected", text=text)
    return _(
        "{text}; {differ}: {ranks}",
        text=text,
        differ=_differ(found),
        ranks=words.ranges(found.wrong_ranks),
    )


def topology_view(rows: Sequence[RankGroups]) -> TopologyView | None:
    """The section of the HTML report; None where no layout is known."""
    found = groups(rows)
    if found is None:
        return None
    states = {row.rank: _state(row) for row in rows}
    chosen, more = _chosen(list(dict.fromkeys(row.cp_group for row in rows)), states)
    numbered = sum(len(ranks) for _, ranks in chosen) <= _ALL_DRAWN
    size = _Size.numbered(max(states)) if numbered else _Size()
    grids = tuple(_grid(n, ranks, found.sizes[0], states, size) for n, ranks in chosen)
    table = _rows(found.wrong)
    badge, text, tone = membership(found)
    return TopologyView(
        sentence=sentence(found),
        badge=badge,
        membership=text,
        tone=tone,
        grids=grids,
        tall=any(grid.height > _TALL for grid in grids),
        legend=tuple(_legend(states)),
        more=tuple(more),
        rows=tuple(table[:MAX_ROWS]),
        hidden_rows=max(len(table) - MAX_ROWS, 0),
    )


def _state(row: RankGroups) -> State:
    if any(_differences(row)):
        return "wrong"
    return "expected" if row.seen_l0 is None and row.seen_l1 is None else "agrees"


def _kind(ranks: Sequence[int], states: Mapping[int, State]) -> Kind:
    found = {states.get(rank, "expected") for rank in ranks}
    if "wrong" in found:
        return "wrong"
    return "partly" if len(found) > 1 else found.pop()


_Numbered = tuple[int, tuple[int, ...]]


def _chosen(
    all_groups: Sequence[tuple[int, ...]], states: Mapping[int, State]
) -> tuple[list[_Numbered], list[str]]:
    """The groups to draw, in order, and what to say of the others: wrong ones are drawn first."""
    kinds: dict[Kind, list[_Numbered]] = {"wrong": [], "partly": [], "agrees": [], "expected": []}
    for number, ranks in enumerate(all_groups):
        kinds[_kind(ranks, states)].append((number, ranks))
    everything = len(states) <= _ALL_DRAWN
    chosen: list[_Numbered] = []
    more: list[str] = []
    cells = 0
    for kind, members in kinds.items():
        wanted = members if everything or kind == "wrong" else members[:_ALIKE]
        drawn = 0
        for number, ranks in wanted:
            if not everything and (cells + len(ranks) > MAX_CELLS or len(chosen) >= MAX_GROUPS):
                break
            chosen.append((number, ranks))
            cells += len(ranks)
            drawn += 1
        if rest := len(members) - drawn:
            more.append(_not_drawn(kind, rest, drawn))
    return sorted(chosen), more


def _not_drawn(kind: Kind, rest: int, drawn: int) -> str:
    count = words.plural(rest, "more group" if drawn else "group")
    if kind == "wrong":
        return _("{count} with wrong members not drawn.", count=count)
    return _("{count} {alike}.", count=count, alike=_ALIKE_WORDS[kind])


@dataclass(frozen=True, slots=True)
class _Size:
    """Measures of a grid in drawing units."""

    width: int = 12
    height: int = 12
    gap: int = 3
    row_gap: int = 10
    edge: int = 2
    "Between the cells and the shape of their row."

    point: int = 6
    "How far the ends of a wrong cell are pointed."

    numbers: bool = False

    @classmethod
    def numbered(cls, highest: int) -> _Size:
        """Cells that hold the numbers of ranks."""
        return cls(12 + 8 * len(str(highest)), 22, 4, 14, 3, 5, numbers=True)


def _grid(
    number: int, ranks: tuple[int, ...], across: int, states: Mapping[int, State], size: _Size
) -> Grid:
    lines = [ranks[at : at + across] for at in range(0, len(ranks), across)]
    wide = 2 * size.edge + across * size.width + (across - 1) * size.gap
    tall = 2 * size.edge + len(lines) * size.height + (len(lines) - 1) * size.row_gap
    tops = [size.edge + at * (size.height + size.row_gap) for at in range(len(lines))]
    lefts = [size.edge + at * (size.width + size.gap) for at in range(across)]
    paths: dict[State, list[str]] = {state: [] for state in STATE_WORDS}
    labels = []
    for top, row in zip(tops, lines, strict=True):
        for left, rank in zip(lefts, row, strict=False):
            state = states.get(rank, "expected")
            paths[state].append(_cell(left, top, size, pointed=state == "wrong"))
            if size.numbers:
                at = (left + size.width // 2, top + size.height // 2 + 4)
                labels.append(Label(*at, str(rank), state != "expected"))
    middle, half = size.width // 2, size.height // 2
    ends = (tops[0] + half, tops[-1] + half)
    differ = [rank for rank in ranks if states.get(rank) == "wrong"]
    return Grid(
        caption=_("CP group {number}: ranks {ranks}", number=number, ranks=words.members(ranks)),
        differ=n_("{count} differs", "{count} differ", count=len(differ)) if differ else "",
        title=_("Context parallel group {number}", number=number),
        desc=_desc(lines, ranks, differ, states),
        width=wide,
        height=tall,
        bands="".join(
            f"M0 {top - size.edge}h{wide}v{size.height + 2 * size.edge}h-{wide}z" for top in tops
        ),
        columns="".join(f"M{left + middle} {ends[0]}V{ends[1]}" for left in lefts)
        if len(lines) > 1
        else "",
        shapes=tuple((state, "".join(found)) for state, found in paths.items() if found),
        labels=tuple(labels),
    )


def _cell(left: int, top: int, size: _Size, *, pointed: bool) -> str:
    """A rectangle, or for a wrong rank a shape with pointed ends: no need to see its colour."""
    if not pointed:
        return f"M{left} {top}h{size.width}v{size.height}h-{size.width}z"
    flat, half, end = size.width - 2 * size.point, size.height // 2, size.point
    there, back = (f"h{flat}", f"h-{flat}l") if flat else ("", "")
    return f"M{left + end} {top}{there}l{end} {half}-{end} {half}{back}-{end}-{half}z"


def _desc(
    lines: Sequence[Sequence[int]],
    ranks: Sequence[int],
    differ: Sequence[int],
    states: Mapping[int, State],
) -> str:
    shown = _("; ").join(words.members(row) for row in lines[:4])
    more = _("; and {count} more rows", count=len(lines) - 4) if len(lines) > 4 else ""
    seen = sum(states.get(rank) == "agrees" for rank in ranks)
    parts = [_("Rows are L0 groups: {shown}{more}. Columns are L1 groups.", shown=shown, more=more)]
    parts.append(
        _(
            "Seen as expected: {ranks} of {all}.",
            ranks=words.plural(seen, "rank"),
            all=len(ranks),
        )
    )
    if differ:
        parts.append(_("Seen with other members: {ranks}.", ranks=words.ranks(differ)))
    return gap().join(parts)


def _legend(states: Mapping[int, State]) -> Iterator[tuple[State, str, str]]:
    count = Counter(states.values())
    for state, meaning in STATE_WORDS.items():
        if count[state]:
            members = words.ranges(rank for rank, found in states.items() if found == state)
            many = words.plural(count[state], "rank")
            yield state, meaning, _("{name}: {what}", name=many, what=members)


def _rows(wrong: Sequence[Difference]) -> list[Row]:
    """Differences with ranks of equal places and groups joined."""
    joined: dict[tuple[int, tuple[int, ...], tuple[int, ...]], list[int]] = {}
    for found in wrong:
        joined.setdefault((found.level, found.expected, found.seen), []).append(found.rank)
    return [
        Row(
            ranks=words.ranges(ranks),
            level=LEVEL_WORDS[level],
            expected=words.members(expected),
            seen=words.members(seen) or _("nobody"),
        )
        for (level, expected, seen), ranks in joined.items()
    ]
