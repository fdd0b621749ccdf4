"""Which Ray cluster this machine is a node of, and what the owners of nodes say by resources.

A cluster that a run has for itself is none of those.

Ray finds every cluster on the machine by its daemon's command line, also the private one of another
run. So a private one has a resource of its own there, and is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tilefarm.errors import UnreachableError

PRIVATE: Final = "tilefarm_private"
"""The resource that only the Ray of one run has."""

PLUGINS: Final = "tilefarm_plugins"
"""The resource of nodes whose owner lets them run the passes of users' plugins."""
PLUGINS_SHARE: Final = 0.001
"""What a batch takes of it: a node that has 1 is not kept from compiling by it."""

_ADDRESS: Final = "--gcs-address="
_HINT: Final = "--ray with the address that `ray start --head` printed"


def found_here(commands: Iterable[Sequence[str]] | None = None) -> str:
    """The address of the one cluster that this machine is a node of.

    Args:
        commands: of the processes on this machine; None: those that there are.

    Raises:
        UnreachableError: there is none, or there are several.
    """
    found = map(_cluster, running_commands() if commands is None else commands)
    clusters = sorted(set(filter(None, found)))
    if not clusters:
        raise UnreachableError("this machine is no node of a Ray cluster", _HINT)
    if len(clusters) > 1:
        raise UnreachableError(
            f"this machine is a node of {len(clusters)} Ray clusters: {', '.join(clusters)}",
            f"--ray {clusters[0]}, or another one of them",
        )
    return clusters[0]


def _cluster(command: Sequence[str]) -> str:
    """The address of the cluster that a process serves as its daemon; empty for any other one."""
    if not command or Path(command[0]).name != "raylet" or any(PRIVATE in word for word in command):
        return ""
    return next((w.removeprefix(_ADDRESS) for w in command if w.startswith(_ADDRESS)), "")


def running_commands() -> list[list[str]]:
    """The words of all processes on this machine."""
    found: list[list[str]] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:  # it has just ended
                continue
            found.append(words)
    return found
