"""What broke first, what followed, what ended it: at most three sentences per attempt and run.

Pure: the rows of the fact table `failures`, the facts of the attempts, and the names of files.
Sentences state what the rows state and no more: without a root candidate nobody is accused.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from hcp_logscan.analysis.causes import CAUSES
from hcp_logscan.analysis.progress import ENDED, start_of
from hcp_logscan.analysis.roles import matches, said_by
from hcp_logscan.model.report import Place, Story
from hcp_logscan.model.safe import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hcp_logscan.analysis.failures import Failures

MAX_WORDS: Final = 200
"""Characters of log text in one sentence."""

_ECHOES: Final = (
    ("timed out", r"(?i)timed? ?out|watchdog"),
    ("lost their connection", r"(?i)connection|broken pipe|socket|peer|remote process|recv"),
    ("failed in a collective", r"(?i)nccl|gloo|c10d|DistBackendError|communicator"),
    ("failed after it", r"."),
)
_UNNAMED: Final = "ranks that no line names timed out"
_NUMBER: Final = re.compile(r"\d+")

MAX_PLACES: Final = 8
"""Lines that one sentence rests on, as far as they are listed."""

Row: TypeAlias = "Mapping[str, Any]"
Told: TypeAlias = "tuple[str, list[Place]]"
"""A sentence, and the lines that it rests on."""


def ranges(numbers: Iterable[int], limit: int = 8) -> str:
    """Ranks as ranges: `0-3, 7`; with a count of the ranges that were left out."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    shown = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found[:limit])
    return f"{shown} and more" if len(found) > limit else shown


def short(text: str | None) -> str:
    """Log text on one line, cut."""
    line = one_line(text or "").strip()
    return line if len(line) <= MAX_WORDS else line[: MAX_WORDS - 1] + "\u2026"


def kind_words(row: Row) -> str:
    """What a row is, without whom it met: folds the rows of many ranks into one."""
    if row["kind"] == "exception":
        return short(f"{row['exception_type']}: {row['message'] or ''}".rstrip(": "))
    if row["kind"] == "exit":
        signal, code = row["signal"], row["exit_code"]
        return f"was ended by {signal}" if signal else f"ended with exit code {code}"
    if row.get("cause"):
        return short(f"{CAUSES[row['cause']].what}: {row['message'] or ''}")
    return short(row["message"])


def alike(row: Row) -> tuple[Any, ...]:
    """What rows have in common that say the same on several ranks, their numbers left out."""
    return row["role"], row["kind"], row.get("cause"), _NUMBER.sub("#", kind_words(row))


def _place(row: Row, names: Sequence[str]) -> str:
    if row["file"] is None or row["line"] is None:
        return ""
    return f" [{names[row['file']]}:{row['line']}]"


def _places(rows: Iterable[Row | None], names: Sequence[str]) -> list[Place]:
    """Where rows stand, each line once."""
    known = [row for row in rows if row and row["file"] is not None and row["line"] is not None]
    found = dict.fromkeys(Place(names[row["file"]], row["line"]) for row in known)
    return list(found)[:MAX_PLACES]


def _also(row: Row, rows: Sequence[Row]) -> str:
    """The other ranks of which the same is said."""
    key = alike(row)
    others = {other["rank"] for other in rows if alike(other) == key} - {row["rank"], None}
    if not others:
        return ""
    return f" and {len(others):,} more rank{'s' if len(others) > 1 else ''} ({ranges(others)})"


def _first(
    root: Row, rows: Sequence[Row], names: Sequence[str], rivals: Sequence[Row] = ()
) -> Told:
    """The sentence of the first root candidate, and of a rival that may have been before it."""
    key = alike(root)
    others = [row for row in rivals if alike(row) != key]
    if not others:
        return f"{_said_first(root, rows, names, sure=True)}.", _places([root], names)
    more = f" (and {len(others) - 1:,} more)" if len(others) > 1 else ""
    text = (
        f"{_said_first(root, rows, names, sure=False)}; nothing tells whether that was before"
        f" {others[0]['who']}: {kind_words(others[0])}{_place(others[0], names)}{more}."
    )
    return text, _places([root, *others], names)


