"""Mode `exact`: a constraint model of the whole schedule, solved by CP-SAT (the extra `exact`).

An interval a step, and for each buffer stays in memory, each with its uses; a stay that is not the
first begins with a read, and what was changed is saved before it leaves. Engines hold as many
intervals as they have instances, memories as many bytes as they have; addresses are left out, which
on small graphs changes no optimum (memory-only relaxations are as good as models with addresses),
and are found for the schedule afterwards. The answer is told as a sequence, and decoded as any.

Where a problem permits it, a stay may begin with another run of the step that made the buffer, for
which its operands have to be there, and an operand's last stay may end as the step begins whose
result takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import gcd
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
    bound = 0 if model.is_narrow else round(solver.best_objective_bound)
    return Solved(best=decoded(instance, tokens), bound_ticks=bound)


@dataclass(slots=True)
class _User:
    """Who wants a buffer in memory: a step, or if it `is_there` another run of it."""

    begin: Any
    ticks: int
    is_there: Any
    step: int = -1

    @property
    def end(self) -> Any:
        return self.begin + self.ticks


@dataclass(slots=True)
class _Stay:
    """One stay of a buffer: from `first` to `end` if it is `here`; if it is not the first one, by a
    read, or made again.
    """

    here: Any
    first: Any
    end: Any
    uses: list[Any] = field(default_factory=list)
    is_read: Any = None
    is_made: Any = None
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
    _users: dict[int, list[_User]] = field(default_factory=dict)
    _taken: dict[tuple[int, int], list[Any]] = field(default_factory=dict)
    _makespan: Any = None
    is_narrow: bool = False
    """Whether some buffer could come more often than is looked at."""

    def build(self) -> None:
        """All of it."""
        self._makespan = self._time()
        self._busy = [[] for _ in self.instance.instances]
        self._held = [[] for _ in self.instance.capacities]
        self._build_steps()
        self._build_places()
        numbers = [
            number
            for number, buffer in enumerate(self.instance.buffers)
            if self.instance.users[number] or (buffer.is_present and buffer.is_kept)
        ]
        for number in numbers:
            self._users[number] = [
                _User(self._begins[step], self.instance.steps[step].ticks, 1, step)
                for step in self.instance.users[number]
            ]
        for number in numbers:
            self._begin_stays(number)
        for number in numbers:
            self._build_buffer(number)
        self._build_limits()
        self.cp.minimize(self._makespan)

    def _build_limits(self) -> None:
        """Of engines, barriers and memories."""
        for busy, instances in zip(self._busy, self.instance.instances, strict=True):
            self.cp.add_cumulative([i for i, _ in busy], [d for _, d in busy], instances)
        if self.instance.barriers:
            running = [interval for busy in self._busy for interval, _ in busy]
            self.cp.add_cumulative(running, [1] * len(running), self.instance.barriers)
        for number, held in enumerate(self._held):
            capacity = self.instance.capacities[number]
            if held and capacity:
                grain = self._grain(number)
                sizes = [_padded(nbytes, grain) for _, nbytes in held]
                self.cp.add_cumulative([i for i, _ in held], sizes, _padded(capacity, grain))

    def _grain(self, memory: int) -> int:
        """Bytes of which everything in a memory takes whole multiples, but for its upper end."""
        mine = [b.alignment for b in self.instance.buffers if b.memory == memory]
        ends = (end for begin, size in self.instance.reserved[memory] for end in (begin, size))
        return gcd(*mine, *ends)

    def events(self, solver: Any) -> Iterator[tuple[int, int, Token]]:
        """(begin, rank within that tick, token) of all that was decided."""
        for number, begin in enumerate(self._begins):
            yield solver.value(begin), _MIDDLE, number
        for buffer, stays in self._stays.items():
            for before, stay in zip([None, *stays], stays, strict=False):
                if stay.is_saved is not None and solver.value(stay.is_saved):
                    yield solver.value(stay.save), _MIDDLE, token_of(Move.SAVE, buffer)
                if before is None or not solver.value(stay.here):
                    continue
                is_read = solver.value(stay.is_read)
                back = Move.RETURN if is_read else Move.AGAIN
                yield solver.value(stay.first), _FIRST, token_of(back, buffer)
                used = [
                    solver.value(user.begin)
                    for user, use in zip(self._users[buffer], before.uses, strict=True)
                    if solver.value(use)
                ]
                if before.is_saved is not None and solver.value(before.is_saved):
                    used.append(solver.value(before.save))
                gone = Move.LEAVE if is_read else Move.DROP
                yield max(used, default=0), _LAST, token_of(gone, buffer)

    def _time(self) -> Any:
        return self.cp.new_int_var(0, self.horizon, "")

    def _build_steps(self) -> None:
        self._begins = [self._time() for _ in self.instance.steps]
        for number, step in enumerate(self.instance.steps):
            begin = self._begins[number]
            interval = self.cp.new_fixed_size_interval_var(begin, step.ticks, "")
            self._busy[step.engine].append((interval, self._count(number)))
            self.cp.add(self._makespan >= begin + step.ticks)
            for before in step.before:
                self.cp.add(begin >= self._begins[before] + self.instance.steps[before].ticks)
            for before in step.behind:
                self.cp.add(begin >= self._begins[before])

    def _count(self, step: int) -> int:
        """Instances that a step takes."""
        its = self.instance.steps[step]
        return self.instance.instances[its.engine] if its.takes_all else 1

    def _build_places(self) -> None:
        """Each result takes the place of one operand at most, and each place goes to one result."""
        for number, step in enumerate(self.instance.steps):
            pairs = [p for p in step.in_place if not self.instance.buffers[p[0]].is_kept]
            takes = [(operand, result, self.cp.new_bool_var("")) for operand, result in pairs]
            for operand, result, taken in takes:
                self._taken.setdefault((number, operand), []).append(taken)
                same = [other for o, r, other in takes if o == operand or r == result]
                self.cp.add_at_most_one(same)

    def _begin_stays(self, number: int) -> None:
        """Stays without their uses; who runs again to begin one is a user of its operands."""
        buffer, users = self.instance.buffers[number], self.instance.users[number]
        may_come_back = bool(buffer.save and buffer.read) or buffer.remade_by is not None
        most = len(users) if may_come_back else 1
        count, self.is_narrow = min(most, _STAYS), self.is_narrow or most > _STAYS
        self._stays[number] = []
        for at in range(max(count, 1)):
            here = self.cp.new_bool_var("") if at else self.cp.new_constant(1)
            stay = _Stay(here, self._time(), self._time())
            self._stays[number].append(stay)
            if at:
                self._begin_again(number, stay)

    def _begin_again(self, number: int, stay: _Stay) -> None:
        """A stay that is not the first begins with a read, or with a step that runs again."""
        buffer = self.instance.buffers[number]
        stay.is_read, stay.is_made = self.cp.new_bool_var(""), self.cp.new_bool_var("")
        self.cp.add(stay.is_read + stay.is_made == stay.here)
        if not (buffer.save and buffer.read):
            self.cp.add(stay.is_read == 0)
        if buffer.remade_by is None:
            self.cp.add(stay.is_made == 0)
            return
        maker = self.instance.steps[buffer.remade_by]
        count = self._count(buffer.remade_by)
        self._transfer(maker.engine, stay.first, maker.ticks, stay.is_made, count)
        for operand in maker.uses:
            if operand != number:
                self._users[operand].append(_User(stay.first, maker.ticks, stay.is_made))

    def _build_buffer(self, number: int) -> None:
        buffer, users, stays = (
            self.instance.buffers[number],
            self._users[number],
            self._stays[number],
        )
        self.is_narrow = self.is_narrow or len(users) > len(stays) > 1
        for stay in stays:
            stay.uses = [self.cp.new_bool_var("") for _ in users]
        for user, use in zip(users, zip(*(stay.uses for stay in stays), strict=True), strict=True):
            self.cp.add(sum(use) == user.is_there)
        for at, stay in enumerate(stays):
            self._build_stay(number, stay)
            if at:
                self.cp.add(stay.here <= stays[at - 1].here)
                self.cp.add_bool_or(*stay.uses, stay.here.negated())
                self._build_return(number, stays[: at + 1])
        if buffer.is_present:
            self.cp.add(stays[0].first == 0)
        if buffer.is_kept:
            for stay, later in zip(stays, [*stays[1:], None], strict=True):
                kept = self.cp.add(stay.end >= self._makespan)
                kept.only_enforce_if(stay.here, *([later.here.negated()] if later else []))

    def _build_stay(self, number: int, stay: _Stay) -> None:
        """Bytes from first to end; whatever uses it does so within, but for a step whose result
        takes its place, for which it ends.
        """
        buffer, users = self.instance.buffers[number], self._users[number]
        interval = self.cp.new_optional_interval_var(
            stay.first, self._time(), stay.end, stay.here, ""
        )
        self._held[buffer.memory].append((interval, buffer.nbytes))
        for user, use in zip(users, stay.uses, strict=True):
            self.cp.add(use <= stay.here)
            self.cp.add(user.begin >= stay.first).only_enforce_if(use)
            self.cp.add(user.begin <= stay.end).only_enforce_if(use)
            takes = self._taken.get((user.step, number), [])
            self.cp.add(user.end <= stay.end).only_enforce_if(use, *(t.negated() for t in takes))
            for taken in takes:
                for other in users:
                    if other is not user:
                        ended = self.cp.add(other.end <= user.begin)
                        ended.only_enforce_if(taken, other.is_there)

    def _build_return(self, number: int, stays: list[_Stay]) -> None:
        """The last of these stays begins after the one before; with a read, once what was changed
        was saved.
        """
        buffer, users = self.instance.buffers[number], self._users[number]
        *earlier, before, stay = [*stays]
        self.cp.add(before.end <= stay.first).only_enforce_if(stay.here)
        if buffer.remade_by is not None:
            ticks = self.instance.steps[buffer.remade_by].ticks
            for user, use in zip(users, stay.uses, strict=True):
                self.cp.add(user.begin >= stay.first + ticks).only_enforce_if(use, stay.is_made)
        if not (buffer.save and buffer.read):
            return
        engine, ticks = buffer.read
        self._transfer(engine, stay.first, ticks, stay.is_read)
        for user, use in zip(users, stay.uses, strict=True):
            self.cp.add(user.begin >= stay.first + ticks).only_enforce_if(use, stay.is_read)
        changes = [
            (user, use)
            for user, use in zip(users, before.uses, strict=True)
            if user.step >= 0 and number in self.instance.steps[user.step].changes
        ]
        is_full = buffer.is_present and not earlier
        if not changes and not is_full:
            return
        self._build_save(buffer.save, before, changes)
        saved = [before.is_saved]
        if buffer.remade_by is not None:  # a copy from before holds the same
            saved += [each.is_saved for each in earlier if each.is_saved is not None]
        for _, use in changes:
            self.cp.add_bool_or(*saved, use.negated(), stay.is_read.negated())
        if is_full or buffer.remade_by is not None:
            self.cp.add_bool_or(*saved, stay.is_read.negated())

    def _build_save(
        self, cost: tuple[int, int], stay: _Stay, changes: list[tuple[_User, Any]]
    ) -> None:
        """A stay in which the buffer may be saved, after what changed it."""
        engine, ticks = cost
        stay.is_saved, stay.save = self.cp.new_bool_var(""), self._time()
        self.cp.add(stay.is_saved <= stay.here)
        self._transfer(engine, stay.save, ticks, stay.is_saved)
        self.cp.add(stay.save + ticks <= stay.end).only_enforce_if(stay.is_saved)
        self.cp.add(stay.save >= stay.first).only_enforce_if(stay.is_saved)
        for user, use in changes:
            self.cp.add(stay.save >= user.end).only_enforce_if(stay.is_saved, use)

    def _transfer(self, engine: int, begin: Any, ticks: int, is_there: Any, count: int = 1) -> None:
        interval = self.cp.new_optional_fixed_size_interval_var(begin, ticks, is_there, "")
        self._busy[engine].append((interval, count))
        self.cp.add(self._makespan >= begin + ticks).only_enforce_if(is_there)


def _padded(nbytes: int, grain: int) -> int:
    return -(-nbytes // grain) * grain
