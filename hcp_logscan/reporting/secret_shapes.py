"""Secrets that are known by their own shape, or by the few words that stand around them.

Shapes are those the services publish for secret scanners. Prefixes are literal, bodies are one
character class with one count, so that every pattern is linear in the length of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_B64URL: Final = "[A-Za-z0-9_-]"
_ALNUM: Final = "[A-Za-z0-9]"


Span = tuple[int, int, str]
"""Beginning, end and kind of a secret in a text."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A token with a prefix of its own."""

    kind: str
    prefix: str
    "Regular expression of what tells it from everything else; matches in `re` and in Rust."

    body: str
    "What follows, as long as the service makes it at least."

    mixed: bool = False
    "Demand a digit in the body: words joined by dashes may stand behind such a prefix."


SHAPES: Final = (
    Shape("github token", "gh[pousr]_", _ALNUM + "{36,}+"),
    Shape("github token", "github_pat_", "[A-Za-z0-9_]{22,}+"),
    Shape(
        "gitlab token",
        "gl(?:agent|cbt|dt|ffct|ft|imt|oas|pat|ptt|rt|soat)-",
        "[A-Za-z0-9_.-]{20,}+",
    ),
    Shape("hugging face token", "hf_", _ALNUM + "{30,}+"),
    Shape("hugging face token", "api_org_", "[A-Za-z]{34,}+"),
    Shape("anthropic key", "sk-ant-", _B64URL + "{20,}+"),
    Shape(
        "openai key",
        "sk-(?:admin|None|or-v1|proj|service|svcacct)-",
        _B64URL + "{20,}+",
        mixed=True,
    ),
    Shape("openai key", "sk-", _ALNUM + "{20,}+", mixed=True),
    Shape("langfuse key", "sk-lf-", _B64URL + "{20,}+"),
    Shape("aws key id", "(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)", "[A-Z0-9]{16}(?![A-Za-z0-9])"),
    Shape("alibaba key id", "LTAI", _ALNUM + "{12,}+", mixed=True),
    Shape("tencent key id", "AKID", _ALNUM + "{32,}+", mixed=True),
    Shape("google key", "AIza", _B64URL + "{35,}+"),
    Shape("google token", r"ya29\.", _B64URL + "{20,}+"),
    Shape("google client secret", "GOCSPX-", _B64URL + "{28,}+"),
    Shape("slack token", "xox[abeoprs]-", "[A-Za-z0-9-]{10,}+"),
    Shape("slack token", r"xapp-\d-", "[A-Za-z0-9-]{10,}+"),
    Shape("nvidia key", "nvapi-", _B64URL + "{40,}+"),
    Shape("docker token", "dckr_[op]at_", _B64URL + "{20,}+"),
    Shape("npm token", "npm_", _ALNUM + "{36,}+"),
    Shape("pypi token", "pypi-", _B64URL + "{50,}+", mixed=True),
    Shape("databricks token", "dapi", r"[0-9a-f]{32}(?:-\d)?"),
    Shape("stripe key", "(?:pk|rk|sk)_(?:live|prod|test)_", _ALNUM + "{10,}+"),
    Shape("webhook secret", "whsec_", "[A-Za-z0-9+/]{24,}+"),
    Shape("telegram token", r"\d{8,10}:AA", _B64URL + "{32,}+"),
    Shape("sendgrid key", r"SG\.", r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,}+"),
    Shape(
        "json web token",
        "eyJ",
        # the look-behind: one attempt per run of characters, however many `-eyJ` it holds
        r"(?<![_-]eyJ)[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+)?",
    ),
    Shape("wandb key", r"wandb_v\d_", "[A-Za-z0-9_]{30,}+"),
    Shape("replicate token", "r8_", _ALNUM + "{37,}+"),
    Shape("groq key", "gsk_", _ALNUM + "{40,}+"),
    Shape("xai key", "xai-", _ALNUM + "{60,}+"),
    Shape("perplexity key", "pplx-", _ALNUM + "{40,}+"),
    Shape("runpod key", "rpa_", _ALNUM + "{40,}+"),
    Shape("pinecone key", "pcsk_", "[A-Za-z0-9_]{40,}+"),
    Shape("langsmith key", "lsv2_(?:pt|sk)_", "[0-9a-f_]{32,}+"),
    Shape("grafana token", "gl(?:c|sa)_", "[A-Za-z0-9_+/=]{32,}+"),
    Shape("vault token", r"hv[bs]\.", _B64URL + "{24,}+"),
    Shape("digitalocean token", "do[opr]_v1_", "[0-9a-f]{64}"),
    Shape("linear key", "lin_api_", _ALNUM + "{32,}+"),
    Shape("notion token", "ntn_", _ALNUM + "{40,}+"),
    Shape("atlassian token", "ATATT3", "[A-Za-z0-9_=-]{50,}+"),
    Shape("tailscale key", "tskey-(?:api|auth|client)-", "[A-Za-z0-9-]{16,}+"),
    Shape("age key", "AGE-SECRET-KEY-1", "[0-9A-Z]{58}"),
)

