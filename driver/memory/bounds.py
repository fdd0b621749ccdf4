"""What no plan can beat: lower bounds that are printed next to every result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from driver.memory.instance import Instance
from driver.memory.plan import Bound
from driver.memory.problem import Problem


def makespan_bounds(problem: Problem, instance: Instance) -> Iterator[Bound]:
    """The longest path, and for each engine its work, begun no sooner and ended no later than its
    operations can be.
    """
    steps = instance.steps
    head, tail = [0] * len(steps), [0] * len(steps)
    order = instance.arranged(lambda at: at)
    for at in order:
        head[at] = max((head[each] + steps[each].ticks for each in steps[at].before), default=0)
    for at in reversed(order):
        after = instance.after[at]
        tail[at] = max((tail[each] + steps[each].ticks for each in after), default=0)
    longest = max((h + s.ticks + t for h, s, t in zip(head, steps, tail, strict=True)), default=0)
    yield Bound(name="longest path", ticks=longest)
    for number, engine in enumerate(problem.engines):
        mine = [at for at, step in enumerate(steps) if step.engine == number]
        if not mine:
            continue
        work = sum(
            steps[at].ticks * (engine.instances if steps[at].takes_all else 1) for at in mine
        )
        begin, end = min(head[at] for at in mine), min(tail[at] for at in mine)
        yield Bound(name=f"work of {engine.name}", ticks=begin + -(-work // engine.instances) + end)


def live_nbytes(spans: Iterable[tuple[int, int, int]], alignment: int = 1) -> int:
    """The most bytes at once of (begin, end, nbytes), padded as much as alignment surely costs.

    All but the topmost of those alive at one time are followed by another one, so they take whole
    multiples of the alignment; the topmost may be the one with most padding.
    """
    rows = [(begin, end, nbytes) for begin, end, nbytes in spans if nbytes]
    events = [(begin, 1, nbytes) for begin, _, nbytes in rows]
    events += [(end, 0, nbytes) for _, end, nbytes in rows]
    live = worst = 0
    pads: dict[int, int] = {}
    for _, comes, nbytes in sorted(events):
        pad = -nbytes % alignment
        live += (nbytes + pad) * (1 if comes else -1)
        pads[pad] = pads.get(pad, 0) + (1 if comes else -1)
        if comes:
            most = max(each for each, count in pads.items() if count)
            worst = max(worst, live - most)
    return worst
