"""Lockstep: the space of a script whose elements come one after the other, or several at a time.

    for c:                            for c in tiles:
      s = 0                             s = 0                  for 64 of c side by side
      for t:                     ->     for t:
        s = s * 0.5 + x[t, c]             s = s * 0.5 + ...    for 64 of c side by side
        out[t, c] = s                     out[t, c] = s        for 64 of c side by side

States that go on along an axis, a maximum and where it is, results that two nests make: nothing is
tiled there, but rows or columns that need nothing of one another can be done together. Which loop,
how many of its iterations, and how, is chosen for each nest; see the primitive `lockstep`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Final

from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.trace import Step
from tilefarm.workload import Workload

from compile_worker.draft import Draft
from compile_worker.generated import Generated, RuleOutcome
from compile_worker.ir.func import Func
from compile_worker.isa import isa_of
from compile_worker.machines.cpu.space.script_context import ScriptRule
from compile_worker.machines.cpu.space.script_loads import CACHE_NBYTES
from compile_worker.machines.cpu.space.script_rows import Rows, fits_stack, rows_of
from compile_worker.machines.cpu.space.script_rules import LOCKSTEP
from compile_worker.machines.cpu.space.script_tiling import MANY
from compile_worker.machines.cpu.space.windows import first_valid
from compile_worker.schedule.lockstep import WAYS

_LANES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Iterations side by side that there are to choose from; 1 leaves a nest as it is written."""

_MOST_LANES: Final = 64
"""Where all iterations are side by side, and there is no rest."""

_VECTORS, _WRITTEN_OUT = range(len(WAYS))

_MOST_WRITTEN_OUT: Final = 16
_WISHED: Final = ((64, _VECTORS), (16, _WRITTEN_OUT))
"""Of the default, where neighbours are read and stored together, and where they are not."""


def lockstep_space(
    workload: Workload,
    target: Target,
    nest: Func,
    first: tuple[Step, ...],
    rules: Sequence[ScriptRule],
    version: int,
) -> Generated | None:
    """The space of a nest that was simplified by `first`.

    None where no loop is free, or a buffer does not fit the stack as it is written.
    """
    if not fits_stack(nest):
        return None
    nests = rows_of(nest)
    draft = Draft()
    default: dict[str, int] = {}
    for each in nests:
        default |= _declare(draft, each, target)
    if not draft.tunables:
        return None
    full = first_valid(draft, [default])
    space = draft.space(workload.operator, version, full)
    return Generated(space, partial(_steps, nests, first), _outcomes(rules, first))


# -- what is chosen --------------------------------------------------------------------------------


def _declare(draft: Draft, rows: Rows, target: Target) -> dict[str, int]:
    """loop, lanes, way, outermost and shared of a nest; gives the default."""
    names = [f"{what}_{rows.name}" for what in ("loop", "lanes", "way", "outermost", "shared")]
    listed = list(_choices(rows, target.model.threads))
    labels = [loop.var.name.removeprefix(f"{rows.name}_") for loop in rows.free]
    values = [sorted({row[at] for row in listed}) for at in range(len(names))]
    for name, domain, words in zip(
        names,
        values,
        (labels, (), [*WAYS], labels, ("one thread", "all threads")),
        strict=True,
    ):
        draft.tunable(name, domain, [words[value] for value in domain] if words else ())
    why = "what lanes keep fits the first-level cache, and each thread has some of them"
    draft.require_rows(f"lockstep_{rows.name}", names, listed, why=why)
    return dict(zip(names, _wished(rows, target, listed), strict=True))


def _choices(rows: Rows, threads: int) -> Iterator[tuple[int, ...]]:
    """Every loop, lanes, way, outermost loop and sharing that go together, each schedule once."""
    numbers = range(len(rows.free))
    wholes = {loop.extent for loop in rows.free if loop.extent <= _MOST_LANES}
    several = threads > 1 and rows.work >= MANY
    for loop, lanes, way, outermost, shared in product(
        numbers,
        sorted({*_LANES, *wholes}),
        range(len(WAYS)),
        numbers,
        (0, 1) if several else (0,),
    ):
        extent = rows.free[loop].extent
        if lanes > extent or (lanes > 1 and lanes * rows.own_nbytes > CACHE_NBYTES):
            continue
        if (lanes == 1 and (loop or way)) or (way == _WRITTEN_OUT and lanes > _MOST_WRITTEN_OUT):
            continue
        tiles = extent // lanes if outermost == loop else rows.free[outermost].extent
        if shared and tiles < threads:
            continue
        yield loop, lanes, way, outermost, shared


def _wished(rows: Rows, target: Target, listed: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The choice that is good as a rule."""
    counts = [rows.neighbours(loop.var) for loop in rows.free]
    loop = counts.index(max(counts))
    most, way = _WISHED[0] if counts[loop] > 0 else _WISHED[1]
    if rows.keeps_vectors:
        way = _VECTORS  # they lie side by side, lane by lane
    if not isa_of(target.host).exact_floats:
        most, way = _WISHED[1]
    if rows.runs_along_neighbours or rows.branches(rows.free[loop].var):
        most = 1

    def liked(row: tuple[int, ...]) -> tuple[bool | int, ...]:
        its_loop, lanes, its_way, outermost, shared = row
        fits = lanes == 1 or (its_loop == loop and its_way == way)
        return (fits and lanes <= most, shared if most > 1 else -shared, lanes, -outermost)

    return max(listed, key=liked)


# -- the schedule of a point -----------------------------------------------------------------------


def _steps(nests: Sequence[Rows], first: Sequence[Step], point: Point) -> Iterator[Step]:
    yield from first
    for rows in nests:
        yield from _nest_steps(rows, point)


def _nest_steps(rows: Rows, point: Point) -> Iterator[Step]:
    loop, lanes, way, outermost, shared = (
        point[f"{what}_{rows.name}"] for what in ("loop", "lanes", "way", "outermost", "shared")
    )
    loops = [each.var.name for each in rows.free]
    if lanes > 1:
        yield Step("lockstep", (rows.name, loops[loop], lanes, [*WAYS][way]))
        loops[loop] += "_0"
    ahead = loops.pop(outermost)
    yield Step("reorder", (ahead, *loops))
    if shared:
        yield Step("parallel", (ahead,))


def _outcomes(rules: Sequence[ScriptRule], first: Sequence[Step]) -> tuple[RuleOutcome, ...]:
    """The rule alone makes the space, of what the first ones have simplified."""
    done = {step.primitive for step in first}
    found = []
    for rule in rules:
        fired = rule.name == LOCKSTEP or rule.simplifies in done
        why = f"{rule.when}: {rule.effect}" if fired else "elements of the result need one another"
        found.append(RuleOutcome(rule.name, fired, why))
    return tuple(found)