TOKEN_HINT: Final = "|".join(sorted({shape.prefix for shape in SHAPES}))
"""Rust regex: texts without it hold no token by shape."""

_GROUPS: Final[Mapping[str, Shape]] = {f"s{n}": shape for n, shape in enumerate(SHAPES)}
_EDGE: Final = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt]))"
"""Where a word begins, in text as it is, in a URL and in a Python literal."""

_TOKEN: Final = re.compile(
    _EDGE + "(?:" + "|".join(f"(?P<{n}>{s.prefix}{s.body})" for n, s in _GROUPS.items()) + ")"
)
_CUT_TOKEN: Final = re.compile(
    _EDGE
    + "(?:"
    + "|".join(f"(?P<{n}>{s.prefix})" for n, s in _GROUPS.items())
    + r")(?P<rest>[A-Za-z0-9_.+/=-]+)\Z"
)
_LONGEST: Final = 512


def tokens(text: str, *, cut: bool) -> Iterator[Span]:
    """Tokens by shape; `cut` texts may end within one, which is then shorter than its shape."""
    for match in _TOKEN.finditer(text):
        shape = _GROUPS[match.lastgroup or ""]
        if not shape.mixed or any(map(str.isdigit, match[0])):
            yield match.start(), match.end(), shape.kind
    if cut:
        end = _CUT_TOKEN.search(text, max(len(text) - _LONGEST, 0))
        if end and not end["rest"].islower():  # words joined by dashes
            kind = next(shape.kind for name, shape in _GROUPS.items() if end[name])
            yield end.start(), end.end(), kind


@dataclass(frozen=True, slots=True)
class Context:
    """A secret known by what stands around it: the group `v` is the secret."""

    kind: str
    hint: str
    "Rust regex: texts without it are not searched."

    pattern: re.Pattern[str]
    holds: Callable[[str], bool]
    "Whether a value found there is a secret at all."


def _no_word(value: str) -> bool:
    """Prose and numbers are no secrets."""
    wordlike = value.islower() or value.isupper() or value.istitle()
    return not value.isdigit() and not (value.isalpha() and wordlike)


def _random(value: str) -> bool:
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _context(
    kind: str, hint: str, pattern: str, holds: Callable[[str], bool] = _no_word
) -> Context:
    return Context(kind, hint, re.compile(pattern), holds)


_VARIABLE: Final = re.compile(r"\$\{?\w+\}?|\*+|[xX]{3,}|%\w|\{\w*\}")
"""What stands for a secret without being one."""


def _no_variable(value: str) -> bool:
    return not _VARIABLE.fullmatch(value)


def _no_port(value: str) -> bool:
    return _no_variable(value) and not (value.isdigit() and len(value) <= 5)


_PROSE: Final = frozenset({"authentication", "authorization", "credentials", "required", "missing"})
_HEADER: Final = r"(?i:authorization)\\{0,3}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}[\"']?"
_SCHEME: Final = r"(?i:apikey|basic|bearer|digest|negotiate|token)[ \t]{1,4}"
_VALUE: Final = r"(?P<v>[^\s\"'\\,;\[\]<>(){}$]{6,4096})"
_LOGIN: Final = "(?i:login|sshpass)"