def _said_first(root: Row, rows: Sequence[Row], names: Sequence[str], *, sure: bool) -> str:
    """What a root candidate is, as the first one only where that is sure."""
    who = root["who"][:1].upper() + root["who"][1:]
    also, place = _also(root, rows), _place(root, names)
    group = CAUSES[root["cause"]].group if root.get("cause") else None
    if root["kind"] == "exception" and group != "start-up" and root.get("cause") != "dns":
        at = f" at {root['where']}" if root.get("where") else ""
        broke = "broke first" if sure else "broke"
        return f"{who}{also} {broke} {root['during']}{at}: {kind_words(root)}{place}"
    if root["kind"] == "exit":
        unknown = " and no line says who sent it" if root["signal"] == "SIGKILL" else ""
        return f"{who}{also} {kind_words(root)} {root['during']}{unknown}{place}"
    if root.get("cause"):
        what, said = CAUSES[root["cause"]].what, short(root["message"])
        head = f"{what[:1].upper()}{what[1:]}"
        verb = "ended it" if group == "scheduler" else "came first" if sure else "came"
        whom = "" if root["who"].startswith("a rank") else f" ({root['who']}{also})"
        return f"{head} {verb} {root['during']}{whom}: {said}{place}"
    if root["kind"] == "suspect":
        return f"{who}{also} is the prime suspect: {kind_words(root)}{place}"
    return f"{who}{also}: {kind_words(root)}{place}"


def _followed(rows: Sequence[Row], names: Sequence[str]) -> Told | None:
    """How many ranks failed because of it, by how; with the first line of each way."""
    ways: dict[str, set[Any]] = {}
    shown: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: row["kind"] != "timeout"):  # it says most
        if row["role"] != "cascade" or row["kind"] == "cause":
            continue
        who = row["rank"] if row["rank"] is not None else (row["file"], row["line"])
        if any(who in seen for seen in ways.values()):
            continue
        ways.setdefault(_way(row), set()).add(who)
        shown.setdefault(_way(row), row)
    if not ways:
        return None
    parts = [
        way if way == _UNNAMED else f"{len(seen):,} rank{'s' if len(seen) > 1 else ''} {way}"
        for way, seen in ways.items()
    ]
    return f"Then {', '.join(parts)}.", _places(shown.values(), names)


def _way(row: Row) -> str:
    """How a rank failed that only echoes another one."""
    if row["kind"] == "timeout" and row["rank"] is None:
        return _UNNAMED  # one process may wait in many collectives, and many in one
    if row["kind"] == "timeout":
        return _ECHOES[2 if row["only_failed"] else 0][0]
    if row["kind"] == "exit":
        return f"ended by {row['signal']}" if row["signal"] else _ECHOES[-1][0]
    return next(name for name, regex in _ECHOES if matches(regex, said_by(dict(row))))


def _ended(
    rows: Sequence[Row],
    facts: Mapping[str, Any],
    outcome: str,
    names: Sequence[str],
    marks: Mapping[str, Row],
) -> Told | None:
    """What ended the attempt, and what of it is kept; `marks` as of `progress.milestones`."""
    enders = [
        row
        for row in rows
        if row["kind"] == "cause"
        and row["role"] == "teardown"
        and CAUSES[row["cause"]].group == "scheduler"
    ]
    ends = dict.fromkeys(CAUSES[row["cause"]].what for row in enders)
    stops = [row for row in rows if row["kind"] == "exit" and row["role"] == "teardown"]
    stopped = len(stops)
    parts = [f"it ended by {' and '.join(ends)}"] if ends else []
    if stopped:
        parts.append(f"{stopped:,} process{'es were' if stopped > 1 else ' was'} stopped")
    shown: list[Row | None] = [*enders[:1], *stops[:1]]
    saved, lost, start = facts["last_saved"], facts["iterations_lost"], start_of(facts)
    kept = saved if saved is not None else (start or None)
    if outcome in ENDED and lost is not None:
        what = (
            f"kept is the checkpoint of iteration {kept:,}" if kept else "no checkpoint was saved"
        )
        parts.append(f"{what}, {_iterations(lost)} lost{_time(facts['lost_s'])}")
        keeper = marks.get("saved" if saved is not None else "loaded")
        shown += [keeper if kept else None, marks.get("iteration")]
    if not parts:
        return None
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}.", _places(shown, names)


