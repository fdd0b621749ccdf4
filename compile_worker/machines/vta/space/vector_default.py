"""The schedule of an addition or of pooling before any search: well-sized tiles, all slots."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Final

from tilefarm.space import ESTIMATE

from compile_worker.draft import Draft
from compile_worker.machines.vta.space.layer import SPATIAL
from compile_worker.machines.vta.space.vector_layer import VectorLayer
from compile_worker.machines.vta.space.vector_rules import SUMMED

COMPARED: Final = 16
"""Valid points whose predicted cycles are compared."""

PARTS: Final = 10
"""Tiles that a layer is cut into: many take long to start, few leave nothing to overlap."""


def vector_default(draft: Draft, layer: VectorLayer) -> dict[str, int] | None:
    """The best by prediction of the first valid points; None if there is none at all."""
    found: list[dict[str, int]] = []
    for point in _candidates(draft, layer):
        if draft.holds(full := draft.completed(point)):
            found.append(full)
        if len(found) == COMPARED:
            break
    return min(found, key=lambda point: point[ESTIMATE], default=None)


def _candidates(draft: Draft, layer: VectorLayer) -> Iterator[dict[str, int]]:
    """Whole windows before parts of them, many slots before few, then tiles by their size."""
    wanted = max(1, prod(layer.extents[axis] for axis in SPATIAL) // PARTS)

    def unlike(tile: tuple[int, ...]) -> tuple[float, int]:
        return max(prod(tile) / wanted, wanted / prod(tile)), -tile[-1]

    tiles = sorted(product(*(draft.domain(f"tile_{axis}") for axis in SPATIAL)), key=unlike)
    whole = tuple(layer.extents[axis] for axis in SUMMED)
    allowed = set(product(*(draft.domain(f"tile_{axis}") for axis in SUMMED)))
    windows = [w for w in dict.fromkeys((whole, (1, whole[1]), (1, 1))) if w in allowed]
    most = max(draft.domain("slots"))
    for window, slots, tile in product(windows, range(most, 0, -1), tiles):
        parts = zip((*SPATIAL, *SUMMED), (*tile, *window), strict=True)
        point = {f"tile_{axis}": value for axis, value in parts}
        count = layer.batches * prod(
            layer.extents[a] // t for a, t in zip(SPATIAL, tile, strict=True)
        )
        steps = count * prod(w // t for w, t in zip(whole, window, strict=True))
        point |= {"tile_order": 0, "slots": min(slots, steps), "acc_slots": min(slots, count)}
        if layer.summing is None:
            yield point
        else:
            yield from ({**point, "sum_order": order} for order in draft.domain("sum_order"))
