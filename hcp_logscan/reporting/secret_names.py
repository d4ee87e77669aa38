r"""Secrets that are known by the name they are given to: `password=…`, `--api-key …`, `token: …`.

`WANDB_API_KEY=…` in an environment, `"hf_token": "…"` in JSON, `api_key: …` in YAML,
`wandb_api_key ......... …` in an argument dump, `--token …` on a command line. The name has to
*end* in a word for a secret (`tokenizer`, `token_dispatcher_type` and `secret_name` do not), and
the value must look like one: nothing, numbers, Booleans, paths, variables, code and prose do not.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hcp_logscan.reporting.secret_shapes import Span

Strength = Literal["sure", "random"]
"""`sure`: any value that can be one is a secret; `random`: only one that looks random."""

_WORD: Final = (
    "passw(?:or)?d|passphrase|passwd|pwd|pass|secret|tokens?|credentials?|key|auth|pat|jwt"
    "|connection[_-]?string"
)
_TAIL: Final = r"(?:[_-]?\d{1,2}|[_-]value)?"
_CLOSE: Final = r"\\{0,3}[\"'`]?\]?"
_SEPARATOR: Final = r"[ \t]{0,48}(?:=>|:=|=(?!=)|:(?![=:/]))|\s\.{2,}(?=\s)"
_NAMED: Final = re.compile(
    rf"(?i:(?P<word>{_WORD}){_TAIL})(?P<close>{_CLOSE})"
    rf"(?:(?P<separator>{_SEPARATOR})[ \t]{{0,8}}|,?[ \t]{{1,4}}(?=[^\s=:|]))"
)

NAME_HINT: Final = (
    rf"(?i:(?:{_WORD}){_TAIL}){_CLOSE}(?:[ \t]{{0,48}}[=:]|\s\.\.)"
    rf"|\([\"'][A-Za-z0-9_.-]{{0,64}}(?i:(?:{_WORD}){_TAIL})[\"'], "
    rf"|(?:^|[\s\[,'\"=])--?[A-Za-z0-9_.-]{{0,48}}(?i:(?:{_WORD}){_TAIL})[\"']?,?\s"
)
"""Rust regex: texts without it name no secret."""

_NAME_CHARACTERS: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
)
_LONGEST_NAME: Final = 80

_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_KEY_OF: Final = frozenset(
    {"access", "account", "api", "auth", "encryption", "license", "master", "private", "secret"}
    | {"shared", "signing", "storage", "subscription", "session", "deploy", "service", "ngc", "ssh"}
    | {"wandb", "comet", "openai", "anthropic", "hf", "app"}
)
"""Before `key`: a key that opens something."""

_NOT_KEY_OF: Final = frozenset(
    {"cache", "kernel", "hash", "primary", "foreign", "sort", "partition", "dict", "state", "group"}
    | {
        "store",
        "public",
        "index",
        "lookup",
        "metric",
        "config",
        "tensor",
        "param",
        "module",
        "host",
    }
    | {
        "num",
        "query",
        "image",
        "text",
        "data",
        "dataset",
        "loss",
        "label",
        "pub",
        "bucket",
        "object",
    }
)
"""Before `key`: a key into a table."""

_NOT_TOKEN_OF: Final = frozenset(
    {"pad", "padding", "eos", "bos", "eod", "eot", "unk", "mask", "cls", "sep", "image", "video"}
    | {"audio", "vision", "special", "next", "per", "max", "min", "begin", "end", "start", "stop"}
    | {"first", "last", "think", "prompt", "unexpected", "expected", "invalid", "unknown", "sot"}
    | {"num", "extra", "new", "prefix", "suffix", "middle", "fim", "target", "source", "input"}
    | {"output", "current", "previous", "every", "each", "a", "the", "decoder", "encoder", "ignore"}
    | {"of", "by", "text", "placeholder", "boi", "eoi", "img", "chat", "separator", "sentinel"}
)
"""Before `token`: a piece of text."""

_PASS_OF: Final = frozenset(
    {"db", "user", "smtp", "redis", "mysql", "postgres", "pg", "root", "admin", "mongo", "http"}
    | {"https", "proxy", "ftp", "ssh", "sudo", "mail", "git", "registry", "docker", "mlflow"}
)


@lru_cache(maxsize=4096)
def strength(name: str) -> Strength | None:
    """How far a name speaks for a secret; None if it does not.

    >>> strength("WANDB_API_KEY"), strength("pad_token"), strength("SERVICE_X_KEY")
    ('sure', 'random', 'random')
    """
    words = [part.lower() for part in _PARTS.findall(name)]
    while words and (words[-1].isdigit() or words[-1] == "value"):
        words.pop()
    if not words:
        return None
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if re.search(r"(?:password|passwd|passphrase)$", last):
        return "sure"
    if last == "secret" or re.search(r"[a-z]secret$", last):
        return None if before == "pull" else "sure"
    if last in {"credential", "credentials"} or (last, before) == ("string", "connection"):
        return "random"
    if last == "pwd":
        return "sure" if before and before != "old" else None
    if last == "pass":
        return "sure" if before in _PASS_OF else None
    if last == "jwt":
        return "sure"
    if last in {"auth", "pat", "tokens"}:
        return "random"
    if last.endswith("token"):
        return "random" if (last.removesuffix("token") or before) in _NOT_TOKEN_OF else "sure"
    if last.endswith("key"):
        return _of_key(last.removesuffix("key") or before)
    return None


def _of_key(owner: str) -> Strength | None:
    if owner in _KEY_OF:
        return "sure"
    return None if not owner or owner in _NOT_KEY_OF else "random"


_NOTHING: Final = frozenset(
    {"", "none", "null", "nil", "undefined", "~", "true", "false", "yes", "no", "on", "off", "nan"}
    | {"inf", "n/a", "na", "default", "auto", "required", "optional", "str", "string", "int"}
    | {"bool", "bytes", "float", "object", "any", "hidden", "redacted", "masked", "unset", "notset"}
    | {"invalid", "expired", "incorrect", "wrong", "rejected", "denied", "failed", "found", "not"}
    | {"valid", "error", "unauthorized", "ok", "changeme"}
    | {"missing", "empty", "disabled", "enabled", "env", "environment", "prompt", "file", "keyring"}
)
_NO_SECRET: Final = re.compile(
    r"""
      [-+]?(?:\d[\d_.,]*(?:[eE][-+]?\d+)?|0x[0-9a-fA-F]{1,16})%?   # a number
    | (?:~|\.{1,2})?/(?:(?:[a-z0-9_.-]+|[A-Za-z]{3,16})(?:/.*)?)?  # a path
    | [a-z0-9_.-]{1,80}(?:/[a-z0-9_.-]{1,80})+/?                  # a relative one
    | [A-Za-z]:[\\/].*
    | [A-Za-z][A-Za-z0-9+.-]{1,20}://.*                           # URLs have rules of their own
    | [^/\s]*/.*\.[A-Za-z0-9]{1,8}                                # a relative path to a file
    | <.*> | \[.*\] | \{.*\} | \(.*\) | \[redacted.*              # <hidden>, [PAD], {name}
    | \$\w+ | \$\{.* | \$\(.* | %\w+% | %[a-z] | %\(.* | `.*    # variables, commands
    | [*.xX_?\u2022-]+ | \w{0,4}\*{3,}\w{0,4} | \.{3}.*           # masked already
    | (?:your|insert|change|replace)[_-].* | my[_-](?:token|key|secret|password|api).*
    """,
    re.VERBOSE | re.DOTALL,
)
_CODE: Final = re.compile(
    r"(?:self|cls|args|cfg|config|conf|os|sys|env|ctx|settings|opts|options|params|kwargs|request"
    r"|secrets|FLAGS|this|parser|hparams)\..*"
    r"|[A-Za-z_][\w.]*[(\[].*"
    r"|[A-Za-z_]+(?:\.[A-Za-z_]+)+"
    r"|[\[({<].*|[bfru]{0,2}[\"'].*",
    re.DOTALL,
)
_NAMES_ONE: Final = re.compile(r"[A-Za-z_][A-Za-z_.-]*:?")
_SECRET_WORD: Final = re.compile(r"(?i:token|key|secret|passw|auth|cred|pwd)")
_LOOKS: Final = re.compile(r"[A-Za-z0-9+/_=.~!@#$%^&*:-]{16,}")
_DIGEST: Final = re.compile(r"(?:sha\d{1,3}:|0x)?(?:[0-9a-f-]{8,}|[0-9A-F-]{8,})")


def is_secret(value: str, how: Strength, *, quoted: bool = True) -> bool:
    """Whether a value of a secret's name is one. Unquoted ones may be code as well.

    >>> [is_secret(v, "sure") for v in ("hunter2", "None", "4096", "/data/token", "<pad>")]
    [True, False, False, False, False]
    """
    value = value.strip()
    if value.lower() in _NOTHING or _NO_SECRET.fullmatch(value) or len(value) < 2:
        return False
    if not quoted and _CODE.fullmatch(value):
        return False
    if not quoted and _NAMES_ONE.fullmatch(value) and _SECRET_WORD.search(value):
        return False  # token=hf_token, --password PASSWORD
    return how == "sure" or looks_random(value)


def looks_random(value: str) -> bool:
    """Whether a value was drawn by a machine and is no digest: long, three kinds of characters.

    >>> looks_random("q7Zp" * 2 + "Xw3Lm9Ta2Kd8"), looks_random("layers.0.mlp_Linear1.weight")
    (True, False)
    """
    if not _LOOKS.fullmatch(value) or _DIGEST.fullmatch(value):
        return False
    kinds = (str.islower, str.isupper, str.isdigit)
    longest = max((run for run in re.split(r"[^A-Za-z0-9]", value)), key=len)
    if len(longest) < 12 or not all(any(map(kind, longest)) for kind in kinds):
        return False
    return _bits(longest) > 3.0


def is_digest(value: str) -> bool:
    """Whether a value is as long as a digest and nothing but hexadecimal digits."""
    return re.fullmatch(r"[0-9a-f]{32,}|[0-9A-F]{32,}", value) is not None


def _bits(text: str) -> float:
    """Shannon entropy in bits per character."""
    total = len(text)
    return -sum(n / total * math.log2(n / total) for n in Counter(text).values())


_YAML_TAG: Final = re.compile(r"!!?[a-z]{1,16}[ \t]{1,4}")
_QUOTED: Final = re.compile(r"(?P<open>\\{0,3}(?P<quote>[\"'`]))")
_PLAIN: Final = re.compile(
    r"(?:[^\s,;&|\"'`)\]}>\\]|\\(?![nrt\"'])"
    r"|[,;&|)\]}>](?![\s\"',;&|)\]}>\\]|\Z|[A-Za-z_][\w.-]{0,64}[=:]))++"
)
_OTHER_OPTION: Final = re.compile(r"-|[A-Za-z_][\w.]{0,64}=(?!=?\Z)")
_LONGEST_VALUE: Final = 4_096


def _value_at(text: str, start: int) -> tuple[int, int, bool]:
    """Beginning and end of the value that stands there, and whether it is quoted."""
    if match := _YAML_TAG.match(text, start):
        start = match.end()
    if match := _QUOTED.match(text, start):
        mark, begin = match["open"], match.end()
        limit = min(begin + _LONGEST_VALUE, len(text))
        end = text.find(mark, begin, limit)
        while mark == match["quote"] and end > begin and text[end - 1] == "\\":
            end = text.find(mark, end + 1, limit)
        line_end = text.find("\n", begin, limit)
        ends = [place for place in (end, line_end) if place >= 0]
        return begin, min(ends, default=limit), True
    match = _PLAIN.match(text, start, min(start + _LONGEST_VALUE, len(text)))
    return start, match.end() if match else start, False


def named(text: str) -> Iterator[Span]:
    """Values of names that end in a word for a secret."""
    position = 0
    while match := _NAMED.search(text, position):
        position = match.end("word")
        name, before = _name(text, match.start("word"), match.end("word"))
        pair = text[max(before - 2, 0) : before] in {"('", '("'}  # os.environ.items()
        if match["separator"] is None and not (name.startswith("-") or (pair and match["close"])):
            continue
        how = strength(name)
        if how is None or _follows_word_for_text(text, name, before):
            continue
        start, end, quoted = _value_at(text, match.end())
        value = text[start:end]
        if match["separator"] is None and _OTHER_OPTION.match(value):
            continue
        if _is_prose(text, match, value, end, quoted=quoted):
            continue
        if start < end and is_secret(value, how, quoted=quoted):
            yield start, end, _kind(name)
            position = end


def _name(text: str, start: int, end: int) -> tuple[str, int]:
    """The whole name that ends there, and where it begins."""
    begin = start
    while begin > max(start - _LONGEST_NAME, 0) and text[begin - 1] in _NAME_CHARACTERS:
        begin -= 1
    name = text[begin:end]
    if name.lower() in {"key", "token", "secret"} and text[begin - 1 : begin] in {" ", "-"}:
        head = text[max(begin - 24, 0) : begin - 1].split()
        if head and head[-1].lower() in _KEY_OF:  # prose: `API key: …`
            return f"{head[-1]}_{name}", begin - 1 - len(head[-1])
    return name, begin


def _follows_word_for_text(text: str, name: str, begin: int) -> bool:
    """`unexpected token: x`, `the next token: x`: the name is the last word of a phrase."""
    words = text[max(begin - 24, 0) : begin].split()
    blank = text[begin - 1 : begin].isspace()
    return blank and name.lower() == "token" and bool(words) and words[-1].lower() in _NOT_TOKEN_OF


def _is_prose(text: str, match: re.Match[str], value: str, end: int, *, quoted: bool) -> bool:
    """`Invalid password: authentication failed`: a word, and the sentence goes on."""
    if quoted or (match["separator"] or "").strip() != ":" or match["close"]:
        return False
    goes_on = re.match(r"[.,;]?\s+[A-Za-z(]|[.!?]\s*\Z", text[end : end + 16])
    return value.isalpha() and goes_on is not None


def _kind(name: str) -> str:
    """What a reader is told that stood there."""
    low = name.lower()
    for word, kind in (("pass", "password"), ("pwd", "password"), ("token", "token")):
        if word in low:
            return kind
    return "key" if low.endswith("key") else "secret"


def kind_of(name: str) -> str:
    """The kind of secret that a name stands for, for values in fields of their own."""
    return _kind(name)
