"""From a sequence to a schedule: all begins as soon as it may, in the order of the sequence.

A sequence has every operation once, and where wanted buffers that are saved (written to the backing
memory), that leave, and that come back.
What begins later in it begins no earlier in time, so that bytes in use are known as it is decoded;
any schedule is the decoded one of its own order of beginnings. Where bytes lack and none will come
free by waiting, a buffer leaves that was not asked to; where an operation uses a buffer that has
left, it comes back just before. Addresses are found afterwards (`places`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heappop, heappush
from typing import Final, NamedTuple, TypeAlias

from driver.memory.instance import Instance

Token: TypeAlias = int
"""A step by number, or below 0 a move of a buffer, as `token_of` gives."""


class Move(IntEnum):
    """What a buffer does between its uses."""

    LEAVE = 0
    RETURN = 1
    SAVE = 2


_MOVES: Final = tuple(Move)


def token_of(move: Move, buffer: int) -> Token:
    """The token of a move of a buffer."""
    return -1 - move - 3 * buffer


def move_of(token: Token) -> tuple[Move, int]:
    """The move and the buffer of a token below 0."""
    buffer, move = divmod(-1 - token, 3)
    return _MOVES[move], buffer


class Action(NamedTuple):
    """A step, or a transfer of a buffer: an engine's instance from begin to end, in ticks.

    A tuple, as a search makes millions of them.
    """

    token: Token
    engine: int
    instance: int
    begin: int
    end: int


class Residency(NamedTuple):
    """A buffer in memory from `begin` to `end`; `by` is the token that brought it, if any did."""

    buffer: int
    begin: int
    end: int
    by: Token | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A schedule without addresses. `tokens` is the sequence with all that was added to it."""

    tokens: tuple[Token, ...]
    actions: tuple[Action, ...]
    residencies: tuple[Residency, ...]
    makespan: int
    extra_nbytes: int
    peak_nbytes: int

    @property
    def cost(self) -> tuple[int, int, int]:
        """What a plan is judged by, the most important first."""
        return self.makespan, self.extra_nbytes, self.peak_nbytes


Rule: TypeAlias = Callable[[int, int, int, int], float]
"""How gladly a buffer leaves: by tokens to its next use, bytes, ticks to leave and to return."""

RULES: Final[tuple[Rule, ...]] = (
    lambda distance, *_: distance,
    lambda distance, nbytes, leave, back: distance * nbytes / (1 + leave + back),
    lambda distance, _, leave, __: distance - 1e6 * (leave > 0),
    lambda distance, _, leave, back: distance / (1 + leave + back),
)


@dataclass(slots=True)
class _Held:
    """What is known of a buffer while a sequence is decoded."""

    left: int
    begun: bool = False
    here: bool = False
    is_changed: bool = False
    since: int = 0
    by: Token | None = None
    last_end: int = 0
    changed_at: int = 0
    saved_at: int = 0


