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
from hcp_logscan.model.said import N_, capital, joined, say, say_n

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hcp_logscan.analysis.failures import Failures

MAX_WORDS: Final = 200
"""Characters of log text in one sentence."""

_ECHOES: Final = (
    (N_("timed out"), r"(?i)timed? ?out|watchdog"),
    (N_("lost their connection"), r"(?i)connection|broken pipe|socket|peer|remote process|recv"),
    (N_("failed in a collective"), r"(?i)nccl|gloo|c10d|DistBackendError|communicator"),
    (N_("failed after it"), r"."),
)
_UNNAMED: Final = N_("ranks that no line names timed out")
_OUTCOMES: Final = {
    "completed": N_("completed"),
    "failed": N_("failed"),
    "killed": N_("killed"),
    "terminated": N_("terminated"),
    "time_limit": N_("time limit"),
    "rejected": N_("rejected"),
    "no_training": N_("no training"),
    "unknown": N_("unknown"),
}
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
    return say("{shown} and more", shown=shown) if len(found) > limit else shown


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
        if signal:
            return say("was ended by {signal}", signal=signal)
        return say("ended with exit code {code}", code=code)
    if row.get("cause"):
        what = CAUSES[row["cause"]].what
        line = short(f"{what}: {row['message'] or ''}")
        if not line.startswith(f"{what}: "):
            return line
        return say("{what}: {said}", what=what, said=line[len(what) + 2 :])
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
    return say_n(
        " and {count:,} more rank ({ranks})",
        " and {count:,} more ranks ({ranks})",
        count=len(others),
        ranks=ranges(others),
    )


def _first(
    root: Row, rows: Sequence[Row], names: Sequence[str], rivals: Sequence[Row] = ()
) -> Told:
    """The sentence of the first root candidate, and of a rival that may have been before it."""
    key = alike(root)
    others = [row for row in rivals if alike(row) != key]
    if not others:
        told = say("{told}.", told=_said_first(root, rows, names, sure=True))
        return told, _places([root], names)
    more = say(" (and {count:,} more)", count=len(others) - 1) if len(others) > 1 else ""
    text = say(
        "{told}; nothing tells whether that was before {who}: {what}{place}{more}.",
        told=_said_first(root, rows, names, sure=False),
        who=others[0]["who"],
        what=kind_words(others[0]),
        place=_place(others[0], names),
        more=more,
    )
    return text, _places([root, *others], names)


def _said_first(root: Row, rows: Sequence[Row], names: Sequence[str], *, sure: bool) -> str:
    """What a root candidate is, as the first one only where that is sure."""
    who = capital(root["who"])
    also, place = _also(root, rows), _place(root, names)
    common = {"during": root["during"], "place": place}
    group = CAUSES[root["cause"]].group if root.get("cause") else None
    if root["kind"] == "exception" and group != "start-up" and root.get("cause") != "dns":
        at = say(" at {where}", where=root["where"]) if root.get("where") else ""
        broke = (
            N_("{who}{also} broke first {during}{at}: {what}{place}")
            if sure
            else N_("{who}{also} broke {during}{at}: {what}{place}")
        )
        return say(broke, who=who, also=also, at=at, what=kind_words(root), **common)
    if root["kind"] == "exit":
        unknown = say(" and no line says who sent it") if root["signal"] == "SIGKILL" else ""
        return say(
            "{who}{also} {ended} {during}{unknown}{place}",
            who=who,
            also=also,
            ended=kind_words(root),
            unknown=unknown,
            **common,
        )
    if root.get("cause"):
        template = (
            N_("{what} ended it {during}{whom}: {said}{place}")
            if group == "scheduler"
            else N_("{what} came first {during}{whom}: {said}{place}")
            if sure
            else N_("{what} came {during}{whom}: {said}{place}")
        )
        return say(
            template,
            what=capital(CAUSES[root["cause"]].what),
            whom=""
            if root["who"].startswith("a rank")
            else say(" ({who}{also})", who=root["who"], also=also),
            said=short(root["message"]),
            **common,
        )
    if root["kind"] == "suspect":
        return say(
            "{who}{also} is the prime suspect: {what}{place}",
            who=who,
            also=also,
            what=kind_words(root),
            place=place,
        )
    return say("{who}{also}: {what}{place}", who=who, also=also, what=kind_words(root), place=place)


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
        way
        if way == _UNNAMED
        else say_n("{count:,} rank {way}", "{count:,} ranks {way}", count=len(seen), way=way)
        for way, seen in ways.items()
    ]
    return say("Then {parts}.", parts=joined(", ", parts)), _places(shown.values(), names)


