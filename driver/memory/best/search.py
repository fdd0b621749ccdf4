"""The search: many first sequences, then small changes of the best of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from driver.memory.best.decoder import (
    RULES,
    Decoded,
    Move,
    Rule,
    Token,
    decoded,
    move_of,
    token_of,
)
from driver.memory.instance import Instance

LEADS: Final = (0, 1, 2, 4, 8)
"""How many steps that are no loads a load is begun ahead of its first user."""
_LEAST_FIRSTS: Final = 4
"""Sequences that are looked at of a problem so large that its effort is for none."""
_KEPT: Final = 8
"""Schedules that may all be asked for addresses."""
_CLIMBS: Final = 12
"""Every other one begins with the best schedule so far, the others with the next best in turn."""
_MEMORY: Final = 10
"""Late acceptance: a change is taken if it is no worse than what was there so many changes ago
(Burke and Bykov, The late acceptance hill-climbing heuristic, 2017)."""


def first_sequences(instance: Instance) -> tuple[tuple[Token, ...], ...]:
    """What a search begins with: orders as given and by the longest path to the end, each with
    loads begun earlier and earlier.
    """
    found: dict[tuple[Token, ...], None] = {}
    for order in (instance.arranged(lambda at: at), instance.arranged(_longest_path(instance))):
        for lead in LEADS:
            found[with_loads_ahead(instance, order, lead)] = None
    return tuple(found)


def _longest_path(instance: Instance) -> Callable[[int], int]:
    tail = [0] * len(instance.steps)
    for at in reversed(instance.arranged(lambda at: at)):
        after = max((tail[each] for each in instance.after[at]), default=0)
        tail[at] = after + instance.steps[at].ticks
    return lambda at: -tail[at]


def with_loads_ahead(instance: Instance, order: Sequence[int], lead: int) -> tuple[Token, ...]:
    """The order with each load begun `lead` others before its first user.

    What nothing waits for, and what changes nothing, gives results away: it comes as early as it
    may.
    """
    others = [step for step in order if not instance.steps[step].is_load]
    rank = {step: at for at, step in enumerate(others)}

    def key(at: int) -> tuple[int, int, int]:
        step = instance.steps[at]
        if at not in rank:
            users = [rank[each] for each in instance.after[at] if each in rank]
            first = min(users, default=len(rank))
            return max(first - lead, 0), 0, first
        if instance.after[at] or step.changes or step.behind:
            return rank[at], 1, 0
        return max((rank.get(each, 0) for each in step.before), default=0), 2, rank[at]

    return instance.arranged(key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search ended with.

    Attributes:
        best: schedules, the best one first; none where nothing has room.
        decoded: sequences that were looked at.
        is_cut_short: by the clock, before all that it would have tried.
    """

    best: tuple[Decoded, ...]
    decoded: int
    is_cut_short: bool = False


