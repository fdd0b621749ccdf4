"""Each primitive as a picture, what it refuses, and that it never changes a result."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from kit.golden import Golden
from kit.nests import EXAMPLES, SIM, conv2d, inputs_of, nest
from tilefarm.errors import ScheduleError
from tilefarm.trace import Argument, Step, Trace

from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.printer import show
from compile_worker.schedule import PRIMITIVES, Schedule, replay
from compile_worker.te import nest_of

Call = tuple[Argument, ...]

PICTURES: dict[str, tuple[str, list[Call]]] = {
    "split": ("affine", [("split", "out_w", 5), ("split", "out_co", 1)]),
    "split_reduction": ("dense", [("split", "dot_ci", 3), ("split", "dot_i", 4)]),
    "fuse": ("affine", [("fuse", "out_h", "out_w")]),
    "fuse_reductions": ("dense", [("fuse", "dot_ci", "dot_i")]),
    "reorder": ("affine", [("reorder", "out_o", "out_co")]),
    "tile": ("affine", [("tile", "out_h", "out_w", 3, 5)]),
    "kinds": (
        "affine",
        [("parallel", "out_co"), ("unroll", "out_h"), ("vectorize", "out_o")],
    ),
    "annotate": (
        "dense",
        [
            ("annotate", "block", "dot", "note", "here"),
            ("annotate", "block", "dot", "note", "there"),
            ("annotate", "loop", "dot_co", "unroll", 4),
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
    "no such loop": ("affine", [("split", "out_x", 2)], "there is no such loop"),
    "no such stage": ("affine", [("compute_inline", "in")], "there is no such stage"),
    "no such buffer": ("dense", [("set_scope", "out", "acc")], "there is no such allocation"),
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
    "cache unread": ("dense", [("cache_read", "out", "acc")], "nothing reads it"),
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
    "cache write input": ("dense", [("cache_write", "data", "local")], "nothing writes it"),
    "three slots": ("dense", [("double_buffer", "dot", 3)], "3 slots, not 1 to 2"),
    "gemm in local": ("dense", [("tensorize", "dot", "gemm")], "not in acc, inp, wgt"),
    "gemm of nothing": ("dense", [("tensorize", "biased", "gemm")], "does not add a product"),
    "no such intrinsic": ("dense", [("tensorize", "dot", "fft")], "the target has no 'fft'"),
    "mark nothing": ("dense", [("annotate", "tensor", "dot", "a", 1)], "nothing that can be"),
    "wrong type": ("affine", [("split", "out_h", "3")], "takes loop: str, factor: int"),
    "too few": ("affine", [("split", "out_h")], "takes loop: str, factor: int"),
    "not a number": ("affine", [("split", "out_h", True)], "takes loop: str, factor: int"),
    "not a name": ("affine", [("reorder", 1, 2)], "takes *loops: str"),
    "unknown": ("affine", [("storage_align", "out", 2)], "there is no such primitive"),
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
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_refusal_says_what_to_try() -> None:
    with pytest.raises(ScheduleError) as caught:
        replay(steps([("split", "out_w", 4)]), nest("affine"), SIM)
    assert caught.value.hint == "one of 1, 5"


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