def _way(row: Row) -> str:
    """How a rank failed that only echoes another one."""
    if row["kind"] == "timeout" and row["rank"] is None:
        return _UNNAMED  # one process may wait in many collectives, and many in one
    if row["kind"] == "timeout":
        return _ECHOES[2 if row["only_failed"] else 0][0]
    if row["kind"] == "exit":
        if not row["signal"]:
            return _ECHOES[-1][0]
        return say("ended by {signal}", signal=row["signal"])
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
    parts = [say("it ended by {ends}", ends=joined(" and ", ends))] if ends else []
    if stopped:
        parts.append(
            say_n(
                "{count:,} process was stopped", "{count:,} processes were stopped", count=stopped
            )
        )
    shown: list[Row | None] = [*enders[:1], *stops[:1]]
    saved, lost, start = facts["last_saved"], facts["iterations_lost"], start_of(facts)
    kept = saved if saved is not None else (start or None)
    if outcome in ENDED and lost is not None:
        what = (
            say("kept is the checkpoint of iteration {kept:,}", kept=kept)
            if kept
            else say("no checkpoint was saved")
        )
        parts.append(say("{what}, {lost}", what=what, lost=_lost(lost, facts["lost_s"])))
        keeper = marks.get("saved" if saved is not None else "loaded")
        shown += [keeper if kept else None, marks.get("iteration")]
    if not parts:
        return None
    return say("{text}.", text=capital(joined("; ", parts))), _places(shown, names)


def _lost(count: int, seconds: float | None) -> str:
    return say_n(
        "{count:,} iteration is lost{time}",
        "{count:,} iterations are lost{time}",
        count=count,
        time=_time(seconds),
    )


def _time(seconds: float | None) -> str:
    """Lost time in words, where it is worth a word."""
    if seconds is None or seconds < 60:
        return ""
    minutes = seconds / 60
    if minutes < 120:
        return say(" (about {minutes:,.0f} min)", minutes=minutes)
    return say(" (about {hours:,.1f} h)", hours=minutes / 60)


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
        words = say(
            "The configuration was refused at start-up: {what}.", what=short(_refusal(facts))
        )
        told.append((words, _places(refused[:1], names)))
    elif root is not None:
        told.append(_first(root, rows, names, failed.rivals))
    elif any(row["role"] == "cascade" for row in rows):
        silent = failed.culprits
        whom = (
            say("; suspected: rank {ranks}, of which nothing is heard", ranks=ranges(silent))
            if silent
            else ""
        )
        told.append((say("No line says what broke first{whom}.", whom=whom), []))
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
    ends = joined(
        ", ",
        (
            say("{count} {outcome}", count=count, outcome=say(_OUTCOMES[name]))
            for name, count in counts.items()
        ),
    )
    net = run["net_iterations"]
    gained = (
        ""
        if net is None
        else say_n(
            "; net progress {count:,} iteration", "; net progress {count:,} iterations", count=net
        )
    )
    firsts = [story.evidence[0][:1] for story in told]
    head = say("{many} attempts: {ends}{gained}.", many=len(attempts), ends=ends, gained=gained)
    said: list[Told] = [(head, [one for places in firsts for one in places])]
    stuck = run["stuck_attempts"]
    if stuck and stuck > 1 and run["stuck_iteration"] is not None:
        lost = run["lost_iterations"]
        words = "" if lost is None else say(": {lost}", lost=_lost(lost, run["lost_s"]))
        sentence = say(
            "The last {stuck} began at iteration {at:,} and saved nothing{words}.",
            stuck=stuck,
            at=run["stuck_iteration"],
            words=words,
        )
        said.append((sentence, [place for story in told[-stuck:] for place in story.evidence[-1]]))
    last = told[-1]
    sentence = say(
        "Attempt {attempt}: {sentence}", attempt=last.attempt, sentence=last.sentences[0]
    )
    said.append((sentence, list(last.evidence[0])))
    return _story(None, said)
