"""Every pass: its result for a convolution and a CPU kernel, and that it changes no answer."""

from collections.abc import Sequence

import pytest
from kit.golden import Golden
from kit.kernels.nests import EXAMPLES, SIM, conv2d, each_operator_first, nest, with_epilogue
from kit.kernels.schedules import Tiling, keeps_meaning, lowering, scheduled
from tilefarm.target import TARGETS
from tilefarm.workload import Workload

from compile_worker.ir.func import Func
from compile_worker.ir.printer import show
from compile_worker.ir.stmt import For
from compile_worker.lowering import lower
from compile_worker.machines.known import MACHINES
from compile_worker.passes.nests import of_kind
from compile_worker.pipeline import Pass
from compile_worker.schedule import replay
from compile_worker.space import generate
from compile_worker.te import nest_of

CONV = conv2d(ci=2, co=2, height=8, width=8)

TILED = Tiling(co=2, h=4, w=4, slots=2, acc_slots=2)

SMALL = conv2d(ci=2, co=2, height=4, width=8)

POINTWISE = conv2d(2, 2, 8, 8, kernel=(1, 1), stride=(2, 2), pad=(0, 0, 0, 0))

SCHEDULES = {
    "plain": Tiling(h=2),
    "two slots": Tiling(h=2, slots=2, acc_slots=2),
    "large tiles": Tiling(co=2, h=4, w=8, ci=2),
    "weights for a tile": Tiling(h=2, order=("co", "h", "w"), weight_at="out_co_0", slots=2),
    "weights once": Tiling(co=2, h=2, weight_at="", slots=2),
    "image for a row": Tiling(h=2, order=("h", "co", "w"), data_at="out_h_0", slots=2),
    "image once": Tiling(co=2, h=2, w=4, data_at="", slots=2, acc_slots=2),
    "kernel in rows": Tiling(h=2, w=8, kh=1, slots=2),
    "kernel in pixels": Tiling(co=2, h=2, w=8, kh=1, kw=1, slots=2),
    "weights innermost": Tiling(co=2, h=2, micro=("h", "ci", "kh", "kw", "w", "co"), w=2, ci=2),
    "accumulators outermost": Tiling(h=2, co=2, micro=("co", "h", "ci", "kh", "kw", "w")),
    "shift by lane": Tiling(co=2, h=2, slots=2, acc_slots=2, shift_by_lane=True),
}


def test_names_are_those_of_the_files_functions() -> None:
    for machine in MACHINES.values():
        for step in machine.passes:
            assert step.name == step.run.__name__.removesuffix("_pass")


def compare_steps(func: Func, passes: Sequence[Pass], golden: Golden) -> None:
    """What each pass makes of it, in a text of its own; which of them do nothing, in one."""
    steps = dict(lowering(func))
    for name, result in steps.items():
        golden(show(result), name)
    golden("\n".join(p.name if p.name in steps else f"{p.name}: nothing" for p in passes))


def test_a_tiled_convolution_after(golden: Golden) -> None:
    compare_steps(scheduled(CONV, TILED), MACHINES["vta"].passes, golden)


def test_an_average_pool_after(golden: Golden) -> None:
    compare_steps(nest("avg_pool2d"), MACHINES["cpu"].passes, golden)


PLANES = conv2d(1, 4, 4, 4, kernel=(1, 1), pad=(0, 0, 0, 0), planes=2)


def test_planes_are_chained_in_place(golden: Golden) -> None:
    made = generate(PLANES, SIM)
    whole = {f"tile_{axis}": 4 for axis in ("co", "oh", "ow")}
    func = replay(made.trace({**whole, "micro_order": 1}), nest_of(PLANES, SIM), SIM)
    keeps_meaning(PLANES, func)
    golden(show(lower(func, SIM)))


def test_results_within_a_border_are_stored_row_by_row(golden: Golden) -> None:
    work = conv2d(co=2, height=4, width=4, border=(1, 2, 0, 1))
    func = scheduled(work, Tiling(co=2, h=2, slots=2, acc_slots=2))
    keeps_meaning(work, func)
    golden(show(lower(func, SIM)))


@pytest.mark.parametrize("data_at", ["conv_kw_0", "out_h_0", ""])
def test_a_strided_convolution_loads_every_other_row(data_at: str, golden: Golden) -> None:
    tiling = Tiling(h=2, kh=1, kw=1, data_at=data_at)
    func = scheduled(POINTWISE, tiling)
    keeps_meaning(POINTWISE, func)
    golden(show(lower(func, SIM)))


@pytest.mark.parametrize(
    "tiling",
    [Tiling(co=4, h=14, w=14), Tiling(h=14, w=14)],
    ids=["channels", "rows"],
)
def test_the_end_of_a_large_tile_is_staggered(tiling: Tiling, golden: Golden) -> None:
    work = conv2d(1, 8, 14, 14)
    func = scheduled(work, tiling)
    keeps_meaning(work, func)
    golden(show(dict(lowering(func))["stagger_stores"]).split("wgt=bias_wgt")[1])


