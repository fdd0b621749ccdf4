"""Sequences and the schedules that they decode to.

A sequence has every step once, and where wanted buffers that are saved (written to the backing
memory), that leave, and that come back, by a read or made again; `core/schedule/decoder.h` says
how it becomes a schedule.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

Token: TypeAlias = int
"""A step by number, or below 0 a move of a buffer, as `token_of` gives."""


class Move(IntEnum):
    """What a buffer does between its uses."""

    LEAVE = 0
    RETURN = 1
    SAVE = 2
    AGAIN = 3
    DROP = 4


_MOVES: Final = tuple(Move)


def token_of(move: Move, buffer: int) -> Token:
    """The token of a move of a buffer."""
    return -1 - move - len(_MOVES) * buffer


def move_of(token: Token) -> tuple[Move, int]:
    """The move and the buffer of a token below 0."""
    buffer, move = divmod(-1 - token, len(_MOVES))
    return _MOVES[move], buffer


class Action(NamedTuple):
    """A step, or a transfer of a buffer: an engine's instance from begin to end, in ticks."""

    token: Token
    engine: int
    instance: int
    begin: int
    end: int


class Stay(NamedTuple):
    """A buffer in memory from `begin` to `end`.

    Attributes:
        by: the token that brought it; None where it was present.
        offset: of its bytes; None where no address was looked for.
    """

    buffer: int
    begin: int
    end: int
    by: Token | None
    offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule. `tokens` is the sequence with all that was added to it."""

    tokens: tuple[Token, ...]
    actions: tuple[Action, ...]
    stays: tuple[Stay, ...]
    makespan: int
    extra_nbytes: int
    peak_nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search ended with.

    Attributes:
        best: schedules, the best one first; none where nothing has room.
        decoded: sequences that were looked at.
        is_cut_short: by the clock, before all that it would have tried.
    """

    best: tuple[Schedule, ...]
    decoded: int
    is_cut_short: bool = False
