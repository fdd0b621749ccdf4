"""What holds in every order of a graph: who runs before whom, and bytes that must be live."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from driver.memory.order.op_graph import OpGraph
from driver.memory.order.window import Window, bits, members


def fixed_windows(graph: OpGraph) -> list[tuple[int, int]]:
    """The given order in as many parts as no order can mix: (begin, end) of each.

    Between two of them everything before runs before everything behind it.
    """
    waits_for = [bits(before) for before in graph.waits_for]
    before_op = _closure(waits_for, range(len(waits_for)))
    borders, shared = [len(waits_for)], -1
    for begin in reversed(range(len(waits_for))):
        shared &= before_op[begin]
        if not ~shared & ((1 << begin) - 1):
            borders.append(begin)
    return [(begin, end) for end, begin in pairwise(borders)][::-1]


def least_peak_nbytes(window: Window) -> int:
    """No order of the window has a lower peak: the bytes that some operation cannot run without.

    While it runs everything is live that is used by one that must run before or with it and by one
    that must run with or after it.
    """
    before = _closure(window.waits_for, range(len(window)))
    after = _closure(window.followers, reversed(range(len(window))))
    passing = window.begin_nbytes - sum(p.nbytes for p in window.parts if p.is_used_before)
    highest = window.begin_nbytes
    for op in range(len(window)):
        up_to, on = before[op] | 1 << op, after[op] | 1 << op
        live = sum(
            part.nbytes
            for part in window.parts
            if (part.is_used_before or part.users & up_to)
            and (part.is_used_after or part.users & on)
        )
        highest = max(highest, passing + live)
    return highest


def _closure(direct: Sequence[int], order: Iterable[int]) -> list[int]:
    """All that is reached from each operation, where what it reaches comes before it in `order`."""
    found = [0] * len(direct)
    for op in order:
        found[op] = direct[op]
        for other in members(direct[op]):
            found[op] |= found[other]
    return found