def test_a_tile_s_end_is_cut_into_fewer_parts_where_rows_and_instructions_take_longer() -> None:
    """The HLS design waits for the memory with every row, and three times as long to begin."""
    parts = {}
    for name in ("sim", "sim-pynq-z1"):
        func = scheduled(conv2d(1, 8, 14, 14), Tiling(co=4, h=14, w=14), TARGETS[name])
        after = dict(lowering(func, TARGETS[name]))["stagger_stores"]
        loops = [loop for loop in of_kind(after.body, For) if loop.var.name.startswith("conv_part")]
        parts[name] = sum(loop.extent for loop in loops)
    assert 1 < parts["sim-pynq-z1"] < parts["sim"]


def test_a_bias_in_two_tiles_and_a_shift_of_a_block(golden: Golden) -> None:
    work = with_epilogue(conv2d(1, 4, 4, 4, kernel=(1, 1), pad=(0, 0, 0, 0)), bias=2)
    generated = generate(work, SIM)
    choice = {"tile_co": 2, "tile_oh": 4, "tile_ow": 4, "bias_at": 0, "acc_slots": 2}
    func = replay(generated.trace(choice), nest_of(work, SIM), SIM)
    keeps_meaning(work, func)
    golden(show(lower(func, SIM)))


def test_a_factor_for_each_channel_and_a_shift_of_a_block(golden: Golden) -> None:
    work, target = with_epilogue(SMALL, factor=True), TARGETS["sim-mul"]
    made = generate(work, target)
    point = dict(made.space.default)
    golden(show(lower(replay(made.trace(point), nest_of(work, target), target), target)))


def test_a_store_that_nobody_waits_for_is_left_whole() -> None:
    func = scheduled(conv2d(1, 8, 14, 14), Tiling(h=7, w=14, acc_slots=2))
    assert "stagger_stores" not in dict(lowering(func))


def test_blocks_with_a_shift_each_are_staggered_further(golden: Golden) -> None:
    work = with_epilogue(conv2d(1, 2, 32, 32, kernel=(1, 1), pad=(0, 0, 0, 0)), bias=0)
    choice = {"tile_co": 2, "tile_oh": 32, "tile_ow": 32, "weight_at": 2, "data_at": 3}
    func = replay(generate(work, SIM).trace(choice), nest_of(work, SIM), SIM)
    keeps_meaning(work, func)
    golden(show(dict(lowering(func))["stagger_stores"]))


@pytest.mark.parametrize("bias_at", [0, 2], ids=["for a tile", "once"])
def test_biases_are_loaded_little_by_little_in_later_steps(bias_at: int, golden: Golden) -> None:
    work = conv2d(4, 16, 2, 2, kernel=(1, 1), pad=(0, 0, 0, 0))
    choice = {"tile_co": 8, "tile_oh": 2, "tile_ow": 2, "bias_at": 1 if bias_at == 0 else 2}
    steps = {"tile_ci": 1, "data_at": 0, "weight_at": 0, "slots": 2}
    func = replay(generate(work, SIM).trace({**choice, **steps}), nest_of(work, SIM), SIM)
    keeps_meaning(work, func)
    golden(show(dict(lowering(func))["spread_loads"]))


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("steps", [1, 2])
def test_loads_are_held_while_a_tile_ends(slots: int, steps: int, golden: Golden) -> None:
    work = conv2d(2, 2, 6, 6, kernel=(1, 1), pad=(0, 0, 0, 0))
    tiles = {"tile_co": 1, "tile_oh": 3, "tile_ow": 6, "tile_ci": 2 // steps}
    places = {"weight_at": int(steps == 1), "data_at": int(steps == 1), "bias_at": 2}
    choice = {**tiles, **places, "slots": slots, "acc_slots": 2, "hold": 1}
    func = replay(generate(work, SIM).trace(choice), nest_of(work, SIM), SIM)
    keeps_meaning(work, func)
    golden(show(dict(lowering(func))["insert_tokens"]))


@pytest.mark.parametrize("tiling", SCHEDULES.values(), ids=SCHEDULES.keys())
def test_no_pass_changes_what_a_schedule_computes(tiling: Tiling) -> None:
    work = with_epilogue(SMALL, shift="lanes") if tiling.shift_by_lane else SMALL
    keeps_meaning(work, scheduled(work, tiling))


@pytest.mark.parametrize(
    "work",
    [
        conv2d(2, 1, 9, 9, stride=(2, 2), pad=(1, 1, 1, 1)),
        conv2d(1, 2, 4, 12, pad=(2, 0, 0, 2)),
        conv2d(2, 1, 5, 8, pad=(0, 0, 0, 0)),
        POINTWISE,
    ],
    ids=["strided", "lopsided", "unpadded", "pointwise"],
)
def test_no_pass_changes_what_shapes_compute(work: Workload) -> None:
    width = work.outputs[0].shape[3]
    kernel_h, kernel_w = work.inputs[1].shape[2:4]
    tiling = Tiling(w=width, h=1, kh=kernel_h, kw=kernel_w, slots=2, acc_slots=2)
    keeps_meaning(work, scheduled(work, tiling))


@pytest.mark.parametrize("name", each_operator_first(EXAMPLES))
def test_no_pass_changes_a_cpu_kernel(name: str) -> None:
    work = EXAMPLES[name]
    keeps_meaning(work, nest_of(work, SIM))


def test_the_watcher_sees_every_pass() -> None:
    seen: list[str] = []
    lower(nest("add"), SIM, watch=lambda name, _: seen.append(name), check=True)
    assert seen == [step.name for step in MACHINES["cpu"].passes]
