"""Problems that contradict themselves: one line that names the place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tilefarm.errors import UserError

from driver.benchmarks.memory.scratchpad_graphs import scratchpad_graph
from driver.memory import Buffer, Engine, FirstContent, Memory, Op, Problem, plan
from driver.memory.problem import Transfer

GOOD = scratchpad_graph(0, 2)


def with_memory(**fields: Any) -> Problem:
    first, *others = GOOD.memories
    return replace(GOOD, memories=(replace(first, **fields), *others))


def with_op(**fields: Any) -> Problem:
    return replace(GOOD, ops=(replace(GOOD.ops[0], **fields), *GOOD.ops[1:]))


def small(*ops: Op, **fields: Any) -> Problem:
    names = ("x", "y")
    buffers = tuple(Buffer(name=n, nbytes=8, **(fields if n == "y" else {})) for n in names)
    return Problem(buffers=buffers, ops=ops)


def nested(count: int) -> Problem:
    """Each buffer is a view of the one before."""
    buffers = (
        Buffer(name=f"v{at}", nbytes=8, view_of=f"v{at - 1}" if at else "") for at in range(count)
    )
    return Problem(buffers=tuple(buffers), ops=())


MIXED = (
    Buffer(name="x", nbytes=8, first_content=FirstContent.BACKED),
    Buffer(name="y", nbytes=8, first_content=FirstContent.PRESENT, view_of="x"),
)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (replace(GOOD, engines=()), "a problem has an engine and a memory at least"),
        (replace(GOOD, ops=(*GOOD.ops, GOOD.ops[0])), "operation 'load b0' is there twice"),
        (small(Op(name="")), "operation without a name"),
        (small(*[Op(name="a")] * 20_001), "20001 operations, 20000 at most"),
        (with_memory(capacity_nbytes=-1), "memory scratchpad: capacity -1, alignment 64"),
        (
            with_memory(reserved=((0, 9), (8, 9))),
            "memory scratchpad: what is reserved at 0 and at 8 overlaps",
        ),
        (
            with_memory(reserved=((1_474_000, 1000),)),
            "memory scratchpad: what is reserved at 1474000 ends beyond its 1474560",
        ),
        (
            with_memory(backing="tape"),
            "memory scratchpad: its backing memory 'tape' is none of the others",
        ),
        (
            with_memory(read=None),
            "memory scratchpad: with a backing memory it wants the cost to read",
        ),
        (
            with_memory(save=Transfer(engine="compute")),
            "memory scratchpad: save by 'compute', which is no engine of the kind dma",
        ),
        (small(Op(name="a", reads=("z",))), "operation a uses the unknown buffer 'z'"),
        (small(Op(name="a", after=("b",))), "operation a waits for the unknown operation 'b'"),
        (small(Op(name="a", engine="gpu")), "operation a: unknown engine 'gpu'"),
        (with_op(duration_ticks=None), "operation load b0: neither a duration nor samples of it"),
        (with_op(duration_ticks=0), "operation load b0: a duration of 0 ticks, samples []"),
        (
            with_op(duration_ticks=None, samples=(3, -1, 4)),
            "operation load b0: a duration of 3 ticks, samples [3, -1, 4]",
        ),
        (small(memory="tape"), "buffer y: unknown memory 'tape'"),
        (small(pinned_at=3), "buffer y: pinned at 3, alignment 256"),
        (
            replace(small(pinned_at=256), memories=(Memory(reserved=((260, 8),)),)),
            "buffer y: pinned at 256, on what is reserved at 260",
        ),
        (
            replace(small(pinned_at=256), memories=(Memory(capacity_nbytes=260),)),
            "buffer y: pinned at 256 it ends beyond the 260 of memory",
        ),
        (
            replace(small(), barriers=-1),
            "-1 barriers: one is enough for every problem, and 0 sets no limit",
        ),
        (
            replace(small(), engines=(Engine(name="e", instances=1 << 40),)),
            "engine e has 1099511627776 instances, 20000 at most",
        ),
        (nested(200), "buffer v101: a view of a view, and so on, 100 times at most"),
        (
            small(*[Op(name=str(at), reads=("x",), writes=("x",)) for at in range(4000)]),
            "buffer x: 4000 operations write it and 4000 use it; of all such pairs a problem has"
            " 10000000 at most",
        ),
        (small(needed_after=True), "buffer y is needed at the end, and nobody writes it"),
        (
            replace(GOOD, buffers=MIXED, ops=()),
            "buffers x and y share their bytes, of which one is said to be backed and the other"
            " present",
        ),
        (small(view_of="z"), "buffer y: a view of the unknown buffer 'z'"),
        (small(view_of="x", view_offset=1), "buffer y: at 1 it ends beyond x, whose view it is"),
        (small(view_of="y"), "buffer y: views of one another"),
        (
            small(view_of="x", group="g"),
            "buffer y: a view lies where x does: no group, pin or memory of its own",
        ),
        (
            Problem(
                buffers=(
                    Buffer(name="x", nbytes=8, group="g"),
                    Buffer(name="y", nbytes=8, group="g", pinned_at=256),
                ),
                ops=(),
            ),
            "group g: x and y are to share an offset, but have other memories or pins",
        ),
        (small(Op(name="a", reads=("x",))), "operation a reads x, which nobody writes"),
        (
            small(
                Op(name="a", reads=("x",), writes=("y",)), Op(name="b", reads=("y",), writes=("x",))
            ),
            "operations wait for one another: a, b",
        ),
        (
            small(Op(name="b", reads=("y",)), Op(name="a", writes=("y",))),
            "operation b waits for one behind it on an engine that keeps its order, such as engine",
        ),
        (small(Op(name="a", after=("a",))), "operations wait for one another: a"),
    ],
)
def test_it_is_refused_with_its_place(problem: Problem, words: str) -> None:
    with pytest.raises(UserError) as error:
        plan(problem)
    assert error.value.what == words


def test_a_backed_buffer_wants_a_backing_memory() -> None:
    backed = scratchpad_graph(0, 2)
    (first, *_) = backed.buffers
    plain = replace(
        backed,
        memories=(Memory(),),
        buffers=(replace(first, first_content=FirstContent.BACKED),),
        ops=(),
    )
    with pytest.raises(UserError, match="buffer b0: backed, but memory has no backing memory"):
        plan(plain)