def searched(
    instance: Instance,
    favourites: Sequence[Sequence[Token]] = (),
    *,
    bound: int,
    tries: int,
    seed: int,
    is_over: Callable[[], bool],
) -> Found:
    """The best schedules of `tries` sequences, or of those until `is_over`: `favourites` first.

    Ends early where the makespan is `bound` and nothing is moved that need not be.
    """
    rng = random.Random(seed)
    pool = _Pool()
    sequences = (*favourites, *first_sequences(instance))
    firsts = [(tokens, rule) for rule in RULES for tokens in sequences]
    for tokens, rule in firsts[: max(_LEAST_FIRSTS, tries // 2)]:
        pool.add(decoded(instance, tokens, rule), rule)
        if pool.kept and (is_over() or pool.is_best(bound)):
            return pool.found(is_cut_short=not pool.is_best(bound))
    if not pool.kept:
        return pool.found()
    left = max(0, tries - len(firsts))
    for turn in range(_CLIMBS):
        start, rule = pool.kept[turn % len(pool.kept)] if turn % 2 else pool.kept[0]
        climb = _Climb(instance, start, rule, rng)
        for _ in range(left // _CLIMBS):
            pool.add(climb.step(), rule)
            if is_over() or pool.is_best(bound):
                return pool.found(is_cut_short=not pool.is_best(bound))
    return pool.found()


class _Pool:
    """The best schedules so far, each cost once."""

    def __init__(self) -> None:
        self.kept: list[tuple[Decoded, Rule]] = []
        self._decoded = 0

    def add(self, found: Decoded | None, rule: Rule) -> None:
        self._decoded += 1
        if found is None or any(found.cost == each.cost for each, _ in self.kept):
            return
        if len(self.kept) < _KEPT or found.cost < self.kept[-1][0].cost:
            self.kept.append((found, rule))
            self.kept.sort(key=lambda each: each[0].cost)
            del self.kept[_KEPT:]

    def is_best(self, bound: int) -> bool:
        """Whether nothing can be shorter, and nothing is moved that need not be."""
        best, _ = self.kept[0]
        return best.makespan <= bound and not best.extra_nbytes

    def found(self, *, is_cut_short: bool = False) -> Found:
        best = tuple(each for each, _ in self.kept)
        return Found(best=best, decoded=self._decoded, is_cut_short=is_cut_short)


class _Climb:
    """Late acceptance over sequences."""

    def __init__(self, instance: Instance, start: Decoded, rule: Rule, rng: random.Random) -> None:
        self._instance = instance
        self._now = start
        self._rule = rule
        self._rng = rng
        self._past = [_smooth(start)] * _MEMORY
        self._turn = 0

    def step(self) -> Decoded | None:
        """One change of the sequence, decoded, and taken if it is good enough."""
        tokens = self._changed(list(self._now.tokens))
        found = decoded(self._instance, tokens, self._rule)
        slot, now = self._turn % _MEMORY, _smooth(self._now)
        self._turn += 1
        if found is not None and (mine := _smooth(found)) <= max(self._past[slot], now):
            self._now, now = found, mine
        self._past[slot] = now
        return found

    def _changed(self, tokens: list[Token]) -> list[Token]:
        rng = self._rng
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            kind = rng.random()
            at = rng.randrange(len(tokens))
            if kind < 0.7:
                self._moved(tokens, at)
            elif tokens[at] < 0:
                del tokens[at]
            else:
                uses = self._instance.steps[tokens[at]].uses
                if uses:
                    move = Move.SAVE if rng.random() < 0.2 else Move.LEAVE
                    tokens.insert(at + 1, token_of(move, rng.choice(uses)))
        return tokens

    def _moved(self, tokens: list[Token], at: int) -> None:
        """One token elsewhere, over none that it must not pass; loads come along to the front."""
        rng, steps = self._rng, self._instance.steps
        step = 1 if rng.random() < 0.5 else -1
        most = len(tokens) if rng.random() < 0.1 else 1 + int(rng.expovariate(0.25))
        taken, to = [at], at
        while 0 <= to + step < len(tokens) and most:
            other = tokens[to + step]
            if any(self._conflict(tokens[each], other, step) for each in taken):
                if step > 0 or other < 0 or not steps[other].is_load:
                    break
                taken.insert(0, to + step)
            else:
                most -= 1
            to += step
        moved = [tokens[each] for each in taken]
        for each in reversed(taken):
            del tokens[each]
        tokens[to:to] = moved

    def _conflict(self, token: Token, other: Token, step: int) -> bool:
        steps = self._instance.steps
        if token >= 0 and other >= 0:
            early, late = (token, other) if step > 0 else (other, token)
            return late in self._instance.after[early]
        if token < 0 and other < 0:
            return move_of(token)[1] == move_of(other)[1]
        transfer, number = (token, other) if token < 0 else (other, token)
        move, buffer = move_of(transfer)
        return buffer in (steps[number].changes if move is Move.SAVE else steps[number].uses)


def _smooth(found: Decoded) -> tuple[int, int]:
    """What a climb goes by: the makespan, and a little how early everything ends.

    Makespans alone are the same for most changes, and say nothing of the way.
    """
    ends = sum(action.end for action in found.actions)
    return found.makespan * len(found.actions) + ends, found.extra_nbytes
