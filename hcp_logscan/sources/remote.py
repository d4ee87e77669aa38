"""Run directories behind URLs, through fsspec (extra `remote`): sftp://, ssh://, s3://, gs:// ….

Files are listed and read where they are; nothing is copied to disk. Links are not followed, and
what a listing names outside the run directory is left alone. A URL may hold a password or a token:
messages show its protocol, host and path alone.
"""

from __future__ import annotations

import io
import posixpath
import re
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from hcp_logscan.model.errors import SourceError, UsageError
from hcp_logscan.sources.place import Remote

if TYPE_CHECKING:
    from collections.abc import Iterator

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SSH: Final = frozenset({"ssh", "sftp"})
_BLOCK_BYTES: Final = 4 << 20
"""Read at once from an object store: one request has to be worth its round trip, and file systems
of fsspec would take up to 50 MiB for the first bytes of a file."""

_CONNECT_S: Final = 30
_ALIVE_S: Final = 15
MAX_DEPTH: Final = 64
"""Folders in folders; a server may list a tree without an end."""


def is_url(text: str) -> bool:
    """Whether a RUN_DIR is a URL.

    >>> is_url("sftp://host/run"), is_url("/data/run"), is_url("-")
    (True, False, False)
    """
    return _URL.match(text) is not None


def shown(url: str) -> str:
    """A URL without user, password and query.

    >>> shown("sftp://me:secret@host:22/run?token=x")
    'sftp://host:22/run'
    """
    scheme, _, rest = url.partition("://")
    place, _, _ = rest.partition("?")
    host, slash, path = place.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def _without_secrets(text: str, url: str) -> str:
    """A message of a library on one line, without what the URL keeps from others."""
    rest = url.partition("://")[2]
    user = rest.partition("/")[0].rpartition("@")[0]
    password, query = user.partition(":")[2], rest.partition("?")[2]
    for secret in (url, user, password, query):
        for spelling in {secret, unquote(secret)} - {""}:
            text = text.replace(spelling, "***")
    return " ".join(text.split())


@contextmanager
def _as_os_error(url: str) -> Iterator[None]:
    """Whatever a file system's library raises is an OSError with a clean message."""
    try:
        yield
    except OSError as error:
        said = error.strerror or str(error) or type(error).__name__
        raise OSError(error.errno or 0, _without_secrets(said, url)) from None
    except Exception as error:  # noqa: BLE001 - asyncssh, botocore, aiohttp … have their own
        said = _without_secrets(str(error), url)
        raise OSError(0, said or type(error).__name__) from None


def _over_ssh(url: str) -> tuple[Any, str]:
    """The file system and the path of an ssh:// or sftp:// URL."""
    import fsspec.config  # noqa: PLC0415 - optional
    from fsspec.utils import infer_storage_options  # noqa: PLC0415

    said = infer_storage_options(url)
    protocol, path = said.pop("protocol"), said.pop("path")
    options = {
        # sshfs trusts any host key by default; () asks for the user's known_hosts, as ssh does.
        "known_hosts": (),
        "connect_timeout": _CONNECT_S,
        "keepalive_interval": _ALIVE_S,  # three of them without an answer end a dead connection
        "sftp_client_kwargs": {"path_errors": "surrogateescape"},
        **fsspec.config.conf.get(protocol, {}),
        "host": str(said["host"]).strip("[]"),
        **{name: unquote(said[name]) for name in ("username", "password") if said.get(name)},
        **({"port": said["port"]} if said.get("port") else {}),
    }
    return fsspec.filesystem(protocol, skip_instance_cache=True, **options), path


