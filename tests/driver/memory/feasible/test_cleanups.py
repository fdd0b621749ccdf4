"""Transfers that turn out needless go, and only those."""

from __future__ import annotations

from driver.memory import Buffer, Engine, EngineKind, Memory, Op, Problem, Transfer
from driver.memory.feasible.actions import Action, ActionKind, Home, Schedule
from driver.memory.feasible.cleanups import cleaned
from driver.memory.feasible.graph import Graph, graph_of
from driver.memory.instance import instance_of

NBYTES = 65_536
LOAD, OTHER, COMPUTE, USE = range(4)
IN0, IN1, OUT = range(3)


def graph(*, is_shared: bool = False) -> Graph:
    """load in0, load in1, compute in0 in1 -> out, use out -> (and out, if that is shared)."""
    names = ("in0", "in1", "out")
    problem = Problem(
        buffers=tuple(Buffer(name=name, nbytes=NBYTES) for name in names),
        ops=(
            Op(name="load0", engine="in", writes=("in0",)),
            Op(name="load1", engine="in", writes=("in1",)),
            Op(name="compute", engine="npu", reads=("in0", "in1"), writes=("out",)),
            Op(name="use", engine="npu", reads=("out",), writes=("out",) if is_shared else ()),
        ),
        memories=(
            Memory(
                name="fast", backing="dram", save=Transfer(engine="out"), read=Transfer(engine="in")
            ),
            Memory(name="dram"),
        ),
        engines=(
            Engine(name="npu"),
            Engine(name="in", kind=EngineKind.DMA, in_order=False),
            Engine(name="out", kind=EngineKind.DMA, in_order=False),
        ),
    )
    instance = instance_of(problem)
    return graph_of(problem, instance, range(len(instance.steps)))


class Draft:
    """A schedule written action after action, one tick each."""

    def __init__(self) -> None:
        self.schedule = Schedule()

    def home(self, buffer: int, offset: int) -> Home:
        self.schedule.homes.append(Home(buffer=buffer, offset=offset))
        return self.schedule.homes[-1]

    def act(self, kind: ActionKind, *homes: Home, step: int = -1) -> None:
        at = len(self.schedule.actions)
        buffer = homes[0].buffer if step < 0 else -1
        action = Action(kind=kind, engine=1, ticks=1, step=step, buffer=buffer, begin=at)
        action.end, action.homes = at + 1, list(homes)
        self.schedule.actions.append(action)
        for home in homes:
            home.actions.append(action)


def relocated(out_offset: int, *, other_at: int | None = None) -> Draft:
    """A result that is saved and read again elsewhere, while another buffer may lie there."""
    draft = Draft()
    in0, in1 = draft.home(IN0, 0), draft.home(IN1, NBYTES if other_at is None else other_at)
    draft.act(ActionKind.ORIGINAL, in0, step=LOAD)
    draft.act(ActionKind.ORIGINAL, in1, step=OTHER)
    out = draft.home(OUT, 4 * NBYTES)
    draft.act(ActionKind.ORIGINAL, in0, in1, out, step=COMPUTE)
    draft.act(ActionKind.SAVE, out)
    again = draft.home(OUT, out_offset)
    draft.act(ActionKind.READ, again)
    draft.act(ActionKind.ORIGINAL, again, step=USE)
    return draft


def shown(schedule: Schedule) -> list[str]:
    return [f"{a.kind.value} {a.step}" for a in schedule.actions]


def test_a_result_is_placed_where_it_is_read_again() -> None:
    found = cleaned(graph(), relocated(2 * NBYTES).schedule)
    assert shown(found) == ["original 0", "original 1", "original 2", "original 3"]
    assert [home.offset for home in found.homes if home.buffer == OUT] == [2 * NBYTES]
    assert [home.buffer for home in found.actions[2].homes] == [IN0, IN1, OUT]


def test_a_result_stays_where_others_write_it_too() -> None:
    found = cleaned(graph(is_shared=True), relocated(2 * NBYTES).schedule)
    assert len(found.moved) == 2


def test_a_result_stays_where_its_last_place_is_in_use_meanwhile() -> None:
    found = cleaned(graph(), relocated(2 * NBYTES, other_at=2 * NBYTES).schedule)
    assert len(found.moved) == 2


def test_a_load_that_is_saved_before_any_use_comes_later() -> None:
    draft = Draft()
    first = draft.home(IN0, 0)
    draft.act(ActionKind.ORIGINAL, first, step=LOAD)
    draft.act(ActionKind.SAVE, first)
    again, in1, out = draft.home(IN0, NBYTES), draft.home(IN1, 0), draft.home(OUT, 2 * NBYTES)
    draft.act(ActionKind.ORIGINAL, in1, step=OTHER)
    draft.act(ActionKind.READ, again)
    draft.act(ActionKind.ORIGINAL, again, in1, out, step=COMPUTE)
    found = cleaned(graph(), draft.schedule)
    assert shown(found) == ["original 1", "original 0", "original 2"]
    assert not found.moved
    assert [home.offset for home in found.homes if home.buffer == IN0] == [NBYTES]


def test_what_nobody_wrote_is_not_saved_twice() -> None:
    draft = Draft()
    ins = draft.home(IN0, 0), draft.home(IN1, NBYTES)
    for home, step in zip(ins, (LOAD, OTHER), strict=True):
        draft.act(ActionKind.ORIGINAL, home, step=step)
    out = draft.home(OUT, 4 * NBYTES)
    draft.act(ActionKind.ORIGINAL, *ins, out, step=COMPUTE)
    draft.act(ActionKind.SAVE, ins[0])
    again = draft.home(IN0, 0)
    draft.act(ActionKind.READ, again)
    draft.act(ActionKind.ORIGINAL, again, out, step=USE)
    draft.act(ActionKind.SAVE, again)
    draft.act(ActionKind.READ, draft.home(IN0, NBYTES))
    found = cleaned(graph(), draft.schedule)
    assert [a.kind for a in found.moved] == [ActionKind.SAVE, ActionKind.READ, ActionKind.READ]
