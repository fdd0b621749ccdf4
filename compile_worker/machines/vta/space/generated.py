"""Search spaces of VTA's layers: variables and constraints, and the trace of every valid point."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import chain, product
from typing import Final

from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.trace import Step
from tilefarm.workload import Workload

from compile_worker.draft import Draft, Emptied
from compile_worker.errors import SpaceError
from compile_worker.generated import Generated
from compile_worker.machines.vta.space.layer import REDUCED, SPATIAL, GemmLayer, layer_of
from compile_worker.machines.vta.space.rules import TRACE, declare, outcomes
from compile_worker.machines.vta.space.vector_default import vector_default
from compile_worker.machines.vta.space.vector_layer import VectorLayer, vector_layer_of
from compile_worker.machines.vta.space.vector_rules import declare_vector_space
from compile_worker.machines.vta.space.vector_trace import vector_steps

VERSION: Final = 2
"""Changes when the points of old records would mean other schedules."""

PLAIN_TRIES: Final = 400
"""Tile shapes that are tried, smallest first, before a layer is given up."""


@lru_cache(maxsize=128)
def generated(workload: Workload, target: Target) -> Generated | None:
    """The search space of a layer of the accelerator; None for other workloads.

    It is kept: whoever compiles a network asks when it is partitioned, searched and assembled.

    Raises:
        SpaceError: not even the smallest tiles fit; says which constraint is to blame.
    """
    layer = vector_layer_of(workload) or layer_of(workload)
    if layer is None:
        return None
    rules = outcomes(workload, target)
    lacking = next((o for o in rules if o.rule == "Tensorize" and not o.fired), None)
    if lacking is not None:
        raise SpaceError(workload.name, target.name, lacking.rule, lacking.why)
    try:
        draft, default = _drafted(layer, workload, target)
    except Emptied as emptied:
        raise SpaceError(workload.name, target.name, *emptied.args) from None
    if default is None:
        raise SpaceError(workload.name, target.name, *draft.blamed)
    space = draft.space(workload.operator, VERSION, default)
    return Generated(space, partial(steps_of, layer), rules)


def steps_of(layer: GemmLayer | VectorLayer, point: Point) -> Iterator[Step]:
    """The schedule of a point that has a value for every variable."""
    if isinstance(layer, VectorLayer):
        return vector_steps(layer, point)
    return chain.from_iterable(steps(layer, point) for steps in TRACE)


def _drafted(
    layer: GemmLayer | VectorLayer, workload: Workload, target: Target
) -> tuple[Draft, dict[str, int] | None]:
    """Variables and constraints, and the default point if any fits."""
    draft = Draft()
    if isinstance(layer, VectorLayer):
        declare_vector_space(draft, layer, target)
        return draft, vector_default(draft, layer)
    declare(draft, layer, workload, target)
    return draft, _plain(draft, layer)


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
