"""Mode `exact`: a constraint model of the whole schedule, solved by CP-SAT (the extra `exact`).

An interval a step, and for each buffer stays in memory, each with its uses; a stay that is not the
first begins with a read, and what was changed is saved before it leaves. Engines hold as many
intervals as they have instances, memories as many bytes as they have; addresses are left out, which
on small graphs changes no optimum (memory-only relaxations are as good as models with addresses),
and are found for the schedule afterwards. The answer is told as a sequence, and decoded as any.

Nothing runs again in it, and no result takes its operand's place: where a problem permits that, the
solver's schedule is one more among those that were found, and proves nothing about others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tilefarm.errors import SettingsError

from driver.memory.instance import Instance
from driver.memory.schedule import Move, Schedule, Token, token_of
from driver.memory.search import decoded

_STAYS: Final = 4
"""Times at most that a buffer comes into memory."""
_FIRST, _MIDDLE, _LAST = 0, 1, 2
"""What begins at one tick: returns, then steps and saves, then what leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """What the solver found.

    Attributes:
        best: as short as it found one; None where it found nothing in its time.
        bound_ticks: no schedule is shorter; 0 where that is not known.
    """

    best: Schedule | None
    bound_ticks: int

    @property
    def is_optimal(self) -> bool:
        return self.best is not None and self.best.makespan <= self.bound_ticks


