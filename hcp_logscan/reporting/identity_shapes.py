"""Hosts, users and addresses in log text, known by their shape or by the words around them.

What the level `all` hides besides secrets. Patterns are bounded, and begin where a run of their
characters begins, so that each is linear in the length of the text.

Left alone: loopback and wildcard addresses, four numbers that a word of versions stands before,
clock times, module paths, accounts that every container has (`root`, `ubuntu`), public web sites.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hcp_logscan.reporting.secret_shapes import Span

Kind = Literal["host", "user", "ip", "email"]
KINDS: Final[tuple[Kind, ...]] = ("host", "user", "ip", "email")

PSEUDONYM: Final = re.compile(r"(?:host|user|ip|email)-[1-9]\d{0,6}")
"""What stands for a name; a real host of such a name gives nothing away either."""

FILE_SUFFIXES: Final = frozenset(
    {"log", "out", "err", "txt", "gz", "zst", "xz", "bz2", "json", "jsonl", "yaml", "yml"}
    | {"toml", "py", "pyc", "so", "c", "cc", "cpp", "cu", "h", "hpp", "md", "csv", "tar", "tgz"}
    | {"zip", "pt", "pth", "bin", "pkl", "pickle", "sh", "conf", "cfg", "ini", "html", "xml"}
    | {"stdout", "stderr", "npy", "idx", "sarif", "parquet", "whl", "ipynb", "rs", "go", "js"}
)

_GENERIC_HOSTS: Final = frozenset(
    {"localhost", "none", "null", "nil", "true", "false", "unknown", "default", "auto"}
    | {"ip6-localhost", "localhost.localdomain", "n/a", "any", "all"}
)
_GENERIC_USERS: Final = frozenset(
    {"root", "user", "users", "ubuntu", "centos", "debian", "admin", "administrator", "nobody"}
    | {"slurm", "runner", "jovyan", "docker", "vscode", "ec2-user", "azureuser", "nvidia", "git"}
    | {"default", "none", "null", "test", "guest", "www-data", "daemon", "system", "username"}
    | {"user_name", "your_name", "true", "false", "shared", "public", "common", "models", "data"}
    | {"home", "me", "you", "lib", "local", "site", "authorize", "settings", "login", "api"}
    | {"site-packages", "unknown", "pytorch", "jenkins", "builder"}
)

_CODE: Final = frozenset(
    {"args", "attribute", "bool", "bytes", "cfg", "cls", "conf", "config", "ctx", "dict", "env"}
    | {"getpass", "int", "kwargs", "list", "object", "opt", "options", "opts", "optional", "os"}
    | {"params", "platform", "pwd", "request", "required", "self", "set", "settings", "socket"}
    | {"str", "string", "sys", "tuple", "type", "address", "host", "hostname", "name", "port"}
    | {"proxy", "server", "xxx", "foo", "bar", "example"}
)
"""What stands where a name does in code, in its types and in its descriptions."""

_NAME: Final = r"(?>[A-Za-z0-9][A-Za-z0-9_-]{0,62}(?:\.[A-Za-z0-9][A-Za-z0-9_-]{0,62}){0,8})"
_START: Final = r"(?<![A-Za-z0-9_.-])"
_USER: Final = r"[A-Za-z_][A-Za-z0-9_.-]{0,62}[A-Za-z0-9_-]"
_IS: Final = r"(?:\\{0,2}[\"']?[ \t]{0,12}[=:][ \t]{0,12}\\{0,2}[\"']?|[ \t]\.{2,80}[ \t])"
_LOGIN: Final = r"(?:[^\s/@\"'<>]{1,300}|[^\s/@:]{0,64}:\[redacted [a-z ]{1,40} \d{1,6}\])@"
_LIST: Final = rf"(?P<v>{_NAME}(?:\[[A-Za-z]{{0,8}}\d[A-Za-z0-9,-]{{0,200}}\])?)"
"""A host, or several as Slurm abbreviates them: `node[01-04]`."""


def is_host(name: str) -> bool:
    """Whether a name that stands where hosts do is one.

    >>> [is_host(name) for name in ("node07", "hydra", "10.0.0.7", "localhost", "3", "host-2")]
    [True, True, False, False, False, False]
    """
    if name.lower() in _GENERIC_HOSTS or _is_code(name) or PSEUDONYM.fullmatch(name):
        return False
    return len(name) > 1 and any(map(str.isalpha, name)) and not _is_version(name)


def _is_code(name: str) -> bool:
    return name.lower().partition(".")[0] in _CODE


def _is_version(name: str) -> bool:
    return re.fullmatch(r"v?\d{1,4}(?:\.\d{1,6}){1,3}(?:[A-Za-z]{1,5}\d{0,5})?", name) is not None


def _numbered_host(name: str) -> bool:
    """A name that is a host's even where a word might stand: it has a digit or a domain."""
    suffix = name.rpartition(".")[2].lower()
    return is_host(name) and suffix not in FILE_SUFFIXES and any(map(str.isdigit, name))


