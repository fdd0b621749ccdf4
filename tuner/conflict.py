"""Why a space has no point: a smallest set of constraints that cannot all hold."""

from __future__ import annotations

from dataclasses import replace

from tilefarm.space import SearchSpace

from tuner.sampler import Sampler


def conflict(space: SearchSpace) -> tuple[str, ...]:
    """Names of constraints that no point keeps all of; without any one of them some point would.

    Found by leaving out one after the other for good, while what is left still has no point. There
    may be other such sets. Empty if the space has points.
    """
    if _has_points(space):
        return ()
    for constraint in space.constraints:
        fewer = tuple([c for c in space.constraints if c is not constraint])
        relaxed = replace(space, constraints=fewer)
        if not _has_points(relaxed):
            space = relaxed
    return tuple([constraint.name for constraint in space.constraints])


def _has_points(space: SearchSpace) -> bool:
    return next(Sampler(space).scan(), None) is not None
