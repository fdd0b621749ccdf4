"""Which buffer leaves when nothing else helps."""

from __future__ import annotations

from driver.memory.feasible.graph import Graph, StepKind
from driver.memory.feasible.residents import Residents
from driver.memory.feasible.timeline import Timeline


def victim(graph: Graph, residents: Residents, timeline: Timeline) -> int | None:
    """What was loaded leaves before what was computed; of those what is used last, is smallest,
    was written last. None when nothing may leave.
    """
    buffers = graph.instance.buffers

    def order(buffer: int) -> tuple[bool, int, int, int]:
        brings = residents.alive[buffer].actions[:1]
        is_loaded = any(each.step < 0 or graph.kinds[each.step] is StepKind.DATA for each in brings)
        uses = [
            graph.rank[at]
            for at in graph.instance.users[buffer]
            if at not in timeline.actions and graph.kinds[at] is StepKind.COMPUTE
        ]
        next_use = min(uses, default=len(graph.rank))
        writer = brings[0].step if brings else -1
        return not is_loaded, -next_use, buffers[buffer].nbytes, -writer

    return min(
        (each for each in residents.alive if buffers[each].save and buffers[each].read),
        key=order,
        default=None,
    )