def _certain_host(name: str) -> bool:
    """A name that stands behind `node` or `host`, where numbers and devices stand, too.

    >>> [_certain_host(name) for name in ("gpu-a01", "dgx12", "cpu0", "rank3", "memory", "a.log")]
    [True, True, False, False, False, False]
    """
    return _numbered_host(name) and _DEVICE.match(name) is None


_DEVICE: Final = re.compile(
    r"(?i:attempt|bf|cpu|cuda|device|eth|fp|gpu|group|ib|id|iter|layer|level|local|mlx|numa|port|rank"
    r"|socket|stage|step|task|tp|pp|dp|cp|v)[_-]?\d"
)


def is_user(name: str) -> bool:
    """Whether a name that stands where users do is somebody's.

    >>> [is_user(name) for name in ("alice", "root", "user-1", "x", "train.py")]
    [True, False, False, False, False]
    """
    if name.lower() in _GENERIC_USERS or _is_code(name) or PSEUDONYM.fullmatch(name):
        return False
    if len(name) < 2:
        return False
    stem, dot, suffix = name.rpartition(".")
    return not (dot and stem and suffix.lower() in FILE_SUFFIXES)


def _is_ipv4(text: str) -> bool:
    parts = text.split(".")
    if any((len(part) > 1 and part[0] == "0") or int(part) > 255 for part in parts):
        return False
    return int(parts[0]) not in {0, 127, 255}


def _is_ipv6(text: str) -> bool:
    """Eight groups, or fewer around `::` with a digit among enough characters.

    >>> [_is_ipv6(text) for text in ("fe80::1", "2001:db8:0:0:0:0:2:1", "12:34:56", "::1", "a::b")]
    [True, True, False, False, False]
    """
    if "::" in text and (len(text) < 6 or not any(map(str.isdigit, text))):
        return False
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


def _is_email(text: str) -> bool:
    local, _, domain = text.partition("@")
    suffix = domain.rpartition(".")[2].lower()
    return local != "git" and suffix not in FILE_SUFFIXES


@dataclass(frozen=True, slots=True)
class Shape:
    """A name known by what it looks like, or by what stands around it: the group `v` is it."""

    kind: Kind
    hint: str
    "Rust regex: texts without it are not searched."

    pattern: re.Pattern[str]
    holds: Callable[[str], bool]


def _host(hint: str, pattern: str, holds: Callable[[str], bool] = is_host) -> Shape:
    return Shape("host", hint, re.compile(pattern.replace("<host>", f"(?P<v>{_NAME})")), holds)


def _user(hint: str, pattern: str, holds: Callable[[str], bool] = is_user) -> Shape:
    return Shape("user", hint, re.compile(pattern.replace("<user>", f"(?P<v>{_USER})")), holds)


_VERSION: Final = re.compile(
    r"(?i:(?:version|ver|driver|release|runtime|build|cuda|cudnn|cublas|cufft|cusolver|cusparse|nccl"
    r"|rccl|rocm|torch|fabric|firmware|package|python|pip|wheel|vbios|\bcu\d{2})"
    r"(?:[^\n]{0,12}|[\w-]{0,12}[ \t]{1,40})|[=<>~!]=[ ]?|[-+]|\bv)\Z"
)
"""What stands before four numbers that are a version."""

_V4: Final = re.compile(r"(?<![\w.])(?P<v>(?:\d{1,3}\.){3}\d{1,3})(?![\w.]*\d|\+)")
_PRIVATE: Final = re.compile(
    r"10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\."
)
_V6: Final = re.compile(
    r"(?<![\w:.])(?P<v>[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]{1,35}[0-9A-Fa-f])(?![\w:]|\.\d)"
)
_EMAIL: Final = re.compile(
    r"(?<![\w.+@/%-])(?P<v>[A-Za-z0-9._%+-]{1,64}"
    r"@[A-Za-z0-9][A-Za-z0-9-]{0,62}(?:\.[A-Za-z0-9-]{1,63}){0,4}\.[A-Za-z]{2,24})(?![\w@-])"
)

