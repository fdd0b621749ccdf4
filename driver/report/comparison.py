"""A program beside what another library makes of the same model, on the same machine, in turns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LibraryLayer:
    """A node of the graph that a library made of a model, and the least that it took."""

    name: str
    operator: str
    seconds: float


@dataclass(frozen=True, slots=True)
class LibraryTime:
    """What a library takes for one batch at least: `kind` is what it computes in."""

    kind: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Least times of one batch, taken in turns.

    Attributes:
        library: its name and version.
        seconds: of our program, on its device.
        times: of the library, on this machine.
        layers: of the first of them, as its own profiler tells them.
    """

    library: str
    seconds: float
    times: tuple[LibraryTime, ...]
    layers: tuple[LibraryLayer, ...] = ()