def _iterations(count: int) -> str:
    return f"{count:,} iteration{' is' if count == 1 else 's are'}"


def _time(seconds: float | None) -> str:
    """Lost time in words, where it is worth a word."""
    if seconds is None or seconds < 60:
        return ""
    minutes = seconds / 60
    return f" (about {minutes:,.0f} min)" if minutes < 120 else f" (about {minutes / 60:,.1f} h)"


def of_attempt(
    number: int,
    failed: Failures,
    facts: Mapping[str, Any],
    outcome: str,
    names: Sequence[str],
    marks: Mapping[str, Row] | None = None,
) -> Story:
    """The story of one attempt; without sentences where nothing broke.

    `marks` are the lines of `progress.milestones`.
    """
    rows = failed.rows
    root = failed.cause
    told: list[Told | None] = []
    if facts["rejections"] and outcome == "rejected":
        refused = [row for row in rows if row["role"] == "rejection"]
        words = f"The configuration was refused at start-up: {short(_refusal(facts))}."
        told.append((words, _places(refused[:1], names)))
    elif root is not None:
        told.append(_first(root, rows, names, failed.rivals))
    elif any(row["role"] == "cascade" for row in rows):
        silent = failed.culprits
        whom = f"; suspected: rank {ranges(silent)}, of which nothing is heard" if silent else ""
        told.append((f"No line says what broke first{whom}.", []))
    if told:
        told += [_followed(rows, names), _ended(rows, facts, outcome, names, marks or {})]
    return _story(number, [one for one in told if one])


def _story(number: int | None, told: Sequence[Told]) -> Story:
    return Story(
        number,
        tuple(sentence for sentence, _ in told),
        tuple(tuple(places[:MAX_PLACES]) for _, places in told),
    )


def _refusal(facts: Mapping[str, Any]) -> str:
    return str(facts["rejection_text"] or facts["rejection_check"] or "").rstrip(".")


def of_run(
    stories: Sequence[Story],
    attempts: Sequence[tuple[int, Mapping[str, Any], str]],
    run: Mapping[str, Any],
) -> Story:
    """The story of the run: that of its only attempt, else its progress and its last failure."""
    if len(stories) == 1:
        return replace(stories[0], attempt=None)
    told = [story for story in stories if story.sentences]
    if not told:
        return Story(None, ())
    counts = Counter(outcome for *_, outcome in attempts)
    ends = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
    net = run["net_iterations"]
    gained = "" if net is None else f"; net progress {net:,} iteration{'s' * (net != 1)}"
    firsts = [story.evidence[0][:1] for story in told]
    said: list[Told] = [
        (f"{len(attempts)} attempts: {ends}{gained}.", [one for places in firsts for one in places])
    ]
    stuck = run["stuck_attempts"]
    if stuck and stuck > 1 and run["stuck_iteration"] is not None:
        lost = run["lost_iterations"]
        words = "" if lost is None else f": {_iterations(lost)} lost{_time(run['lost_s'])}"
        at = run["stuck_iteration"]
        sentence = f"The last {stuck} began at iteration {at:,} and saved nothing{words}."
        said.append((sentence, [place for story in told[-stuck:] for place in story.evidence[-1]]))
    last = told[-1]
    said.append((f"Attempt {last.attempt}: {last.sentences[0]}", list(last.evidence[0])))
    return _story(None, said)