def solved(instance: Instance, *, at_most: int, seconds: float, seed: int = 0) -> Solved:
    """The shortest schedule within so many ticks, in so many seconds on one thread.

    Raises:
        SettingsError: the solver is not installed.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise SettingsError(
            "the exact mode needs OR-Tools, which is not installed",
            "`pip install tilefarm[exact]`, or the mode `best`",
        ) from None
    model = _Model(instance, at_most, cp_model.CpModel())
    model.build()
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    status = solver.solve(model.cp)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Solved(best=None, bound_ticks=0)
    tokens = [token for *_, token in sorted(model.events(solver))]
    is_partial = any(b.remade_by is not None for b in instance.buffers) or any(
        step.in_place for step in instance.steps
    )
    bound = 0 if model.is_narrow or is_partial else round(solver.best_objective_bound)
    return Solved(best=decoded(instance, tokens), bound_ticks=bound)


@dataclass(slots=True)
class _Stay:
    """One stay of a buffer: from `first` to `end` if it is `here`; by a read, if not the first."""

    here: Any
    first: Any
    end: Any
    uses: list[Any]
    is_saved: Any = None
    save: Any = None


@dataclass(slots=True)
class _Model:
    """Variables and constraints; `Any` are those of CP-SAT, which has no types of its own."""

    instance: Instance
    horizon: int
    cp: Any
    _begins: list[Any] = field(default_factory=list)
    _busy: list[list[tuple[Any, int]]] = field(default_factory=list)
    _held: list[list[tuple[Any, int]]] = field(default_factory=list)
    _stays: dict[int, list[_Stay]] = field(default_factory=dict)
    _makespan: Any = None
    is_narrow: bool = False
    """Whether some buffer could come more often than is looked at."""

    def build(self) -> None:
        """All of it."""
        self._makespan = self._time()
        self._busy = [[] for _ in self.instance.instances]
        self._held = [[] for _ in self.instance.capacities]
        self._build_steps()
        for number, buffer in enumerate(self.instance.buffers):
            if self.instance.users[number] or (buffer.is_present and buffer.is_kept):
                self._build_buffer(number)
        for busy, instances in zip(self._busy, self.instance.instances, strict=True):
            self.cp.add_cumulative([i for i, _ in busy], [d for _, d in busy], instances)
        if self.instance.barriers:
            running = [interval for busy in self._busy for interval, _ in busy]
            self.cp.add_cumulative(running, [1] * len(running), self.instance.barriers)
        for held, capacity in zip(self._held, self.instance.capacities, strict=True):
            if capacity:
                self.cp.add_cumulative([i for i, _ in held], [d for _, d in held], capacity)
        self.cp.minimize(self._makespan)

    def events(self, solver: Any) -> Iterator[tuple[int, int, Token]]:
        """(begin, rank within that tick, token) of all that was decided."""
        for number, begin in enumerate(self._begins):
            yield solver.value(begin), _MIDDLE, number
        for buffer, stays in self._stays.items():
            users = self.instance.users[buffer]
            for before, stay in zip([None, *stays], stays, strict=False):
                if stay.is_saved is not None and solver.value(stay.is_saved):
                    yield solver.value(stay.save), _MIDDLE, token_of(Move.SAVE, buffer)
                if before is None or not solver.value(stay.here):
                    continue
                yield solver.value(stay.first), _FIRST, token_of(Move.RETURN, buffer)
                used = [
                    solver.value(self._begins[user])
                    for user, use in zip(users, before.uses, strict=True)
                    if solver.value(use)
                ]
                if before.is_saved is not None and solver.value(before.is_saved):
                    used.append(solver.value(before.save))
                yield max(used, default=0), _LAST, token_of(Move.LEAVE, buffer)

    def _time(self) -> Any:
        return self.cp.new_int_var(0, self.horizon, "")

    def _build_steps(self) -> None:
        self._begins = [self._time() for _ in self.instance.steps]
        for number, step in enumerate(self.instance.steps):
            begin = self._begins[number]
            interval = self.cp.new_fixed_size_interval_var(begin, step.ticks, "")
            count = self.instance.instances[step.engine] if step.takes_all else 1
            self._busy[step.engine].append((interval, count))
            self.cp.add(self._makespan >= begin + step.ticks)
            for before in step.before:
                self.cp.add(begin >= self._end(before))
            for before in step.behind:
                self.cp.add(begin >= self._begins[before])

    def _end(self, step: int) -> Any:
        return self._begins[step] + self.instance.steps[step].ticks

    def _build_buffer(self, number: int) -> None:
        buffer, users = self.instance.buffers[number], self.instance.users[number]
        most = len(users) if buffer.save and buffer.read else 1
        count, self.is_narrow = min(most, _STAYS), self.is_narrow or most > _STAYS
        stays = [
            _Stay(
                here=self.cp.new_constant(1) if not at else self.cp.new_bool_var(""),
                first=self._time(),
                end=self._time(),
                uses=[self.cp.new_bool_var("") for _ in users],
            )
            for at in range(max(count, 1))
        ]
        self._stays[number] = stays
        for use in zip(*(stay.uses for stay in stays), strict=True):
            self.cp.add_exactly_one(use)
        for at, stay in enumerate(stays):
            self._build_stay(number, stay)
            if at:
                self.cp.add(stay.here <= stays[at - 1].here)
                self.cp.add_bool_or(*stay.uses, stay.here.negated())
                self._build_read(number, stays[at - 1], stay, is_first=at == 1)
        if buffer.is_present:
            self.cp.add(stays[0].first == 0)
        if buffer.is_kept:
            for stay, later in zip(stays, [*stays[1:], None], strict=True):
                kept = self.cp.add(stay.end >= self._makespan)
                kept.only_enforce_if(stay.here, *([later.here.negated()] if later else []))

    def _build_stay(self, number: int, stay: _Stay) -> None:
        """Bytes from first to end; whatever uses it does so within."""
        buffer = self.instance.buffers[number]
        interval = self.cp.new_optional_interval_var(
            stay.first, self._time(), stay.end, stay.here, ""
        )
        self._held[buffer.memory].append((interval, buffer.aligned_nbytes))
        for user, use in zip(self.instance.users[number], stay.uses, strict=True):
            self.cp.add(use <= stay.here)
            self.cp.add(self._begins[user] >= stay.first).only_enforce_if(use)
            self.cp.add(self._end(user) <= stay.end).only_enforce_if(use)

    def _build_read(self, number: int, before: _Stay, stay: _Stay, *, is_first: bool) -> None:
        """A stay begins with a read, after what was changed in the one before was saved."""
        buffer, users = self.instance.buffers[number], self.instance.users[number]
        assert buffer.read is not None
        assert buffer.save is not None
        engine, ticks = buffer.read
        self._transfer(engine, stay.first, ticks, stay.here)
        self.cp.add(before.end <= stay.first).only_enforce_if(stay.here)
        for user, use in zip(users, stay.uses, strict=True):
            self.cp.add(self._begins[user] >= stay.first + ticks).only_enforce_if(use)
        changes = [
            (user, use)
            for user, use in zip(users, before.uses, strict=True)
            if number in self.instance.steps[user].changes
        ]
        if not changes and not (is_first and buffer.is_present):
            return
        before.is_saved, before.save = self.cp.new_bool_var(""), self._time()
        self.cp.add(before.is_saved <= stay.here)
        engine, ticks = buffer.save
        self._transfer(engine, before.save, ticks, before.is_saved)
        self.cp.add(before.save + ticks <= before.end).only_enforce_if(before.is_saved)
        for user, use in changes:
            self.cp.add_bool_or(before.is_saved, use.negated(), stay.here.negated())
            later = self.cp.add(before.save >= self._end(user))
            later.only_enforce_if(before.is_saved, use)
        if is_first and buffer.is_present:
            self.cp.add_bool_or(before.is_saved, stay.here.negated())

    def _transfer(self, engine: int, begin: Any, ticks: int, is_there: Any) -> None:
        interval = self.cp.new_optional_fixed_size_interval_var(begin, ticks, is_there, "")
        self._busy[engine].append((interval, 1))
        self.cp.add(self._makespan >= begin + ticks).only_enforce_if(is_there)