@lru_cache(maxsize=4)
def _connected(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it. Raises UsageError and OSError."""
    protocol = url.partition("://")[0].lower()
    if "::" in url:
        raise UsageError(f"{shown(url)}: chained URLs are not read; give the archive itself.")
    try:
        import fsspec  # noqa: PLC0415 - optional
        import fsspec.core  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(
            "a URL as RUN_DIR needs fsspec: pip install 'hcp-logscan[remote]'."
        ) from error
    try:
        fsspec.get_filesystem_class(protocol)
    except ImportError as error:
        raise UsageError(
            f"{protocol}:// needs one more package: {error}. The extra brings what ssh:// needs:"
            " pip install 'hcp-logscan[remote]'."
        ) from error
    except ValueError as error:
        raise UsageError(f"{shown(url)}: no protocol is called {protocol}://.") from error
    with _as_os_error(url):
        if protocol in _SSH:
            return _over_ssh(url)
        files, path = fsspec.core.url_to_fs(url, skip_instance_cache=True, use_listings_cache=False)
    return files, str(path)


class _File(io.RawIOBase):
    """A file of a server, read in the pieces that are asked for."""

    def __init__(self, file: Any, url: str) -> None:
        self._file, self._url = file, url

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        with _as_os_error(self._url):
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        with _as_os_error(self._url):
            return int(self._file.seek(offset, whence))

    def close(self) -> None:
        if not self.closed:
            with _as_os_error(self._url):
                self._file.close()
        super().close()


def open_raw(place: Remote) -> io.RawIOBase:
    """The bytes of a file as they are stored. Raises OSError."""
    try:
        files, _ = _connected(place.url)
    except UsageError as error:  # a worker without the package of its parent
        raise OSError(0, str(error)) from error
    ssh = place.url.partition("://")[0].lower() in _SSH
    with _as_os_error(place.url):
        block = {} if ssh else {"block_size": _BLOCK_BYTES}  # sshfs knows its server's best
        return _File(files.open(place.path, "rb", **block), place.url)


def root(url: str) -> tuple[Remote, bool, int]:
    """The place of a URL, whether it is a directory, and its size in bytes.

    Connects anew. Raises UsageError, and SourceError where there is nothing or no answer.
    """
    _connected.cache_clear()
    try:
        files, path = _connected(url)
        with _as_os_error(url):
            info = files.info(path)
    except FileNotFoundError as error:
        raise SourceError(f"cannot read {shown(url)}: no such file or directory.") from error
    except OSError as error:
        raise SourceError(
            f"cannot read {shown(url)}: {error.strerror}. Check the URL, the network and your"
            " credentials (for ssh: a key, and the host in known_hosts)."
        ) from error
    return Remote(url, path), info["type"] == "directory", _size(info)


def _size(info: dict[str, Any]) -> int:
    """Bytes of a file; 1 where the server does not say: as far as we know, it is not empty."""
    size = info.get("size")
    return int(size) if isinstance(size, int) and size >= 0 else 1


def walk(top: Remote) -> Iterator[tuple[Remote, str, int | OSError]]:
    """Files below a directory in name order: place, relative name, size; folders that say no."""
    files, _ = _connected(top.url)
    base = top.path.rstrip("/")
    waiting = [(top.path, 0)]
    while waiting:
        folder, depth = waiting.pop()
        try:
            with _as_os_error(top.url):
                listed = sorted(files.ls(folder, detail=True), key=lambda info: str(info["name"]))
        except OSError as error:
            yield Remote(top.url, folder), _relative(folder, base) or ".", error
            continue
        folders = []
        for info in listed:
            path = str(info["name"])
            name = _relative(path, base)
            if not name or posixpath.dirname(path.rstrip("/")).rstrip("/") != folder.rstrip("/"):
                continue  # the folder itself, or a way out of it
            if info["type"] == "directory" and depth < MAX_DEPTH:
                folders.append((path.rstrip("/"), depth + 1))
            elif info["type"] == "file":
                yield Remote(top.url, path), name, _size(info)
        waiting.extend(reversed(folders))


def _relative(path: str, base: str) -> str:
    """A path below `base`, relative to it; empty for others."""
    prefix = f"{base}/" if base or path.startswith("/") else ""  # a home folder has no name
    name = path.rstrip("/").removeprefix(prefix) if path.startswith(prefix) else ""
    return "" if ".." in name.split("/") else name
