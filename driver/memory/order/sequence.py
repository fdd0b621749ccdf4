"""The order of a problem's operations with the least peak, where nothing but the peak is asked."""

from __future__ import annotations

from collections.abc import Callable

from driver.memory.instance import Instance
from driver.memory.order.op_graph import LiveBuffer, OpGraph
from driver.memory.order.peak_order import least_peak_order


def least_peak_sequence(
    instance: Instance, *, most_states: int, is_over: Callable[[], bool]
) -> tuple[int, ...] | None:
    """The steps in the order with the least peak that was found; as given where none is better.

    None where the order decides about more than the peak: with several engines or instances of one
    about the time, with transfers about what is moved.
    """
    if instance.instances != (1,) or any(b.read or b.save for b in instance.buffers):
        return None
    if len({buffer.memory for buffer in instance.buffers}) > 1:
        return None
    given = instance.arranged(lambda at: at)
    graph = _graph(instance, {step: at for at, step in enumerate(given)})
    found = least_peak_order(graph, most_states=most_states, is_over=is_over)
    return tuple(given[op] for op in found.order)


def _graph(instance: Instance, at: dict[int, int]) -> OpGraph:
    return OpGraph(
        waits_for=tuple(
            frozenset(
                at[each] for each in (*instance.steps[step].before, *instance.steps[step].behind)
            )
            for step in at
        ),
        buffers=tuple(
            LiveBuffer(
                nbytes=buffer.aligned_nbytes,
                users=frozenset(at[user] for user in users),
                from_begin=buffer.is_present,
                to_end=buffer.is_kept,
            )
            for buffer, users in zip(instance.buffers, instance.users, strict=True)
            if users
        ),
    )
