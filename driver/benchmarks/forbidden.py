"""Points that a space forbids for one reason alone: neighbours of valid ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from tilefarm.space import Point, violations

from compile_worker.space import Generated
from tuner.sampler import Sampler

CANONICAL: Final = ("canonical", "domain:")
"""Beginnings of names of constraints that pick one of equal schedules: these forbid nothing."""

_TRIES: Final = 60
_MOST_TRIES: Final = 240
"""Mutations that are tried for one forbidden point: so many, and where they are rare, more."""


def forbidden_points(
    made: Generated, valid: Sequence[Point], rng: np.random.Generator, count: int
) -> list[tuple[str, dict[str, int]]]:
    """Neighbours of valid points that break one constraint each, evenly by constraint.

    A neighbour has one or two tunables with other values.
    """
    pools: dict[str, dict[tuple[int, ...], dict[str, int]]] = {}
    sampler = Sampler(made.space)
    tunables = [v for v in made.space.tunables if len(v.domain) > 1]
    for tried in range(_MOST_TRIES * count if valid and tunables else 0):
        if tried >= _TRIES * count and sum(map(len, pools.values())) >= count:
            break
        point = valid[int(rng.integers(len(valid)))]
        moved = {v.name: point[v.name] for v in made.space.tunables}
        for at in rng.integers(len(tunables), size=rng.integers(1, 3)):
            domain = tunables[at].domain
            moved[tunables[at].name] = domain[rng.integers(len(domain))]
        full = made.completed(moved)
        broken = violations(made.space, full)
        if len(broken) == 1 and not broken[0].startswith(CANONICAL):
            pools.setdefault(broken[0], {})[sampler.key(full)] = full
    return _evenly({name: [*pool.values()] for name, pool in pools.items()}, count)


def _evenly(
    pools: Mapping[str, list[dict[str, int]]], count: int
) -> list[tuple[str, dict[str, int]]]:
    """At most `count` points, one of each constraint in turn."""
    most = max(map(len, pools.values()), default=0)
    turns = (
        (name, pool[at]) for at in range(most) for name, pool in pools.items() if at < len(pool)
    )
    return [each for each, _ in zip(turns, range(count), strict=False)]
