"""Redaction: a report without the secrets that its logs hold, made before any renderer sees it.

At the level `all` also without the names of hosts, users and addresses (`identities`).

`redact` walks the whole tree of frozen dataclasses, whatever its fields are, so that a field added
later is covered. Equal secrets get equal placeholders (`[redacted token 2]`, numbered in the order
of the walk, never a hash); a secret that one line names is hidden wherever else it stands. Only
text changes: places, numbers and the shape of the report stay.

A level is a tuple of detectors. A further level is one more tuple.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from hcp_logscan.model.errors import HcpLogscanError
from hcp_logscan.model.finding import MAX_TEXT
from hcp_logscan.model.report import Redaction
from hcp_logscan.reporting import (
    identity_shapes,
    secret_blocks,
    secret_names,
    secret_phrases,
    secret_shapes,
)
from hcp_logscan.reporting.identities import Pseudonyms
from hcp_logscan.reporting.spans import apart, merged
from hcp_logscan.reporting.walk import Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from hcp_logscan.model.report import RedactionLevel, ReportData
    from hcp_logscan.model.said import Said
    from hcp_logscan.reporting.secret_shapes import Span
    from hcp_logscan.reporting.walk import Lines


@dataclass(frozen=True, slots=True)
class Detector:
    """One way to find what is to be hidden."""

    hint: str
    "Rust regex; a text without it is not searched. It may match too much, never too little."

    find: Callable[[str, bool], Iterable[Span]]
    "Spans in a text; the flag says that the text may have been cut in the middle of a word."

    across: bool = False
    "Looks at neighbouring lines together."

    names: bool = False
    "Finds who and where, not what lets in: it gets a pseudonym once secrets are hidden."


SECRETS: Final = (
    Detector(secret_shapes.TOKEN_HINT, lambda text, cut: secret_shapes.tokens(text, cut=cut)),
    Detector(
        "|".join(sorted({context.hint for context in secret_shapes.CONTEXTS})),
        lambda text, cut: secret_shapes.in_context(text, cut=cut),
    ),
    Detector(secret_names.NAME_HINT, lambda text, _: secret_names.named(text)),
    Detector(secret_phrases.HINT, lambda text, _: secret_phrases.phrases(text)),
    Detector(secret_blocks.HINT, lambda text, _: secret_blocks.in_text(text), across=True),
)
"""What `secrets` hides."""

ALL: Final = (
    *SECRETS,
    Detector(identity_shapes.HINT, lambda text, _: identity_shapes.identities(text), names=True),
)
"""What `all` hides: hosts, users, addresses and home paths besides."""

LEVELS: Final[Mapping[RedactionLevel, tuple[Detector, ...]]] = {
    "secrets": SECRETS,
    "all": ALL,
    "none": (),
}

_CUTS: Final = frozenset({200, MAX_TEXT, 16_384})
"""Lengths at which texts are cut on their way here: `RankRow.last_line`, evidence, events."""

_PLACEHOLDER: Final = re.compile(r"\[redacted [a-z][a-z -]{0,40} (\d{1,6})\]")
_PLACEHOLDER_HINT: Final = r"\[redacted "
_MOST_ROUNDS: Final = 8
_RUN: Final = re.compile("[A-Za-z0-9]{8,}")


def redact(
    data: ReportData, level: RedactionLevel = "secrets", hosts: Iterable[str] = ()
) -> ReportData:
    """The same report without secrets, and with what was hidden in `redaction`.

    `hosts` are names known from the structure of the logs, which `all` hides wherever they stand.
    Redacting twice changes nothing, and `none` leaves a report as it is.
    """
    detectors = LEVELS[level]
    if not detectors:
        return data
    body = replace(data, redaction=Redaction(), said={})
    seen = _Collector()
    Walk(seen).walk(body)
    names = Pseudonyms(hosts) if level == "all" else None
    vault = _Vault(_suspects(detectors, list(seen.texts)), names)
    if names is not None:
        names.begin(seen.texts)
    if vault.suspects or seen.named or names is not None:
        body = Walk(vault).walk(body)
    if vault.anchors or (names is not None and names.known):
        body = Walk(_Again(vault)).walk(body)
    before, count = data.redaction, names.count if names is not None else 0
    hidden = before.hidden + vault.hidden
    return replace(
        body,
        redaction=Redaction(level, hidden, before.pseudonyms + count),
        said=_said(data.said, vault, detectors),
    )


def _said(
    book: Mapping[str, Said], vault: _Vault, detectors: Sequence[Detector]
) -> Mapping[str, Said]:
    """How the redacted texts are put together of redacted values.

    A text that its own values, redacted one by one, do not give is left out, and so is shown as it
    is redacted in English: a translation shows nothing that the redacted text does not.
    """
    if not book or not (vault.suspects or vault.anchors or vault.names is not None):
        return book
    inner = {v for said in book.values() for _, v in said.values if isinstance(v, str)}
    inner |= {part for said in book.values() for part in said.parts or ()}
    texts = [text for text in {**book, **dict.fromkeys(inner)} if text not in vault.suspects]
    vault.suspects = {**vault.suspects, **_suspects(detectors, texts)}
    shown: dict[str, Said] = {}
    for text, said in book.items():
        values = tuple(
            (name, vault.again(vault.text(value)) if isinstance(value, str) else value)
            for name, value in said.values
        )
        parts = said.parts and tuple(vault.again(vault.text(part)) for part in said.parts)
        new = replace(said, values=values, parts=parts)
        if new.english() == vault.again(vault.text(text)):
            shown[new.english()] = new
    return shown


def redact_text(text: str, level: RedactionLevel = "secrets") -> str:
    """One message without secrets: for what is printed beside a report."""
    detectors = LEVELS[level]
    if not detectors:
        return text
    vault = _Vault({text: detectors}, Pseudonyms() if level == "all" else None)
    if vault.names is not None:
        vault.names.begin([text])
    return vault.again(vault.text(text))


AnError = TypeVar("AnError", bound=HcpLogscanError)


def redact_error(error: AnError, level: RedactionLevel = "secrets") -> AnError:
    """The error without secrets: messages quote names of files, jobs and runs."""
    message = redact_text(str(error), level)
    return error if message == str(error) else type(error)(message)


def _suspects(detectors: Sequence[Detector], texts: Sequence[str]) -> dict[str, list[Detector]]:
    """Texts that may hold a secret, or a placeholder, and the detectors to ask.

    All texts are looked at once, in Rust: most of a report is ordinary and costs no more.
    """
    import polars as pl

    column = pl.Series([_plain(text) for text in texts], dtype=pl.String)
    hints = "|".join((*(detector.hint for detector in detectors), _PLACEHOLDER_HINT))
    found = column.str.contains(hints).arg_true()
    some = column.gather(found)
    suspects: dict[str, list[Detector]] = {texts[index]: [] for index in found.to_list()}
    for detector in detectors:
        for index in some.str.contains(detector.hint).arg_true().to_list():
            suspects[texts[found[index]]].append(detector)
    return suspects


class _Vault:
    """The secrets of one report: each has one placeholder."""

    def __init__(
        self, suspects: Mapping[str, Sequence[Detector]], names: Pseudonyms | None = None
    ) -> None:
        self.suspects = suspects
        "Texts that may hold a secret, and the detectors to ask."

        self.names = names
        "None where names are shown."

        self.anchors: dict[str, list[tuple[int, str]]] = {}
        "Longest run of letters and digits -> where it begins in which secrets."

        self._placeholders: dict[str, str] = {}
        self._done: dict[str, str] = {}
        self._next = 0
        self._used = {int(number) for text in suspects for number in _PLACEHOLDER.findall(text)}

    @property
    def hidden(self) -> int:
        """How many distinct secrets there were."""
        return len(self._placeholders)

    def text(self, text: str) -> str:
        """The text without secrets."""
        detectors = self.suspects.get(text)
        if detectors is None:
            return text
        if text not in self._done:
            self._done[text] = self._settled(text, detectors)
        return self._done[text]

    def lines(self, lines: Lines) -> Lines:
        """Neighbouring lines without secrets, and without what only several lines tell."""
        across = {d for _, text in lines for d in self.suspects.get(text, ()) if d.across}
        shown = [self.text(text) for _, text in lines]
        if across:
            shown = self._settled("\n".join(shown), list(across)).split("\n")
        if len(shown) != len(lines):  # a line that held a line end of its own
            return tuple((number, self.text(text)) for number, text in lines)
        return tuple((number, text) for (number, _), text in zip(lines, shown, strict=True))

    def value(self, name: str, value: str) -> str:
        """A value of its own field, which the name of another field says what it is."""
        how = secret_names.strength(name)
        if how is None or not secret_names.is_secret(value, how) or _covered(value):
            shown = self.text(value)
            return shown if self.names is None else self._named(name, shown)
        return self._placeholder(value.strip(), secret_names.kind_of(name))

    def _named(self, name: str, value: str) -> str:
        """The value without what `name=value` says of it: a host, a user."""
        lead = f"{name}="
        spans = identity_shapes.identities(lead + value)
        found = [(start - len(lead), end - len(lead), kind) for start, end, kind in spans]
        return self._put(value, [span for span in found if span[0] >= 0], [])

    def _settled(self, text: str, detectors: Sequence[Detector]) -> str:
        """The text after as many rounds as change it: what is left shows no secret."""
        for names in (False, True):
            some = [detector for detector in detectors if detector.names is names]
            for _ in range(_MOST_ROUNDS if some else 0):
                before = text
                text = self._once(text, some)
                if text == before:
                    break
        return text

    def _once(self, text: str, detectors: Sequence[Detector]) -> str:
        hidden = [match.span() for match in _PLACEHOLDER.finditer(text)]
        cut = len(text) in _CUTS and not hidden
        spans = [span for detector in detectors for span in detector.find(text, cut)]
        return self._put(text, spans, hidden) if spans else text

    def _put(self, text: str, spans: list[Span], hidden: list[tuple[int, int]]) -> str:
        """The text with placeholders for these spans."""
        parts: list[str] = []
        position = 0
        for start, end, kind in merged(spans, hidden):
            secret = text[start:end]
            if _covered(secret):
                continue
            # as many lines as before, so that numbered lines stay in their places
            count = secret.count("\n") + 1
            placeholder = "\n".join([self._placeholder(secret, kind)] * count)
            parts += (text[position:start], placeholder)
            position = end
        return "".join((*parts, text[position:]))

    def _placeholder(self, secret: str, kind: str) -> str:
        if self.names is not None and kind in identity_shapes.KINDS:
            return self.names(kind, secret)
        if secret not in self._placeholders:
            self._next += 1
            while self._next in self._used:
                self._next += 1
            self._placeholders[secret] = f"[redacted {kind} {self._next}]"
            self._remember(secret)
        return self._placeholders[secret]

    def _remember(self, secret: str) -> None:
        """Hide it elsewhere too, unless a word may be meant there."""
        if not secret_names.looks_random(secret) and not secret_names.is_digest(secret):
            return
        longest = max(_RUN.finditer(secret), key=lambda match: len(match[0]), default=None)
        if longest is not None:
            self.anchors.setdefault(longest[0], []).append((longest.start(), secret))

    def again(self, text: str) -> str:
        """The text without the secrets that are known by now."""
        spans = [
            (match.start() - offset, match.start() - offset + len(secret), "")
            for match in _RUN.finditer(text)
            for offset, secret in self.anchors.get(match[0], ())
            if text.startswith(secret, max(match.start() - offset, 0))
        ]
        parts: list[str] = []
        position = 0
        for start, end, _ in apart(spans):
            parts += (text[position:start], self._placeholders[text[start:end]])
            position = end
        text = "".join((*parts, text[position:])) if parts else text
        return text if self.names is None else self.names.hide(text)


class _Again:
    """The second walk: secrets that the first one found, wherever they stand."""

    def __init__(self, vault: _Vault) -> None:
        self._vault = vault
        self._done: dict[str, str] = {}

    def text(self, text: str) -> str:
        """The text without the secrets that are known by now."""
        if text not in self._done:
            self._done[text] = self._vault.again(text)
        return self._done[text]

    def lines(self, lines: Lines) -> Lines:
        """The same for numbered lines."""
        return tuple((number, self.text(text)) for number, text in lines)

    def value(self, name: str, value: str) -> str:
        """The same for a named value."""
        del name
        return self.text(value)


class _Collector:
    """Every text of a report, changing none."""

    def __init__(self) -> None:
        self.texts: dict[str, None] = {}
        self.named = False
        "Whether a field says of another one that it is a secret."

    def text(self, text: str) -> str:
        """Take a text."""
        self.texts[text] = None
        return text

    def lines(self, lines: Lines) -> Lines:
        """Take numbered lines."""
        self.texts.update((text, None) for _, text in lines)
        return lines

    def value(self, name: str, value: str) -> str:
        """Take a named value."""
        self.named = self.named or secret_names.strength(name) is not None
        return self.text(value)


def _plain(text: str) -> str:
    """The text as polars can hold it: file names may carry bytes that are no UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _covered(secret: str) -> bool:
    """Whether nothing is left to hide."""
    return not _PLACEHOLDER.sub("", secret).strip()
