"""What `tilefarm bench validity` found: of a layer, of all, as tables and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from driver.benchmarks.sandboxed import ScheduleResult
from driver.report.terminal.text_table import text_table

WANTED_SHARE: Final = 0.95
"""Of the forbidden points, this share must really fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongPoint:
    """A point that did not do as promised: its tunables, and how it ended."""

    point: Mapping[str, int]
    verdict: ScheduleResult


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerValidity:
    """What became of one layer's points.

    Attributes:
        valid: valid points that were tried.
        wrong: those of them that did not compile, run, or give the right result.
        forbidden: the constraint that each forbidden point breaks.
        refused: those of them that the compiler refused by a limit's name.
        working: forbidden points that work, by constraint.
        crashed: why the layer's process ended early, if it did.
    """

    name: str
    valid: int = 0
    wrong: tuple[WrongPoint, ...] = ()
    forbidden: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    working: tuple[tuple[str, WrongPoint], ...] = ()
    crashed: str = ""


@dataclass(frozen=True, slots=True)
class SpaceValidity:
    """All layers together."""

    layers: tuple[LayerValidity, ...]

    @property
    def valid(self) -> int:
        return sum(layer.valid for layer in self.layers)

    @property
    def right(self) -> int:
        return self.valid - sum(len(layer.wrong) for layer in self.layers)

    @property
    def forbidden(self) -> int:
        return sum(len(layer.forbidden) for layer in self.layers)

    @property
    def failing(self) -> int:
        """Forbidden points that really fail."""
        return self.forbidden - sum(len(layer.working) for layer in self.layers)

    @property
    def holds(self) -> bool:
        """Whether spaces keep their promise, in both directions."""
        crashed = any(layer.crashed for layer in self.layers)
        fails = self.failing >= WANTED_SHARE * self.forbidden
        return self.right == self.valid and fails and not crashed


def tables(validity: SpaceValidity) -> Iterator[str]:
    """Layers, then constraints, then what is not as promised."""
    rows = [_layer_row(layer) for layer in validity.layers]
    yield from text_table(("layer", "valid", "right", "forbidden", "failing"), rows)
    yield ""
    forbidden = Counter(name for layer in validity.layers for name in layer.forbidden)
    refused = Counter(name for layer in validity.layers for name in layer.refused)
    working = Counter(name for layer in validity.layers for name, _ in layer.working)
    cells = [
        (name, str(n), str(n - working[name]), str(refused[name]), _percent(n - working[name], n))
        for name, n in sorted(forbidden.items())
    ]
    titles = ("constraint", "forbidden", "failing", "refused by name", "share")
    yield from text_table(titles, cells)
    yield ""
    yield from _complaints(validity)
    yield (
        f"{validity.right} of {validity.valid} valid points are right;"
        f" {validity.failing} of {validity.forbidden} forbidden ones fail"
        f" ({_percent(validity.failing, validity.forbidden)})"
    )


def _complaints(validity: SpaceValidity) -> Iterator[str]:
    for layer in validity.layers:
        if layer.crashed:
            yield f"{layer.name}: {layer.crashed}"
        for wrong in layer.wrong:
            verdict = wrong.verdict
            why = verdict.why.splitlines()[0] if verdict.why else ""
            yield f"{layer.name}: {verdict.status.value}: {why}: {dict(wrong.point)}"
    shown: set[str] = set()
    for layer in validity.layers:
        for name, wrong in layer.working:
            if name not in shown:
                shown.add(name)
                yield f"{layer.name}: {name} forbids a point that works: {dict(wrong.point)}"


def document(validity: SpaceValidity) -> dict[str, Any]:
    """Everything as JSON can say it."""
    layers = [asdict(layer) for layer in validity.layers]
    for layer in layers:
        for wrong in (*layer["wrong"], *(each for _, each in layer["working"])):
            wrong["verdict"]["status"] = wrong["verdict"]["status"].value
    return {
        "valid": validity.valid,
        "right": validity.right,
        "forbidden": validity.forbidden,
        "failing": validity.failing,
        "layers": layers,
    }


def _layer_row(layer: LayerValidity) -> tuple[str, ...]:
    forbidden = len(layer.forbidden)
    numbers = (layer.valid, layer.valid - len(layer.wrong), forbidden)
    return (layer.name, *map(str, numbers), str(forbidden - len(layer.working)))


def progress(layer: LayerValidity) -> str:
    """A layer in one line."""
    if layer.crashed:
        return layer.crashed
    return (
        f"{layer.valid - len(layer.wrong)} of {layer.valid} valid points right,"
        f" {len(layer.forbidden) - len(layer.working)} of {len(layer.forbidden)} forbidden fail"
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"