@dataclass(slots=True)
class Decoder:
    """Decodes one sequence; see `decoded`."""

    instance: Instance
    tokens: Sequence[Token]
    rule: Rule
    _now: int = 0
    _held: list[_Held] = field(default_factory=list)
    _free: list[list[int]] = field(default_factory=list)
    _used: list[int] = field(default_factory=list)
    _coming: list[list[tuple[int, int]]] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)
    _places: list[int] = field(default_factory=list)
    _at: int = 0
    _done: list[Token] = field(default_factory=list)
    _actions: list[Action] = field(default_factory=list)
    _residencies: list[Residency] = field(default_factory=list)
    _extra: int = 0
    _peak: int = 0

    def run(self) -> Decoded | None:
        self._begin()
        for at, token in enumerate(self.tokens):
            self._at = at
            if token >= 0:
                if not self._step(token):
                    return None
            elif not self._moved(*move_of(token)):
                return None
        makespan = max((each.end for each in self._actions), default=0)
        for number, held in enumerate(self._held):
            if held.here and self.instance.buffers[number].is_kept:
                self._residencies.append(Residency(number, held.since, makespan, held.by))
        return Decoded(
            tokens=tuple(self._done),
            actions=tuple(self._actions),
            residencies=tuple(self._residencies),
            makespan=makespan,
            extra_nbytes=self._extra,
            peak_nbytes=self._peak,
        )

    def _begin(self) -> None:
        instance = self.instance
        self._held = [_Held(len(users)) for users in instance.users]
        self._free = [[0] * count for count in instance.instances]
        self._used = [0] * len(instance.capacities)
        self._coming = [[] for _ in instance.capacities]
        self._ends = [0] * len(instance.steps)
        self._places = [0] * len(instance.steps)
        for place, token in enumerate(self.tokens):
            if token >= 0:
                self._places[token] = place
        for buffer, held in zip(instance.buffers, self._held, strict=True):
            if buffer.is_present and (held.left or buffer.is_kept):
                held.begun = held.here = held.is_changed = True
                self._used[buffer.memory] += buffer.aligned_nbytes
        self._peak = max(self._used, default=0)

    def _step(self, number: int) -> bool:
        step = self.instance.steps[number]
        new = []
        for each in step.uses:
            held = self._held[each]
            if not held.begun:
                new.append(each)
            elif not held.here and not self._return(each, step.uses):
                return False
        begin = self._now
        for each in step.uses:
            held = self._held[each]
            if held.here and held.saved_at > begin:
                begin = held.saved_at
        ends = self._ends
        for before in step.before:
            if ends[before] > begin:
                begin = ends[before]
        free = self._free[step.engine]
        if step.takes_all:
            instance, begin = -1, max(begin, *free)
        else:
            instance = free.index(min(free))
            begin = max(begin, free[instance])
        room = self._room(begin, new, step.uses)
        if room is None:
            return False
        self._now, end = room, room + step.ticks
        self._ends[number] = end
        if step.takes_all:
            free[:] = [end] * len(free)
        else:
            free[instance] = end
        self._actions.append(Action(number, step.engine, instance, room, end))
        self._done.append(number)
        self._touch(number, new, room, end)
        return True

    def _touch(self, number: int, new: Sequence[int], begin: int, end: int) -> None:
        """The buffers of a step know that it was."""
        step = self.instance.steps[number]
        for each in new:
            held = self._held[each]
            held.begun, held.here, held.since, held.by = True, True, begin, number
        for each in step.changes:
            held = self._held[each]
            held.is_changed, held.changed_at = True, max(held.changed_at, end)
        for each in step.uses:
            held = self._held[each]
            held.left -= 1
            held.last_end = max(held.last_end, end)
            if not held.left and not self.instance.buffers[each].is_kept:
                self._gone(each, held.last_end)

    def _gone(self, number: int, end: int) -> None:
        held, buffer = self._held[number], self.instance.buffers[number]
        held.here = False
        heappush(self._coming[buffer.memory], (end, buffer.aligned_nbytes))
        self._residencies.append(Residency(number, held.since, end, held.by))

    def _moved(self, move: Move, number: int) -> bool:
        """Whether a move could be made; one that makes no sense here is none."""
        held, buffer = self._held[number], self.instance.buffers[number]
        if buffer.save is None or not held.begun or not held.left:
            return True
        if move is Move.RETURN:
            return held.here or self._return(number, ())
        if held.here and move is Move.LEAVE:
            self._leave(number)
        elif held.here and held.is_changed:
            self._save(number, buffer.save)
        return True

    def _leave(self, number: int) -> None:
        held, buffer = self._held[number], self.instance.buffers[number]
        assert buffer.save is not None
        if held.is_changed:
            self._save(number, buffer.save)
        held.saved_at = held.last_end
        self._done.append(token_of(Move.LEAVE, number))
        self._gone(number, held.last_end)

    def _save(self, number: int, cost: tuple[int, int]) -> None:
        held, (engine, ticks) = self._held[number], cost
        free = self._free[engine]
        instance = free.index(min(free))
        begin = max(free[instance], held.changed_at)
        free[instance] = begin + ticks
        held.last_end = max(held.last_end, begin + ticks)
        held.is_changed = False
        self._extra += self.instance.buffers[number].nbytes
        token = token_of(Move.SAVE, number)
        self._actions.append(Action(token, engine, instance, begin, begin + ticks))
        self._done.append(token)

    def _return(self, number: int, kept: Sequence[int]) -> bool:
        held, buffer = self._held[number], self.instance.buffers[number]
        assert buffer.read is not None
        engine, ticks = buffer.read
        free = self._free[engine]
        instance = free.index(min(free))
        begin = self._room(max(self._now, free[instance], held.saved_at), (number,), kept)
        if begin is None:
            return False
        self._now = begin
        free[instance] = held.last_end = held.saved_at = begin + ticks
        held.here, held.since, held.by = True, begin, token_of(Move.RETURN, number)
        self._extra += buffer.nbytes
        self._actions.append(
            Action(token_of(Move.RETURN, number), engine, instance, begin, begin + ticks)
        )
        self._done.append(token_of(Move.RETURN, number))
        return True

    def _room(self, begin: int, new: Sequence[int], kept: Sequence[int]) -> int | None:
        """When, from `begin` on, the new buffers have room; they have it then. None for never."""
        buffers = self.instance.buffers
        if not new:
            return begin
        wanted: dict[int, int] = {}
        for each in new:
            memory = buffers[each].memory
            wanted[memory] = wanted.get(memory, 0) + buffers[each].aligned_nbytes
        for memory, nbytes in wanted.items():
            capacity, coming = self.instance.capacities[memory], self._coming[memory]
            used = self._used[memory]
            while capacity and used + nbytes > capacity:
                if not coming and not self._make_room(memory, kept):
                    return None
                end, freed = heappop(coming)
                used -= freed
                begin = max(begin, end)
            self._used[memory] = used
        for memory, nbytes in wanted.items():
            coming = self._coming[memory]
            while coming and coming[0][0] <= begin:
                self._used[memory] -= heappop(coming)[1]
            self._used[memory] += nbytes
            self._peak = max(self._peak, self._used[memory])
        return begin

    def _make_room(self, memory: int, kept: Sequence[int]) -> bool:
        """A buffer leaves: the one that the rule gives up most gladly."""
        worst, best = None, float("-inf")
        for number, held in enumerate(self._held):
            buffer = self.instance.buffers[number]
            if not held.here or not held.left or buffer.memory != memory or number in kept:
                continue
            if buffer.save is None or buffer.read is None:
                continue
            leave = buffer.save[1] if held.is_changed else 0
            distance = self._next_use(number) - self._at
            if (score := self.rule(distance, buffer.aligned_nbytes, leave, buffer.read[1])) > best:
                worst, best = number, score
        if worst is None:
            return False
        self._leave(worst)
        return True

    def _next_use(self, number: int) -> int:
        """The place in the sequence of a buffer's next use: what came before is done."""
        places, now = self._places, self._at
        users = self.instance.users[number]
        return min(place for user in users if (place := places[user]) >= now)


def decoded(instance: Instance, tokens: Sequence[Token], rule: Rule = RULES[0]) -> Decoded | None:
    """The schedule of a sequence; None where an operation has no room whatever leaves."""
    return Decoder(instance, tokens, rule).run()
