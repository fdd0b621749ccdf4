"""Search spaces of workloads: the variables and constraints, and the trace of every valid point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from tilefarm.space import Point, SearchSpace
from tilefarm.target import Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.draft import Draft, Emptied, complete
from compile_worker.errors import SpaceError
from compile_worker.machines.vta.space.layer import REDUCED, SPATIAL, GemmLayer, layer_of
from compile_worker.machines.vta.space.rules import TRACE, Outcome, declare, outcomes
from compile_worker.machines.vta.space.vector_default import vector_default
from compile_worker.machines.vta.space.vector_layer import VectorLayer, vector_layer_of
from compile_worker.machines.vta.space.vector_rules import declare_vector_space
from compile_worker.machines.vta.space.vector_trace import vector_steps

VERSION: Final = 2
"""Changes when the points of old records would mean other schedules."""

PLAIN_TRIES: Final = 400
"""Tile shapes that are tried, smallest first, before a layer is given up."""


@dataclass(frozen=True, slots=True)
class Generated:
    """The search space of one workload on one target, and which rules made it."""

    space: SearchSpace
    layer: GemmLayer | VectorLayer
    rules: tuple[Outcome, ...]
    default: Point = field(init=False, compare=False, repr=False)
    """That of the space."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "default", dict(self.space.default))

    def completed(self, tunables: Point) -> dict[str, int]:
        """A value for every variable, valid or not; `tilefarm.space.violations` tells."""
        return complete(self.space.constraints, self.space.variables, tunables)

    def trace(self, point: Point) -> Trace:
        """The schedule of a valid point; only the tunable variables count."""
        full = {**self.default, **point}
        if isinstance(self.layer, VectorLayer):
            return Trace(tuple(vector_steps(self.layer, full)))
        return Trace(tuple(step for steps in TRACE for step in steps(self.layer, full)))


def has_space(workload: Workload) -> bool:
    """Whether there is anything to choose for a workload; others are compiled as they are."""
    return layer_of(workload) is not None or vector_layer_of(workload) is not None


def generate(workload: Workload, target: Target) -> Generated:
    """The search space of a workload.

    Raises:
        SpaceError: not even the smallest tiles fit; says which constraint is to blame.
        ValueError: the operator has no space.
    """
    if not has_space(workload):
        raise ValueError(f"{workload.operator} has no search space")
    rules = outcomes(workload, target)
    lacking = next((o for o in rules if o.rule == "Tensorize" and not o.fired), None)
    if lacking is not None:
        raise SpaceError(workload.name, target.name, lacking.rule, lacking.why)
    try:
        draft, layer, default = _drafted(workload, target)
    except Emptied as emptied:
        raise SpaceError(workload.name, target.name, *emptied.args) from None
    if default is None:
        raise SpaceError(workload.name, target.name, *draft.blamed)
    return Generated(draft.space(workload.operator, VERSION, default), layer, rules)


def _drafted(
    workload: Workload, target: Target
) -> tuple[Draft, GemmLayer | VectorLayer, dict[str, int] | None]:
    """Variables and constraints, the layer that they are of, and the default point if any fits."""
    draft = Draft()
    if (vectors := vector_layer_of(workload)) is not None:
        declare_vector_space(draft, vectors, target)
        return draft, vectors, vector_default(draft, vectors)
    layer = layer_of(workload)
    assert layer is not None
    declare(draft, layer, workload, target)
    return draft, layer, _plain(draft, layer)


def _plain(draft: Draft, layer: GemmLayer) -> dict[str, int] | None:
    """The plain schedule: the smallest valid tiles, all loaded as late as can be, one slot."""
    for tiles in _smallest_tiles(draft, layer):
        for point in _plainest(draft, layer, tiles):
            if draft.holds(full := draft.completed(point)):
                return full
    return None


def _smallest_tiles(draft: Draft, layer: GemmLayer) -> Iterator[dict[str, int]]:
    """Tiles by output vectors; for each the whole kernel window first, then parts of it."""
    outputs = sorted(
        product(*(draft.domain(f"tile_{axis}") for axis in SPATIAL)),
        key=lambda tile: (tile[0] * tile[1] * tile[2], tile),
    )[:PLAIN_TRIES]
    whole = (1, layer.extents["kh"], layer.extents["kw"])
    parts = tuple(dict.fromkeys((whole, (1, 1, layer.extents["kw"]), (1, 1, 1))))
    names = [f"tile_{axis}" for axis in (*SPATIAL, *REDUCED)]
    for tile in outputs:
        for reduced in parts:
            yield dict(zip(names, (*tile, *reduced), strict=True))


def _plainest(draft: Draft, layer: GemmLayer, tiles: dict[str, int]) -> Iterator[dict[str, int]]:
    """With given tiles: one slot, the first order, late loads, and every micro-op order."""
    point = {**tiles, "slots": 1, "acc_slots": 1, "hold": 0}
    for axis in (*SPATIAL, *REDUCED):
        tile = tiles[f"tile_{axis}"]
        point |= {f"many_{axis}": int(tile < layer.extents[axis]), f"long_{axis}": int(tile > 1)}
    point["many_reduced"] = max(point[f"many_{axis}"] for axis in REDUCED)
    for name in filter(draft.has, ("tile_order", "weight_at", "data_at", "bias_at")):
        allowed = (v for v in draft.domain(name) if draft.allows({**point, name: v}))
        point[name] = next(allowed, -1)
    if -1 not in point.values():
        shape = {name: value for name, value in point.items() if name.startswith("long_")}
        for order in draft.domain("micro_order"):
            if draft.lists("canonical_micro_order", {**shape, "micro_order": order}):
                yield {**point, "micro_order": order}
