"""Secrets in tables, in commands whose options are one letter, and in prose.

`| password | … |`, `mysql -p…`, `your password is …`: nothing but the words around it tells that a
value is one, and the same words stand in ordinary text, so the value has to look drawn or mixed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hcp_logscan.reporting.secret_names import is_secret, kind_of, looks_random, strength
from hcp_logscan.reporting.secret_shapes import Context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hcp_logscan.reporting.secret_shapes import Span

_SHORTEST: Final = 5
_NO_SECRET: Final = re.compile(r"(?i:sha-?\d|md5|base64|utf-?8|bcrypt|argon2|v?\d+(?:\.\d+)+)")
_VARIABLE: Final = re.compile(r"[$%{\[<(*-]")


def _mixed(value: str) -> bool:
    """Letters with digits or punctuation: no word, no number, and nothing that stands for one.

    >>> [_mixed(value) for value in ("hunter2!x", "required", "12345", "SHA256-hashed", "$PW")]
    [True, False, False, False, False]
    """
    if len(value) < _SHORTEST or _VARIABLE.match(value) or _NO_SECRET.match(value):
        return False
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _given(value: str) -> bool:
    return not _VARIABLE.match(value)


def _phrase(kind: str, hint: str, pattern: str, holds: Callable[[str], bool] = _mixed) -> Context:
    return Context(kind, hint, re.compile(pattern), holds)


def _option(programs: str, options: str, holds: Callable[[str], bool] = _given) -> Context:
    """What follows an option of these programs on a command line."""
    value = r"[\"']?(?P<v>[^\s\"']{2,256})"
    pattern = rf"\b(?:{programs})\b[^\n]{{0,200}}?\s(?:{options}){value}"
    return _phrase("password", rf"\b(?:{programs})\b", pattern, holds)


_IS: Final = r"(?: (?:is|was)(?: now| set to| still)?:? | to | ?-> ?)[\"'`]?"
_END: Final = r"(?=[\"'`]|[.,;:)!]?(?:\s|$))"
_WORD: Final = "(?i:passcode|passphrase|passw(?:or)?d)"
_OTHER: Final = "(?i:token|secret|(?:access|api|auth|license|private|secret)[ _-]key)"

PHRASES: Final = (
    _option("mysql|mysqladmin|mysqldump|mariadb|mariadb-dump", "-p", _mixed),
    _option("mongo|mongodump|mongoexport|mongorestore|mongosh", "-p ", _mixed),
    _option("ldap(?:add|delete|modify|passwd|search|whoami)", "-w "),
    _option("redis-cli", "(?:-a|--pass)[ =]"),
    _option("openssl", "(?:-pass(?:in|out)?[ =]pass:|-k )"),
    _option("unzip|zip", "-P ?", _mixed),
    _option("7z|7za", "-p", _mixed),
    _option("smbclient|rpcclient", r"-U ?[\"']?[^\s%\"']{1,128}%"),
    _option("http|https|xh", r"(?:-a|--auth)[ =][\"']?[^\s:\"']{1,128}:", _mixed),
    _phrase(
        "password",
        "(?i:identified )",
        r"(?i:\bidentified (?:with [\w\"']{1,40} )?by) [\"'](?P<v>[^\"'\n\[]{1,256})",
    ),
    _phrase(
        "password",
        _WORD + _IS,
        rf"\b{_WORD}{_IS}(?P<v>[^\s\"'`]{{5,256}}?){_END}",
    ),
    _phrase(
        "token",
        _OTHER + _IS,
        rf"\b{_OTHER}{_IS}(?P<v>[^\s\"'`]{{16,256}}?){_END}",
        looks_random,
    ),
)

_BAR: Final = "[|\u2502\u2503]"
_CELL: Final = re.compile(
    rf"{_BAR}[ \t]{{0,64}}(?P<name>[A-Za-z][\w.-]{{1,80}})[ \t]{{0,64}}{_BAR}[ \t]{{0,64}}"
    rf"(?P<v>[^\s|\u2502\u2503]{{2,512}})[ \t]{{0,256}}(?={_BAR}|(?m:$))"
)
_CSH: Final = re.compile(r"\bsetenv (?P<name>[A-Za-z_]\w{1,80}) [\"']?(?P<v>[^\s\"']{2,512})")
_NAMED_HINT: Final = (
    r"\bsetenv |(?i:auth|jwt|key|pass\w{0,6}|pat|pwd|secret|tokens?)[ \t]{0,64}" + _BAR
)

HINT: Final = "|".join([_NAMED_HINT, *sorted({phrase.hint for phrase in PHRASES})])
"""Rust regex: texts without it hold no such phrase."""


def phrases(text: str) -> Iterator[Span]:
    """Secrets in table cells, commands and sentences."""
    for pattern in (_CELL, _CSH):
        for match in pattern.finditer(text):
            how, value = strength(match["name"]), match["v"]
            if how and _mixed(value) and is_secret(value, how, quoted=False):
                yield match.start("v"), match.end("v"), kind_of(match["name"])
    for phrase in PHRASES:
        for match in phrase.pattern.finditer(text):
            if phrase.holds(match["v"]):
                yield match.start("v"), match.end("v"), phrase.kind