CONTEXTS: Final = (
    _context(
        "authorization",
        "(?i:authorization)",
        _HEADER + _SCHEME + _VALUE,
        lambda value: value not in _PROSE,
    ),
    _context("authorization", "(?i:authorization)", _HEADER + _VALUE),
    _context(
        "bearer token",
        "(?i:bearer) ",
        r"(?i:\bbearer) {1,4}(?P<v>[A-Za-z0-9._~+/=-]{16,4096})",
        _random,
    ),
    _context(
        "cookie",
        "(?i:cookie)[\"':]",
        r"(?i:\bcookie)[\"']?: {0,4}[\"']?(?P<v>[^\s\"'\[=]{1,128}=[^\"'\[]{6,4096})",
    ),
    # the user stays: the level `secrets` hides what lets somebody in, not who it is
    _context(
        "url password",
        "://",
        r"://[^\s/@:\"'<>\[\]]{0,128}:(?P<v>[^\s/\"'<>\[\]]{1,256})@",
        _no_port,
    ),
    _context(
        "url key", "://", r"://(?P<v>[^\s/@:\"'<>\[\]]{16,256})(?::x-oauth-basic|:)?@", _random
    ),
    _context(
        "webhook",
        "(?i:hook)",
        r"(?:hooks\.slack\.com/(?:services|triggers|workflows)|discord(?:app)?\.com/api/webhooks"
        r"|webhook\.office\.com/webhookb2"
        r"|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook)"
        r"/(?P<v>[A-Za-z0-9_/@.-]{8,512})",
    ),
    _context(
        "url key",
        "[?&;](?i:sig|key|x-)",
        r"[?&;](?i:sig|key|x-amz-(?:credential|security-token|signature)|x-goog-signature)="
        r"(?P<v>[A-Za-z0-9%+/=._~-]{16,4096})",
    ),
    _context(
        "password",
        "(?i:key|passwd|password|secret|token)>",
        r"<[\w.:-]{0,40}(?i:api[_-]?key|passwd|password|secret|token)>"
        r"(?P<v>[^<\s\[][^<\n]{0,512})</",
        _no_variable,
    ),
    _context(
        "wandb key",
        "(?i:wandb[ .]login|api[ _-]?key)",
        r"(?i:\bwandb[ .]login|api[ _-]?key)\b[^0-9A-Za-z\n]{1,8}"
        r"(?:(?:for|is|key|relogin|was)\b[^0-9A-Za-z\n]{1,8}){0,2}(?P<v>[0-9a-f]{40})(?![0-9a-f])",
    ),
    _context(
        "password",
        _LOGIN,
        r"\blogin[ \t]{1,4}[^\s\[]{1,128}[ \t]{1,4}password[ \t]{1,4}(?P<v>[^\s\[][^\s]{0,255})",
        _no_variable,
    ),
    _context(
        "password",
        _LOGIN,
        r"\b(?:acr|docker|nerdctl|oras|podman|registry|skopeo) login\b[^\n]{0,200}?"
        r"\s-p[= ]?[\"']?(?P<v>[^\s\"'\[$-][^\s\"']{0,255})",
        _no_variable,
    ),
    _context(
        "password",
        _LOGIN,
        r"\bsshpass[ \t]{1,4}-p ?[\"']?(?P<v>[^\s\"'\[$][^\s\"']{0,255})",
        _no_variable,
    ),
    _context(
        "password",
        r"curl",
        r"\bcurl\b[^\n]{0,200}?\s(?:-u|--user)[ =][\"']?[^\s:\"']{1,128}"
        r":(?P<v>[^\s\"'\[$][^\s\"']{0,255})",
        _no_variable,
    ),
)

_CUT_URL: Final = re.compile(r"://[^\s/@:\"'<>\[\]]{1,128}:(?P<v>[^\s/@\"'<>\[\]]{1,256})\Z")


def in_context(text: str, *, cut: bool) -> Iterator[Span]:
    """Secrets that are known by the words around them."""
    for context in CONTEXTS:
        for match in context.pattern.finditer(text):
            if context.holds(match["v"]):
                yield match.start("v"), match.end("v"), context.kind
    if cut:
        end = _CUT_URL.search(text, max(len(text) - _LONGEST, 0))
        if end and not end["v"].isdigit():  # a port
            yield end.start("v"), end.end("v"), "url password"
