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
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from math import prod
from typing import Final

from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.trace import Step
from tilefarm.workload import Workload

from compile_worker.draft import Draft
from compile_worker.generated import Generated, RuleOutcome
from compile_worker.ir.affine import as_affine
from compile_worker.ir.expr import Buffer, Expr, Load, Var
from compile_worker.ir.func import Func
from compile_worker.ir.independence import independent
from compile_worker.ir.nests import Loops, perfect_nest, wrap
from compile_worker.ir.reductions import as_written
from compile_worker.ir.stmt import Alloc, For, If, Stmt, Store
from compile_worker.ir.visit import children, find, mentioned, variables
from compile_worker.isa import isa_of
from compile_worker.machines.cpu.space.script_context import ScriptRule
from compile_worker.machines.cpu.space.script_loads import CACHE_NBYTES
from compile_worker.machines.cpu.space.script_rules import LOCKSTEP
from compile_worker.machines.cpu.space.script_stages import Stage, all_stages
from compile_worker.machines.cpu.space.script_tiling import MANY
from compile_worker.machines.cpu.space.windows import first_valid
from compile_worker.passes.flatten import LOCAL_NBYTES
from compile_worker.schedule.lockstep import WAYS

_LANES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Iterations side by side that there are to choose from; 1 leaves a nest as it is written."""

_MOST_LANES: Final = 64
"""Where all iterations are side by side, and there is no rest."""

_VECTORS, _WRITTEN_OUT = range(len(WAYS))

_MOST_WRITTEN_OUT: Final = 16
_MUCH: Final = 0.4
"""Of the work, in stages that no tile changes: a tile is of no use then."""

_MOSTLY: Final = 0.6
"""Of the work, in loops along which vectors run: nests are good as they are written then."""

_LEAST_SHARE: Final = 0.02
"""Of all that a script does, for a nest to be worth a choice."""

_WISHED: Final = ((64, _VECTORS), (16, _WRITTEN_OUT))
"""Of the default, where neighbours are read and stored together, and where they are not."""


@dataclass(frozen=True)
class Rows:
    """A nest of a script and the loops whose iterations need not one another, outermost first."""

    stage: Stage
    free: Loops

    @property
    def name(self) -> str:
        return self.stage.name

    @cached_property
    def written(self) -> Stmt:
        return as_written(self.stage.loops, self.stage.block)

    @cached_property
    def work(self) -> int:
        """How often its innermost statements are done."""
        return _work(self.written)

    @cached_property
    def own(self) -> frozenset[Buffer]:
        """The buffers that each iteration has for itself."""
        return frozenset(alloc.buffer for alloc in find(self.written, Alloc))

    @cached_property
    def own_nbytes(self) -> int:
        return sum(map(_nbytes, self.own))

    @cached_property
    def keeps_vectors(self) -> bool:
        """Whether an iteration has more for itself than single numbers."""
        return any(prod(buffer.shape) > 1 for buffer in self.own)

    def branches(self, var: Var) -> bool:
        """Whether iterations part ways to store results, which they then do one by one."""
        return any(
            var in variables(branch.condition) or mentioned(branch.condition) & self.own
            for branch in find(self.written, If)
            if any(store.buffer not in self.own for store in find(branch, Store))
        )

    def neighbours(self, var: Var) -> int:
        """How many more places are beside those of the next iteration than are apart from them."""
        places: list[Load | Store] = [*find(self.written, Load), *find(self.written, Store)]
        return sum(_nearness(at.index, var) for at in places if at.buffer not in self.own)

    @cached_property
    def runs_along_neighbours(self) -> bool:
        """Whether most of the work is in innermost loops that are ones for vectors already."""
        good = sum(
            times
            for loop, times in _innermost(self.written, 1)
            if independent(loop.var, loop.body) and self.neighbours(loop.var) > 0
        )
        return good > _MOSTLY * self.work


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


def fits_stack(func: Func) -> bool:
    """Whether a function has a program as it is written."""
    return all(_nbytes(alloc.buffer) <= LOCAL_NBYTES for alloc in find(func.body, Alloc))


def is_in_sequence(func: Func) -> bool:
    """Whether much of the work is in stages of several statements, which no tile changes."""
    works = [(stage, Rows(stage, ()).work) for stage in all_stages(func)]
    stuck = sum(work for stage, work in works if not isinstance(stage.block.body, Store))
    return stuck > _MUCH * sum(work for _, work in works)


def rows_of(func: Func) -> tuple[Rows, ...]:
    """The nests of a function in which loops are free, but for those that hardly take any time."""
    found = [Rows(stage, _free(stage)) for stage in all_stages(func)]
    least = sum(each.work for each in found) * _LEAST_SHARE
    return tuple(each for each in found if each.free and each.work >= least)


def _free(stage: Stage) -> Loops:
    outer, held = perfect_nest(as_written(stage.loops, stage.block))
    found = []
    for loop in outer:
        inside = wrap([each for each in outer if each is not loop], held)
        if loop.extent > 1 and independent(loop.var, inside):
            found.append(loop)
    return tuple(found)


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


def _nbytes(buffer: Buffer) -> int:
    return prod(buffer.shape) * buffer.dtype.nbytes


def _work(stmt: Stmt) -> int:
    loops, held = perfect_nest(stmt)
    inner = [_work(each) for each in _inside(held)]
    return prod(loop.extent for loop in loops) * max(1, sum(inner))


def _innermost(stmt: Stmt, times: int) -> Iterator[tuple[For, int]]:
    """Loops that hold no others, and how often they iterate where `stmt` is done so often."""
    for loop in _inside(stmt):
        all_times = times * loop.extent
        if next(_inside(loop.body), None) is None:
            yield loop, all_times
        else:
            yield from _innermost(loop.body, all_times)


def _inside(stmt: Stmt) -> Iterator[For]:
    """The outermost loops within a statement."""
    if isinstance(stmt, For):
        yield stmt
        return
    for child in children(stmt):
        if isinstance(child, Stmt):
            yield from _inside(child)


def _nearness(index: Sequence[Expr], var: Var) -> int:
    """1 where the next iteration is at the next element, 0 at the same one, -1 further away."""
    steps = [_step(each, var) for each in index]
    if any(steps[:-1]) or None in steps:
        return -1
    return 1 if steps[-1] == 1 else -1 if steps[-1] else 0


def _step(index: Expr, var: Var) -> int | None:
    form = as_affine(index)
    return None if form is None else form.terms.get(var, 0)