_HOST_WORDS: Final = (
    r"HOSTNAME|MASTER_ADDR|(?:SLURM|SLURMD|PBS|LSB)_[A-Z_]{0,24}(?:NODELIST|NODENAME|HOST|HOSTS"
    r"|NODEFILE)|HEAD_NODE(?:_IP|_HOST)?|master_addr(?:ess)?|rdzv[-_]endpoint|head_node(?:_ip)?"
    r"|host_?name|node_?name|nodelist|node_?list|BatchHost|NodeList|rdzv_host"
)

SHAPES: Final = (
    Shape("email", "@", _EMAIL, _is_email),
    Shape("ip", r"\d\.\d{1,3}\.\d{1,3}\.\d", _V4, _is_ipv4),
    Shape("ip", "[0-9A-Fa-f]:[0-9A-Fa-f]{0,4}:|::", _V6, _is_ipv6),
    # NCCL and RCCL: host:pid:tid [device] NCCL INFO …
    _host("NCCL", _START + r"<host>:\d{1,10}:\d{1,10} (?:\[\d{1,3}\] )?(?=[^\n]{0,160}\bNCCL\b)"),
    # torchelastic's failure table
    _host("host +:", r"(?m:^|[|\]]:? )[ \t]{0,8}host {1,12}: ?<host>[ \t]*(?m:$)"),
    _host(f"(?:{_HOST_WORDS})", rf"\b(?:{_HOST_WORDS}){_IS}{_LIST}(?!\()"),
    _host(
        "--(?:master|rdzv|host)", r"--(?:master[-_]addr|rdzv[-_]endpoint|hostname)[ =]{1,4}<host>"
    ),
    _host(r"\[pod/", r"\[pod/<host>/"),
    _host(" ON ", r"\b(?:JOB|STEP) [\w.+-]{1,40} ON <host> CANCELLED"),
    _host("srun: ", rf"\bsrun: error: {_LIST}: tasks? "),
    _host("(?i:node failure on )", r"(?i:\bnode failure on )<host>"),
    _host(
        "://",
        r"\b(?:tcp|udp|ssh|sftp|gloo|grpc|redis|nfs|zmq|ucx|mysql|postgres(?:ql)?|mongodb)://"
        rf"(?:{_LOGIN})?\[?<host>",
    ),
    # a web site of a name without dots is of this network
    _host(
        "://",
        rf"\bhttps?://(?:{_LOGIN})?<host>(?=[:/\s\"']|$)",
        lambda v: "." not in v and is_host(v),
    ),
    _host(r"\]:\d", r"\b(?:at|by|from|on|peer|to|with) \[<host>\]:\d{2,5}\b"),
    _host(r"(?: of| to) \(", r"\b(?:address(?:es)? of|connect(?:ed|ing)? to) \(<host>, \d"),
    _host("(?:to|resolve) host", r"\bconnect to host <host> port \d"),
    _host("(?:to|resolve) host", r"\bresolve host(?:name)?:? [\"']?<host>"),
    _host("slurmstepd-", r"\bslurmstepd-<host>: "),
    # Open MPI: [host:pid] *** …
    _host(r":\d+\] ", r"(?m:^|\s)\[<host>:\d{1,10}\] (?=\*\*\*|\[ ?\d|[A-Z]{3,16} ERROR|mca)"),
    _host("WORLD INFO", r"\bWORLD INFO DICT: \{'<host>'"),
    _host(
        "(?i:node|host)",
        r"(?i:\b(?:for|from|on|to) (?:node|host)s?:? |\b(?:node|host)s? ?[:=] ?[\"'\[]{0,2})"
        r"(?P<v>(?<![A-Za-z0-9_.-])[A-Za-z]" + _NAME + r")(?![(/\[=])",
        _certain_host,
    ),
    _host("node ", r"\bRank \d{1,7}, node <host>, device"),
    _host(r"P=\d", r"\|[DPT]P=\d{1,6}\|<host>\]:"),
    _host("he node '", r"\b[Tt]he node '(?P<v>[A-Za-z0-9.-]{1,253})_\d{1,10}_\d{1,6}'"),
    _host(
        r"(?:kernel|slurm|systemd|dockerd|containerd|kubelet|sshd|nvidia-)",
        r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)? <host> (?:kernel|slurmd|slurmctld"
        r"|slurmstepd|systemd|dockerd|containerd|kubelet|sshd|nvidia-[a-z-]{1,32})(?:\[\d{1,10}\])?:",
    ),
    _host("ip-", _START + r"(?P<v>ip(?:-\d{1,3}){4}(?:\.[A-Za-z0-9-]{1,63}){0,6})(?![\w-])"),
    _host(
        r"\.(?:local|internal|lan|corp|intranet|localdomain)",
        r"(?<![\w./@-])(?P<v>[A-Za-z0-9][A-Za-z0-9-]{0,62}(?:\.[A-Za-z0-9-]{1,63}){0,6}"
        r"\.(?:local|internal|lan|corp|intranet|localdomain))(?![\w(-]|\.\w)",
        _numbered_host,
    ),
    # a prompt or a place for scp
    _host("@", r"(?<![\w./:@-])" + r"[a-z_][a-z0-9_-]{1,31}@<host>(?=:[~/ ]|[~/ :]{0,64}[$#] )"),
    _user(
        "@",
        r"(?<![\w./:@-])(?P<v>[a-z_][a-z0-9_-]{1,31})@" + _NAME + r"(?=:[~/ ]|[~/ :]{0,64}[$#] )",
    ),
    _user(
        r"(?i:/(?:home\d{0,2}|homes|users|mail)/)",
        r"/(?:home\d{0,2}|homes|users|Users|var/(?:spool/)?mail)/<user>(?=[/\s\"':;,)\]}>|\\]|\.?$|\.\s)",
    ),
    _user(r"\\Users\\", r"\b[A-Za-z]:\\{1,2}Users\\{1,2}<user>"),
    _user("~", r"(?<![\w/.~-])~(?P<v>[a-z_][a-z0-9_-]{1,31})/"),
    _user(
        "HOME",
        r"\bHOME" + _IS + r"(?:/[\w.-]{1,64}){0,6}/<user>(?=[\s\"':;,)\]}]|$)",
    ),
    _user(
        "(?:USER|LOGNAME|user|User|WANDB_ENTITY|wandb_entity)",
        r"\b(?:USER|LOGNAME|USERNAME|SUDO_USER|(?:SLURM|PBS|JUPYTERHUB|NB|LSF)_[A-Z_]{0,12}USER"
        r"|(?:WANDB|MLFLOW_TRACKING|HF)_(?:USERNAME|ENTITY)|user_?name|wandb_entity|UserId)"
        + _IS
        + r"<user>",
    ),
    _user(r"\buser ?=", r"\buser {0,4}= {0,4}[\"']?(?P<v>[A-Za-z_][\w-]{1,62})(?![\w(./\[])"),
    _user("ogged in as", r"[Ll]ogged in as:? {1,4}<user>"),
    _user("ogged in as", r"[Ll]ogged in as:? {1,4}[\w.-]{1,64} \(<user>\)"),
    _user(r"wandb\.ai/", r"\bwandb\.ai/<user>/"),
    _user("uid=", r"\buid=\d{1,10}\(<user>\)"),
    _user("user [\"']", r"\buser [\"']<user>[\"']"),
    _user("mail-user", r"--mail-user[ =]{1,4}<user>(?![\w@])"),
    _user("://", r"://<user>(?::(?:[^\s/@]{0,256}|\[redacted [a-z ]{1,40} \d{1,6}\]))?@"),
)

HINT: Final = "|".join(f"(?:{hint})" for hint in sorted({shape.hint for shape in SHAPES}))


def identities(text: str) -> Iterator[Span]:
    """Hosts, users, addresses and e-mail addresses."""
    for shape in SHAPES:
        for match in shape.pattern.finditer(text):
            if not shape.holds(match["v"]):
                continue
            if shape.pattern is _V4 and _version_stands(text, match):
                continue
            yield match.start("v"), match.end("v"), shape.kind


def _version_stands(text: str, match: re.Match[str]) -> bool:
    """Whether four numbers are a version: by the words before them, or as a folder's name."""
    start = match.start()
    if _VERSION.search(text, max(start - 72, 0), start):
        return True
    folder = text[start - 1 : start] == "/" and text[max(start - 2, 0) : start] != "//"
    return folder and not _PRIVATE.match(match["v"])
