"""Results in planes are stored one after the other, each as soon as it is there."""

import pytest
from kit.golden import Golden
from kit.kernels.nests import SIM, conv2d, inputs_of
from kit.kernels.schedules import keeps_meaning

from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.printer import show
from compile_worker.ir.stmt import Dma, MicroKernel, Stmt
from compile_worker.lowering import lower
from compile_worker.machines.vta.passes.part_stores import part_stores
from compile_worker.passes.nests import statements
from compile_worker.schedule import replay
from compile_worker.space import generate
from compile_worker.te import nest_of

WORK = conv2d(1, 2, 2, 4, kernel=(1, 1), pad=(0, 0, 0, 0), data_planes=2, out_planes=2)


def scheduled(**point: int) -> Func:
    return replay(generate(WORK, SIM).trace(point), nest_of(WORK, SIM), SIM)


def test_a_layer_in_planes_as_instructions(golden: Golden) -> None:
    func = scheduled(tile_co=2, tile_ow=4, tile_oh=2, micro_order=1)
    keeps_meaning(WORK, func)
    golden(show(lower(func, SIM)))


@pytest.mark.parametrize("hold", [0, 1])
@pytest.mark.parametrize("acc_slots", [1, 2])
def test_the_low_plane_is_stored_before_the_high_one_is_made(acc_slots: int, hold: int) -> None:
    func = scheduled(tile_ow=4, slots=2, acc_slots=acc_slots, hold=hold, data_at=1)
    keeps_meaning(WORK, func)
    order = [_named(each) for each in statements(lower(func, SIM).body)]
    assert order.index("store conv") < order.index("add") < order.index("store zero")


def test_a_store_of_each_value_means_the_same_by_itself() -> None:
    func, arrays = scheduled(tile_ow=4), inputs_of(WORK)
    parted = part_stores(func, SIM)
    assert parted is not func
    assert (interpret(parted, arrays)["out"] == interpret(func, arrays)["out"]).all()


def test_a_layer_with_one_plane_of_results_is_left_alone() -> None:
    work = conv2d()
    func = replay(generate(work, SIM).trace({}), nest_of(work, SIM), SIM)
    assert part_stores(func, SIM) is func


def _named(stmt: Stmt) -> str:
    match stmt:
        case Dma(direction="store", sram=ref):
            return "store zero" if ref.buffer.name == "zero" else "store conv"
        case MicroKernel(opcode="add", src=src) if src is not None:
            return "add"
        case _:
            return ""
