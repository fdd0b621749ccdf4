"""Each primitive as a picture, what it refuses, and that it never changes a result."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from kit.golden import Golden
from kit.kernels.nests import EXAMPLES, SIM, conv2d, inputs_of, nest
from kit.recipes import RECIPES
from tilefarm.errors import ScheduleError
from tilefarm.trace import Argument, Step, Trace

from compile_worker.codegen.parallel import parallel_loop
from compile_worker.ir.annotations import SLOTS
from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.parser import parse
from compile_worker.ir.printer import show
from compile_worker.ir.stmt import Alloc
from compile_worker.ir.visit import find
from compile_worker.lowering import lower
from compile_worker.schedule import PRIMITIVES, Schedule, replay
from compile_worker.te import nest_of

Call = tuple[Argument, ...]

PICTURES: dict[str, tuple[str, list[Call]]] = {
    "split": ("affine", [("split", "out_w", 5), ("split", "out_co", 1)]),
    "split_reduction": ("dense", [("split", "dot_ci", 3), ("split", "dot_i", 4)]),
    "overlap": ("affine", [("overlap", "out_w", 3)]),
    "fuse": ("affine", [("fuse", "out_h", "out_w")]),
    "fuse_reductions": ("dense", [("fuse", "dot_ci", "dot_i")]),
    "reorder": ("affine", [("reorder", "out_o", "out_co")]),
    "tile": ("affine", [("tile", "out_h", "out_w", 3, 5)]),
    "kinds": (
        "affine",
        [("parallel", "out_co"), ("unroll", "out_h"), ("vectorize", "out_o")],
    ),
    "pad_and_split": ("affine", [("pad", "out_w", 4), ("split", "out_w", 4)]),
    "pad_reduction": ("dense", [("pad", "dot_i", 5), ("split", "dot_i", 5)]),
    "pad_float_sum": ("softmax", [("pad", "sum_c", 4), ("pad", "sum_n", 2)]),
    "bind_worker": ("affine", [("bind", "out_co", "worker")]),
    "bind_vthread": (
        "dense",
        [
            ("cache_read", "weight", "wgt"),
            ("compute_at", "weight_wgt", "dot_co"),
            ("bind", "dot_co", "vthread"),
        ],
    ),
    "pragma": ("dense", [("pragma", "block", "lower", "keep", 1)]),
    "reverse_compute_at": (
        "affine",
        [
            ("split", "scaled_co", 1),
            ("reverse_compute_at", "lower", "scaled_h"),
            ("reverse_compute_at", "upper", "scaled_co_0"),
        ],
    ),
    "reverse_compute_inline": (
        "affine",
        [("fuse", "scaled_h", "scaled_w"), ("reverse_compute_inline", "lower")],
    ),
    "decompose_reduction": ("dense", [("decompose_reduction", "dot", "dot_ci")]),
    "decompose_behind_guards": (
        "dense",
        [("pad", "dot_o", 5), ("pad", "dot_ci", 2), ("decompose_reduction", "dot", "dot_b")],
    ),
    "rfactor": ("dense", [("rfactor", "dot", "dot_ci")]),
    "storage_align": ("dense", [("storage_align", "dot", 2, 32, 1)]),
    "annotate": (
        "dense",
        [
            ("annotate", "block", "dot", "note", "here"),
            ("annotate", "block", "dot", "note", "there"),
            ("annotate", "loop", "dot_co", "host", 1),
            ("annotate", "buffer", "biased", "slots", 2),
        ],
    ),
    "compute_at": ("dense", [("split", "out_co", 1), ("compute_at", "upper", "out_co_0")]),
    "compute_at_halo": (
        "conv2d_strided",
        [("compute_at", "padded", "conv_h")],
    ),
    "compute_at_dilated": ("conv2d_dilated", [("compute_at", "padded", "conv_kh")]),
    "compute_inline": ("dense", [("compute_inline", "lower"), ("compute_inline", "shifted")]),
    "cache_read": ("dense", [("cache_read", "weight", "wgt"), ("cache_read", "dot", "local")]),
    "cache_write": ("dense", [("cache_write", "out", "local")]),
    "set_scope": ("dense", [("set_scope", "dot", "acc")]),
    "double_buffer": (
        "dense",
        [("cache_read", "weight", "wgt"), ("double_buffer", "weight_wgt", 2)],
    ),
    "tensorize": (
        "dense",
        [
            ("cache_read", "weight", "wgt"),
            ("cache_read", "data", "inp"),
            ("set_scope", "dot", "acc"),
            ("reorder", "dot_ci", "dot_b", "dot_o", "dot_i"),
            ("tensorize", "dot", "gemm"),
        ],
    ),
}

REFUSED: dict[str, tuple[str, list[Call], str]] = {
    "uneven split": ("affine", [("split", "out_h", 2)], "factor 2 does not divide extent 3"),
    "split by zero": ("affine", [("split", "out_h", 0)], "factor 0 does not divide"),
    "overlap of a sum": ("dense", [("overlap", "dot_co", 1)], "dot adds to what it stored"),
    "tiles that do not end": ("affine", [("overlap", "out_w", 11)], "tiles of 11 do not fill"),
    "tiles of nothing": ("affine", [("overlap", "out_w", 0)], "tiles of 0 do not fill"),
    "no such loop": ("affine", [("split", "out_x", 2)], "there is no such loop"),
    "no such stage": ("affine", [("compute_inline", "in")], "there is no such stage"),
    "no such buffer": ("dense", [("set_scope", "out", "acc")], "there is no such allocation"),
    "no buffer at all": ("relayout", [("set_scope", "x", "inp")], "there is no such allocation"),
    "no such memory": ("dense", [("set_scope", "dot", "l2")], "there is no memory 'l2'"),
    "split twice": (
        "affine",
        [("split", "out_h", 3), ("split", "out_h", 3)],
        "there is no such loop",
    ),
    "fuse apart": ("affine", [("fuse", "out_co", "out_w")], "out_w is not directly inside"),
    "fuse mixed": ("dense", [("fuse", "dot_o", "dot_ci")], "is a reduction of dot"),
    "reorder apart": ("dense", [("reorder", "dot_n", "out_n")], "not in the perfect nest"),
    "reorder twice": ("affine", [("reorder", "out_co", "out_co")], "needs each loop once"),
    "reorder nothing": ("affine", [("reorder",)], "needs each loop once"),
    "split unrolled": ("affine", [("unroll", "out_h"), ("split", "out_h", 3)], "already unrolled"),
    "vectorize outer": ("affine", [("vectorize", "out_h")], "not an innermost loop"),
    "vectorize sum": ("dense", [("vectorize", "dot_i")], "dot reduces over it"),
    "parallel sum": ("dense", [("parallel", "dot_ci")], "dot reduces over it"),
    "own loop": ("dense", [("compute_at", "dot", "dot_n")], "a loop of the stage itself"),
    "no consumer": ("dense", [("compute_at", "lower", "dot_n")], "upper needs it too"),
    "result": ("dense", [("compute_at", "out", "upper_n")], "the function's result"),
    "tiled before": (
        "dense",
        [("split", "upper_co", 1), ("compute_at", "upper", "out_co")],
        "its loops were split, fused or moved",
    ),
    "inline sum": ("dense", [("compute_inline", "dot")], "it is a reduction"),
    "inline result": ("dense", [("compute_inline", "out")], "the function's result"),
    "cache unread": ("dense", [("cache_read", "out", "inp")], "nothing reads it"),
    "wrong type for a memory": ("dense", [("set_scope", "dot", "inp")], "inp cannot hold int32"),
    "cache in dram": ("dense", [("cache_read", "data", "dram")], "there is no memory 'dram'"),
    "cache twice": (
        "dense",
        [("cache_read", "weight", "wgt"), ("cache_read", "weight", "wgt")],
        "there already is a buffer weight_wgt",
    ),
    "cache inside": (
        "dense",
        [("compute_at", "upper", "out_co"), ("cache_read", "upper", "local")],
        "written inside the loops that read it",
    ),
    "cache write inside": (
        "dense",
        [("compute_at", "upper", "out_co"), ("cache_write", "upper", "local")],
        "shares loops with other stages",
    ),
    "cache a copy's stage": (
        "dense",
        [
            ("cache_write", "lower", "local"),
            ("reverse_compute_inline", "lower_local_back"),
            ("cache_write", "lower", "local"),
        ],
        "lower_local_back: there already is a stage of this name",
    ),
    "cache write input": ("dense", [("cache_write", "data", "local")], "nothing writes it"),
    "three slots": ("dense", [("double_buffer", "dot", 3)], "3 slots, the target has 1 to 2"),
    "gemm in local": ("dense", [("tensorize", "dot", "gemm")], "not in acc, inp, wgt"),
    "gemm of nothing": ("dense", [("tensorize", "shifted", "gemm")], "does not add a product"),
    "no such intrinsic": ("dense", [("tensorize", "dot", "fft")], "the target has no 'fft'"),
    "mark nothing": ("dense", [("annotate", "tensor", "dot", "a", 1)], "nothing that can be"),
    "wrong type": ("affine", [("split", "out_h", "3")], "takes loop: str, factor: int"),
    "too few": ("affine", [("split", "out_h")], "takes loop: str, factor: int"),
    "not a number": ("affine", [("split", "out_h", True)], "takes loop: str, factor: int"),
    "not a name": ("affine", [("reorder", 1, 2)], "takes *loops: str"),
    "unknown": ("affine", [("transpose", "out", 2)], "there is no such primitive"),
    "pad of a multiple": ("affine", [("pad", "out_w", 5)], "needs no padding to a multiple of 5"),
    "pad to nothing": ("affine", [("pad", "out_w", 0)], "needs no padding to a multiple of 0"),
    "pad unrolled": ("affine", [("unroll", "out_w"), ("pad", "out_w", 4)], "already unrolled"),
    "vectorize a guard": (
        "affine",
        [("reorder", "out_o", "out_w"), ("pad", "out_w", 4), ("vectorize", "out_w")],
        "not an innermost loop",
    ),
    "no such thread": ("affine", [("bind", "out_w", "warp")], "there is no thread 'warp'"),
    "one worker": ("affine", [("bind", "out_n", "worker")], "it has one iteration"),
    "worker inside": ("affine", [("bind", "out_h", "worker")], "it is inside out_co"),
    "worker sum": (
        "dense",
        [("reorder", "dot_ci", "dot_n"), ("bind", "dot_ci", "worker")],
        "dot reduces over it",
    ),
    "three virtual threads": ("dense", [("bind", "dot_ci", "vthread")], "it has 3 iterations"),
    "thread without buffers": ("dense", [("bind", "dot_co", "vthread")], "no on-chip buffer"),
    "no such annotation": (
        "dense",
        [("annotate", "block", "dot", "slots", 2)],
        "no annotation 'slots' of a block",
    ),
    "annotation's value": (
        "dense",
        [("annotate", "buffer", "biased", "slots", 0)],
        "slots cannot be 0",
    ),
    "annotation of nothing": (
        "dense",
        [("annotate", "loop", "dot_x", "host", 1)],
        "there is no such loop",
    ),
    "no such pragma": (
        "dense",
        [("pragma", "block", "dot", "kep", 1)],
        "no pragma 'kep'",
    ),
    "pragma of a tensor": ("dense", [("pragma", "tensor", "dot", "keep", 1)], "pragma 'keep' of a"),
    "pragma's value": (
        "dense",
        [("pragma", "block", "dot", "dma", "move")],
        "dma cannot be 'move'",
    ),
    "pragma of nothing": ("dense", [("pragma", "block", "d", "keep", 1)], "there is no such stage"),
    "align on the chip": (
        "dense",
        [("set_scope", "dot", "acc"), ("storage_align", "dot", 0, 4, 0)],
        "it is in acc",
    ),
    "align the last axis": ("dense", [("storage_align", "dot", 3, 4, 0)], "axis 3 has no distance"),
    "align by nothing": ("dense", [("storage_align", "dot", 0, 0, 0)], "0 more than a multiple"),
    "align a result": ("dense", [("storage_align", "out", 0, 4, 0)], "there is no such allocation"),
    "decompose twice": (
        "dense",
        [("decompose_reduction", "dot", "dot_ci"), ("decompose_reduction", "dot", "dot_n")],
        "it starts nothing",
    ),
    "decompose elsewhere": (
        "dense",
        [("decompose_reduction", "dot", "out_n")],
        "out_n is not around it",
    ),
    "decompose inside": (
        "dense",
        [("decompose_reduction", "dot", "dot_i")],
        "dot_i is inside dot_ci, over which it reduces",
    ),
    "move one of two": (
        "dense",
        [("decompose_reduction", "dot", "dot_ci"), ("compute_at", "dot", "biased_co")],
        "dot_init writes dot too",
    ),
    "cache one of two": (
        "dense",
        [("decompose_reduction", "dot", "dot_n"), ("cache_write", "dot", "local")],
        "dot writes dot too",
    ),
    "rfactor floats": ("softmax", [("rfactor", "sum", "sum_c")], "it reduces floats"),
    "rfactor no sum": ("dense", [("rfactor", "lower", "lower_n")], "does not reduce over lower_n"),
    "rfactor outer": ("dense", [("rfactor", "dot", "dot_n")], "does not reduce over dot_n"),
    "rfactor twice": (
        "dense",
        [("rfactor", "dot", "dot_ci"), ("rfactor", "dot", "dot_ci_rf")],
        "there already is a buffer dot_rf",
    ),
    "rfactor behind other stages": (
        "dense",
        [
            ("reorder", "dot_ci", "dot_n"),
            ("cache_read", "weight", "local"),
            ("compute_at", "weight_local", "dot_ci"),
            ("rfactor", "dot", "dot_ci"),
        ],
        "guards or other stages are in its loops",
    ),
    "after itself": (
        "dense",
        [("reverse_compute_at", "lower", "lower_n")],
        "a loop of the stage itself",
    ),
    "after a part": (
        "dense",
        [("reverse_compute_at", "biased", "dot_ci")],
        "dot goes on reducing over dot_ci",
    ),
    "after what it does not read": (
        "dense",
        [("reverse_compute_at", "lower", "dot_n")],
        "which shifted has not finished there",
    ),
    "after its reader": (
        "dense",
        [("reverse_compute_at", "lower", "upper_n")],
        "it is not done after upper_n",
    ),
    "after a loop with a guard": (
        "affine",
        [("pad", "scaled_w", 4), ("reverse_compute_at", "lower", "scaled_w")],
        "scaled has a guard",
    ),
    "after a window": (
        "avg_pool2d",
        [("reverse_compute_at", "sum", "padded_h")],
        "does not read padded element by element",
    ),
    "inline into a sum": ("dense", [("reverse_compute_inline", "biased")], "is a reduction"),
    "inline a sum": ("dense", [("reverse_compute_inline", "dot")], "it is a reduction"),
    "inline into inputs": ("add_plain", [("reverse_compute_inline", "sum")], "reads inputs only"),
    "inline one of two": (
        "softmax",
        [("reverse_compute_inline", "out")],
        "is a reduction",
    ),
    "inline what others read": (
        "softmax",
        [("compute_inline", "power"), ("reverse_compute_inline", "out")],
        "is a reduction",
    ),
}


def steps(calls: list[Call]) -> Trace:
    return Trace(tuple(Step(str(name), tuple(args)) for name, *args in calls))


def same_result(name: str, func: Func) -> bool:
    inputs = inputs_of(EXAMPLES[name])
    before, after = interpret(nest(name), inputs), interpret(func, inputs)
    return all(np.array_equal(before[out], after[out]) for out in before)


@pytest.mark.parametrize("picture", PICTURES)
def test_picture(picture: str, golden: Golden) -> None:
    name, calls = PICTURES[picture]
    func = replay(steps(calls), nest(name), SIM)
    golden(show(func))
    assert same_result(name, func)


@pytest.mark.parametrize("case", REFUSED)
def test_refusal_says_why(case: str) -> None:
    name, calls, why = REFUSED[case]
    with pytest.raises(ScheduleError) as caught:
        replay(steps(calls), nest(name), SIM)
    assert why in caught.value.what
    assert caught.value.what.startswith(f"step {len(calls)}, {calls[-1][0]}(")
    assert caught.value.hint
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_refusal_says_what_to_try() -> None:
    with pytest.raises(ScheduleError) as caught:
        replay(steps([("split", "out_w", 4)]), nest("affine"), SIM)
    assert caught.value.hint == "one of 1, 5, or pad('out_w', 4) first"


def test_the_step_that_does_not_fit_is_named() -> None:
    trace = steps(
        [("split", "out_w", 5), ("fuse", "out_h", "out_w_0"), ("split", "out_h_out_w_0", 2)]
    )
    with pytest.raises(ScheduleError) as caught:
        replay(trace, nest("affine"), SIM)
    assert str(caught.value) == (
        "step 3, split('out_h_out_w_0', 2): factor 2 does not divide extent 3\n"
        "  try: one of 1, 3, or pad('out_h_out_w_0', 2) first"
    )


def test_what_a_step_does_not_name_is_named() -> None:
    func = parse(show(nest("affine")).replace("out_h", "out_w_0"))
    with pytest.raises(
        ScheduleError, match=r"^step 2, split\('out_w', 5\): out_w_0: there already"
    ):
        replay(steps([("unroll", "out_n"), ("split", "out_w", 5)]), func, SIM)


def test_virtual_threads_overlap_loads_with_computation() -> None:
    bound = replay(steps([*PICTURES["bind_vthread"][1]]), nest("dense"), SIM)
    slots = [SLOTS.of(a) for a in find(bound.body, Alloc) if a.buffer.scope == "wgt"]
    assert slots == [2]


def test_workers_share_what_is_bound_to_them() -> None:
    bound = replay(steps([("bind", "out_co", "worker")]), nest("relayout"), SIM)
    shared = parallel_loop(lower(bound, SIM))
    assert shared is not None
    assert shared.var.name == "out_co"


def test_sums_of_floats_keep_their_order() -> None:
    cut = steps([("split", "sum_c", 2)])
    swapped = steps([("split", "sum_c", 2), ("reorder", "sum_c_1", "sum_c_0")])
    assert same_result("softmax", replay(cut, nest("softmax"), SIM))
    with pytest.raises(ScheduleError, match="another order rounds differently"):
        replay(swapped, nest("softmax"), SIM)


def test_every_step_is_recorded() -> None:
    schedule = Schedule(nest("affine"), SIM)
    schedule = PRIMITIVES["split"](schedule, "out_w", 5)
    schedule = PRIMITIVES["reorder"](schedule, "out_w_1", "out_h")
    assert schedule.trace == steps([("split", "out_w", 5), ("reorder", "out_w_1", "out_h")])
    assert replay(Trace.from_json(schedule.trace.to_json()), nest("affine"), SIM) is schedule.func


def test_arguments_go_by_position() -> None:
    with pytest.raises(TypeError, match="by position"):
        PRIMITIVES["split"](Schedule(nest("affine"), SIM), loop="out_w", factor=5)


def test_region_is_whole_where_it_may_leave_the_buffer() -> None:
    work = conv2d(height=4, width=4, kernel=(3, 3), stride=(3, 3), pad=(1, 1, 1, 1))
    func = nest_of(work, SIM)
    moved = replay(steps([("compute_at", "padded", "conv_kw")]), func, SIM)
    inputs = inputs_of(work)
    assert np.array_equal(interpret(moved, inputs)["out"], interpret(func, inputs)["out"])


def test_what_is_remembered_of_one_is_not_taken_for_true() -> None:
    func = nest("affine")
    assert replay(steps([("split", "out_w", 1)]), func, SIM)
    with pytest.raises(ScheduleError, match="split"):
        replay(steps([("split", "out_w", True)]), func, SIM)


def test_the_example_of_the_readme_does_what_it_says(tmp_path: Path) -> None:
    names = RECIPES["compile_worker: primitive"].run(tmp_path)
    work = EXAMPLES["affine"]
    before = Schedule(nest_of(work, SIM), SIM)
    after = names["mirror"](before, "out_w")
    assert after.trace.steps == (Step("mirror", ("out_w",)),)
    assert show(after.func) != show(before.func)
    wanted, found = (interpret(each.func, inputs_of(work)) for each in (before, after))
    assert all(np.array_equal(found[name], array) for name, array in wanted.items())
    with pytest.raises(ScheduleError, match="reduces over it"):
        names["mirror"](Schedule(nest_of(EXAMPLES["dense"], SIM), SIM), "dot_ci")
