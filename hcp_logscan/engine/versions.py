"""The versions that a cluster must agree on: other code would make other tables, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hcp_logscan.model.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGES: Final = ("hcp-logscan", "polars")
"""Asked for besides those that dask knows of."""

COMPARED: Final = ("python", *PACKAGES, "dask", "distributed")

_PYTHON_PARTS: Final = 2
"""3.11.7 and 3.11.9 run the same code; 3.11 and 3.12 do not."""


def check(said: Mapping[str, Any]) -> None:
    """Raise EngineError unless everybody has the versions of this process.

    `said` is the answer of `Client.get_versions`: for `client`, `scheduler` and each of `workers`
    (by address) a mapping with `packages`. It is read from what is installed, so it comes from
    processes that could not run our code, too.
    """
    here = _versions(said["client"])
    members = {"the scheduler": said["scheduler"]}
    members |= {f"worker {name}": found for name, found in said["workers"].items()}
    wrong = {name: _versions(found) for name, found in members.items() if _versions(found) != here}
    if not wrong:
        return
    name, there = next(iter(wrong.items()))
    unlike = [
        f"{package} is {_said(here[package])} here and {_said(there[package])} there"
        for package in COMPARED
        if here[package] != there[package]
    ]
    more = f" (and {len(wrong) - 1} more of the cluster)" if len(wrong) > 1 else ""
    raise EngineError(
        f"{name}{more} runs other versions than this process: {', '.join(unlike)}."
        " Start scheduler and workers from the environment that hcp-logscan runs in."
    )


def _versions(member: Mapping[str, Any] | None) -> dict[str, str | None]:
    packages = (member or {}).get("packages") or {}
    found = {package: packages.get(package) for package in COMPARED}
    if found["python"]:
        found["python"] = ".".join(str(found["python"]).split(".")[:_PYTHON_PARTS])
    return found


def _said(version: str | None) -> str:
    return version or "not installed"
