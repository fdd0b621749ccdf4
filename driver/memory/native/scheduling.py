"""The schedules' part of the C header in Python's words."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import Any

from driver.memory.instance import Instance
from driver.memory.native.library import (
    INTEGERS,
    STOP,
    Table,
    integers,
    library,
    require_memory,
    table,
)
from driver.memory.schedule import Action, Found, Schedule, Stay, Token


class Rows(ctypes.Structure):
    """`tilefarm_memory_instance`."""

    _fields_ = (
        ("steps", ctypes.c_int64),
        ("engine", INTEGERS),
        ("ticks", INTEGERS),
        ("takes_all", INTEGERS),
        ("before", Table),
        ("behind", Table),
        ("uses", Table),
        ("changes", Table),
        ("in_place", Table),
        ("buffers", ctypes.c_int64),
        ("nbytes", INTEGERS),
        ("aligned_nbytes", INTEGERS),
        ("alignment", INTEGERS),
        ("pinned_at", INTEGERS),
        ("memory", INTEGERS),
        ("is_present", INTEGERS),
        ("is_kept", INTEGERS),
        ("save_engine", INTEGERS),
        ("save_ticks", INTEGERS),
        ("read_engine", INTEGERS),
        ("read_ticks", INTEGERS),
        ("remade_by", INTEGERS),
        ("engines", ctypes.c_int64),
        ("instances", INTEGERS),
        ("barriers", ctypes.c_int64),
        ("memories", ctypes.c_int64),
        ("capacity", INTEGERS),
        ("end", INTEGERS),
        ("first_reserved", INTEGERS),
        ("reserved_begin", INTEGERS),
        ("reserved_end", INTEGERS),
    )


class Limits(ctypes.Structure):
    """`tilefarm_memory_search_limits`."""

    _fields_ = (
        ("is_placed", ctypes.c_int32),
        ("seed", ctypes.c_uint64),
        ("tries", ctypes.c_int64),
        ("bound", ctypes.c_int64),
        ("seconds", ctypes.c_double),
        ("stop", STOP),
    )


class _Schedule(ctypes.Structure):
    """`tilefarm_memory_schedule`."""

    _fields_ = (
        ("makespan", ctypes.c_int64),
        ("extra_nbytes", ctypes.c_int64),
        ("peak_nbytes", ctypes.c_int64),
        ("tokens", ctypes.c_int64),
        ("token", INTEGERS),
        ("actions", ctypes.c_int64),
        ("action", INTEGERS),
        ("residencies", ctypes.c_int64),
        ("residency", INTEGERS),
    )


class _Schedules(ctypes.Structure):
    """`tilefarm_memory_schedules`."""

    _fields_ = (
        ("decoded", ctypes.c_int64),
        ("is_cut_short", ctypes.c_int32),
        ("schedules", ctypes.c_int64),
        ("schedule", ctypes.POINTER(_Schedule)),
        ("owner", ctypes.c_void_p),
    )


def search(instance: Instance, favourites: Sequence[Sequence[Token]], limits: Limits) -> Found:
    """The best schedules that are found. Other threads run meanwhile.

    Raises:
        InfraError: the library is not built.
        MemoryError: there is not enough for the search.
    """
    rows, first = _rows(instance), table(favourites)
    found = _Schedules()
    failed = library().tilefarm_memory_schedule_search(
        ctypes.byref(rows),
        ctypes.byref(first),
        ctypes.c_int64(len(favourites)),
        ctypes.byref(limits),
        ctypes.byref(found),
    )
    require_memory(failed)
    return _taken(found)


def decode(instance: Instance, tokens: Sequence[Token]) -> Found:
    """The schedule of a sequence, if it has one.

    Raises:
        InfraError, MemoryError: see `search`.
    """
    rows, found = _rows(instance), _Schedules()
    failed = library().tilefarm_memory_decode(
        ctypes.byref(rows), integers(tokens), ctypes.c_int64(len(tokens)), ctypes.byref(found)
    )
    require_memory(failed)
    return _taken(found)


def _rows(instance: Instance) -> Rows:
    steps, buffers = instance.steps, instance.buffers
    reserved = [*chain.from_iterable(instance.reserved)]
    first = [0, *accumulate(map(len, instance.reserved))]
    costs = ([each.save or (-1, 0) for each in buffers], [each.read or (-1, 0) for each in buffers])
    return Rows(
        len(steps),
        integers([each.engine for each in steps]),
        integers([each.ticks for each in steps]),
        integers([each.takes_all for each in steps]),
        table(each.before for each in steps),
        table(each.behind for each in steps),
        table(each.uses for each in steps),
        table(each.changes for each in steps),
        table([*chain.from_iterable(each.in_place)] for each in steps),
        len(buffers),
        integers([each.nbytes for each in buffers]),
        integers([each.aligned_nbytes for each in buffers]),
        integers([each.alignment for each in buffers]),
        integers([-1 if each.pinned_at is None else each.pinned_at for each in buffers]),
        integers([each.memory for each in buffers]),
        integers([each.is_present for each in buffers]),
        integers([each.is_kept for each in buffers]),
        *(integers([cost[part] for cost in each]) for each in costs for part in (0, 1)),
        integers([-1 if each.remade_by is None else each.remade_by for each in buffers]),
        len(instance.instances),
        integers(instance.instances),
        instance.barriers,
        len(instance.capacities),
        integers(instance.capacities),
        integers(instance.ends),
        integers(first),
        integers([begin for begin, _ in reserved]),
        integers([begin + nbytes for begin, nbytes in reserved]),
    )


def _taken(found: Any) -> Found:
    """The schedules as records; the library's are freed."""
    try:
        best = tuple(_schedule(found.schedule[at]) for at in range(found.schedules))
        return Found(best=best, decoded=found.decoded, is_cut_short=bool(found.is_cut_short))
    finally:
        library().tilefarm_memory_free(ctypes.byref(found))


def _schedule(row: Any) -> Schedule:
    return Schedule(
        tokens=tuple(row.token[: row.tokens]),
        actions=tuple(Action(*each) for each in _table(row.action, row.actions, 5)),
        stays=tuple(
            Stay(buffer, begin, end, by if is_brought else None, None if offset < 0 else offset)
            for buffer, begin, end, is_brought, by, offset in _table(
                row.residency, row.residencies, 6
            )
        ),
        makespan=row.makespan,
        extra_nbytes=row.extra_nbytes,
        peak_nbytes=row.peak_nbytes,
    )


def _table(items: Any, rows: int, columns: int) -> Iterator[tuple[int, ...]]:
    numbers = iter(items[: rows * columns])
    return zip(*[numbers] * columns, strict=True)
