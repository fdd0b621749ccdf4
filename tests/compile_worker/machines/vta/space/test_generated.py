"""Search spaces keep their promise: valid points lower and are right, others are refused."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kit.golden import Golden
from kit.kernels.nests import (
    EXAMPLES,
    SIM,
    conv2d,
    conv2d_transpose,
    convolutions,
    dense,
    denses,
    inputs_of,
    matmul,
    with_epilogue,
    workload,
)
from tilefarm.dtype import DType
from tilefarm.space import SearchSpace, violations
from tilefarm.target import TARGETS, Limits, Target, VtaConfig
from tilefarm.workload import ACCELERATED, AttrValue, Workload

from compile_worker.errors import Refused, SpaceError
from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.stmt import Alloc, For, MicroKernel
from compile_worker.ir.visit import find
from compile_worker.lowering import lower
from compile_worker.machines.vta import limits
from compile_worker.machines.vta.passes.slots import recorded_keys
from compile_worker.machines.vta.space.generated import generated
from compile_worker.schedule import replay
from compile_worker.space import Generated, generate, has_space, ideal_cycles, lower_bound_cycles
from compile_worker.te import nest_of
from tuner.sampler import Sampler

WITH_MUL = TARGETS["sim-mul"]
LIMITS = {"inp_sram", "wgt_sram", "acc_sram", "uop_sram", "acc_distance", "dma_fields"}

ALSO: dict[str, set[str]] = {
    "dma_fields": {"dma_fields", "instruction"},
    "inp_sram": {"inp_sram", "loop_fields"},
    "wgt_sram": {"wgt_sram", "loop_fields"},
    "acc_sram": {"acc_sram", "loop_fields"},
}
"""Names under which lowering may notice the same thing first."""

SANE = {
    "C2": conv2d(4, 4, 56, 56),
    "C3": conv2d(4, 8, 56, 56, stride=(2, 2)),
    "C4": conv2d(4, 8, 56, 56, kernel=(1, 1), stride=(2, 2), pad=(0, 0, 0, 0)),
    "C8": conv2d(16, 16, 14, 14),
    "C10": conv2d(16, 32, 14, 14, kernel=(1, 1), stride=(2, 2), pad=(0, 0, 0, 0)),
    "C11": conv2d(32, 32, 7, 7),
    "5x5": conv2d(1, 2, 28, 28, kernel=(5, 5), pad=(2, 2, 2, 2)),
    "7x7": conv2d(1, 4, 32, 32, kernel=(7, 7), stride=(2, 2), pad=(3, 3, 3, 3)),
    "lopsided": conv2d(2, 4, 16, 16, stride=(2, 2), pad=(0, 0, 1, 1)),
    "strided": conv2d(2, 2, 15, 15, stride=(2, 2), dilation=(2, 1), pad=(0, 0, 0, 0)),
    "wide pads": conv2d(1, 1, 8, 8, pad=(15, 0, 15, 3)),
    "prime": conv2d(1, 1, 13, 17),
    "one pixel": conv2d(1, 1, 3, 3, pad=(0, 0, 0, 0)),
    "one block of outputs": dense(4, 1),
    "classifier": dense(32, 63),
    "prime blocks": dense(13, 7, rows=3),
    "depthwise": conv2d(8, 8, 14, 14, stride=(2, 2), groups=8),
    "grouped": with_epilogue(conv2d(4, 6, 8, 8, groups=2), shift="lanes"),
    "transposed": conv2d_transpose(4, 4, 6, 6),
    "product": matmul(4, 16, 4, 4),
    "planes": conv2d(4, 6, 14, 14, stride=(2, 2), planes=2),
    "pointwise planes": conv2d(8, 8, 7, 7, kernel=(1, 1), pad=(0, 0, 0, 0), planes=2),
    "dense planes": with_epilogue(dense(12, 10, rows=2, planes=2), bias=2, shift="lanes"),
    "dense rows": dense(12, 10, rows=3),
    "wide data": conv2d(4, 6, 14, 14, stride=(2, 2), data_planes=2),
    "wide results": conv2d(4, 6, 7, 7, kernel=(1, 1), pad=(0, 0, 0, 0), out_planes=2),
    "wide depthwise": conv2d(8, 8, 14, 14, groups=8, data_planes=2, out_planes=2),
    "wide grouped": conv2d(4, 6, 8, 8, groups=2, data_planes=2, out_planes=2),
    "all wide": conv2d(4, 4, 7, 7, planes=2, data_planes=2, out_planes=2),
    "dense all wide": with_epilogue(
        dense(12, 10, rows=2, planes=2, data_planes=2, out_planes=2), bias=2, shift="lanes"
    ),
}

WIDE = [name for name in SANE if "wide" in name and name != "wide pads"]
"""Layers whose data or results have 16 bits."""


def points(made: Generated, seed: int, tries: int) -> Iterator[tuple[dict[str, int], list[str]]]:
    """Random choices of the tunables, and the names of the constraints that they break."""
    rng = Random(seed)
    for _ in range(tries):
        chosen = {v.name: rng.choice(v.domain) for v in made.space.tunables}
        full = made.completed(chosen)
        yield full, violations(made.space, full)


def valid_points(made: Generated, seed: int, count: int) -> list[dict[str, int]]:
    """Drawn by the tuner's sampler: in some spaces one random choice in thousands is valid."""
    drawn = Sampler(made.space).sample(count, np.random.default_rng(seed))
    names = [variable.name for variable in made.space.tunables]
    found = [made.completed({name: point[name] for name in names}) for point in drawn]
    assert not any(violations(made.space, point) for point in found)
    return found


def lowered(made: Generated, work: Workload, point: dict[str, int]) -> Func:
    return lower(replay(made.trace(point), nest_of(work, SIM), SIM), SIM)


def refusal_of(made: Generated, work: Workload, point: dict[str, int]) -> str:
    """The name under which lowering refuses a point; empty when it does not."""
    try:
        lowered(made, work, point)
    except Refused as refusal:
        return refusal.constraint
    return ""


def result(func: Func, work: Workload, inputs: dict[str, Any]) -> Any:
    """The output in the workload's shape, whatever shape lowering gave the parameters."""
    given = {p.name: inputs[p.name].reshape(p.shape) for p in func.params if p.name in inputs}
    return interpret(func, given)["out"].reshape(work.outputs[0].shape)


@pytest.mark.parametrize("name", SANE)
def test_every_sane_layer_has_a_plain_schedule(name: str) -> None:
    work = SANE[name]
    made = generate(work, SIM)
    default = dict(made.space.default)
    assert violations(made.space, default) == []
    assert default["slots"] == default["acc_slots"] == 1
    lowered(made, work, default)


@pytest.mark.parametrize("name", ["C3", "7x7", "classifier"])
def test_sampled_points_lower(name: str) -> None:
    made = generate(SANE[name], SIM)
    for point in valid_points(made, seed=1, count=6):
        lowered(made, SANE[name], point)


def sees_its_image(work: Workload) -> bool:
    """Whether any row and any column of a convolution is no padding; without, it is refused."""
    if work.operator != "conv2d":
        return True
    attrs: dict[str, Any] = dict(work.attrs)
    shapes = {each.name: each.shape for each in (*work.inputs, *work.outputs)}
    return all(
        any(
            0
            <= at * attrs["stride"][axis] + tap * attrs["dilation"][axis] - attrs["pad"][axis]
            < shapes["data"][2 + axis]
            for at in range(shapes["out"][2 + axis])
            for tap in range(shapes["weight"][2 + axis])
        )
        for axis in (0, 1)
    )


@settings(max_examples=6, deadline=None)
@given(st.one_of(convolutions(), denses()), st.integers(0, 1 << 16))
def test_valid_points_are_right(work: Workload, seed: int) -> None:
    assume(sees_its_image(work))
    made = generate(work, SIM)
    inputs = inputs_of(work)
    wanted = interpret(nest_of(work, SIM), inputs)["out"]
    for point in [dict(made.space.default), *valid_points(made, seed, 2)]:
        scheduled = replay(made.trace(point), nest_of(work, SIM), SIM)
        np.testing.assert_array_equal(result(scheduled, work, inputs), wanted)
        np.testing.assert_array_equal(result(lower(scheduled, SIM), work, inputs), wanted)


QUICK_EPILOGUES = {(2, "lanes", False), (1, "block", True)}
"""A bias and a shift of a block are what every other test here has."""
EPILOGUES = [
    pytest.param(
        *(bias, shift, factor),
        id=f"{bias} tiles, {shift or 'no'} shift{', a factor' * factor}",
        marks=() if (bias, shift, factor) in QUICK_EPILOGUES else pytest.mark.slow,
    )
    for bias, factor in ((0, False), (1, False), (2, False), (1, True))
    for shift in ("block", "lanes", "")
]


@pytest.mark.parametrize(("bias", "shift", "factor"), EPILOGUES)
def test_every_epilogue_is_right(bias: int, shift: str, factor: bool) -> None:
    layers = [conv2d(2, 2, 3, 4), dense(3, 4)]
    if not factor:
        layers += [conv2d(2, 2, 3, 4, planes=2), dense(3, 4, planes=2)]
        layers += [conv2d(2, 2, 3, 4, groups=2, data_planes=2), dense(3, 4, 2, data_planes=2)]
        layers += [conv2d(2, 2, 3, 4, planes=2, data_planes=2, out_planes=2)]
    for layer in layers:
        work = with_epilogue(layer, bias, shift, factor=factor)
        made, inputs, nest = generate(work, WITH_MUL), inputs_of(work), nest_of(work, WITH_MUL)
        wanted = interpret(nest, inputs)["out"]
        for point in [dict(made.space.default), *valid_points(made, seed=8, count=1)]:
            func = lower(replay(made.trace(point), nest, WITH_MUL), WITH_MUL)
            np.testing.assert_array_equal(result(func, work, inputs), wanted)


def test_factors_are_for_targets_with_mul_only() -> None:
    work = with_epilogue(conv2d(2, 2, 8, 8), factor=True)
    with pytest.raises(SpaceError, match="alu_mul: the ALU of sim has no MUL"):
        generate(work, SIM)
    made = generate(work, WITH_MUL)
    assert refusal_of(made, work, dict(made.space.default)) == "alu_mul"


OTHERS = {
    "one buffer": Target(name="other", limits=Limits(buffers=1)),
    "four buffers": Target(name="other", limits=Limits(buffers=4)),
    "two rows": Target(name="other", vta=VtaConfig(log_batch=1)),
    "eight lanes": Target(name="other", vta=VtaConfig(log_block=3)),
    "no hazard": Target(name="other", limits=Limits(acc_distance=1)),
    "little memory": Target(name="other", vta=VtaConfig(log_inp_buff_size=10)),
}


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(
            target, id=name, marks=() if name in ("two rows", "eight lanes") else pytest.mark.slow
        )
        for name, target in OTHERS.items()
    ],
)
def test_other_accelerators(target: Target) -> None:
    b, c = target.lanes.batch, target.lanes.block
    for work in (blocked(b, c), *in_planes(b, c)):
        made = generate(work, target)
        inputs, nest = inputs_of(work), nest_of(work, target)
        wanted = interpret(nest, inputs)["out"]
        for point in [dict(made.space.default), *valid_points(made, seed=6, count=1)]:
            func = lower(replay(made.trace(point), nest, target), target)
            np.testing.assert_array_equal(result(func, work, inputs), wanted)


def in_planes(batch: int, block: int) -> tuple[Workload, ...]:
    """Convolutions whose weights, or data and results, or all of them have 16 bits."""
    wide = conv2d(2, 2, 3, 4, groups=2, data_planes=2, out_planes=2, element=(batch, block))
    every = conv2d(2, 2, 3, 4, planes=2, data_planes=2, out_planes=2, element=(batch, block))
    return conv2d(2, 2, 3, 4, planes=2, element=(batch, block)), wide, every


def blocked(batch: int, block: int) -> Workload:
    """A convolution of two batches of images in other blocks."""
    shapes = {
        "data": (DType.INT8, (2, 2, 3, 4, batch, block)),
        "weight": (DType.INT8, (2, 2, 3, 3, block, block)),
        "bias": (DType.INT8, (2, 1, block, block)),
        "unit": (DType.INT8, (batch, block)),
        "shift": (DType.INT32, (2, batch, block)),
    }
    out = (DType.INT8, (2, 2, 3, 4, batch, block))
    attrs: dict[str, AttrValue] = {"stride": (1, 1), "pad": (1, 1, 1, 1), "dilation": (1, 1)}
    return workload("conv2d", shapes, out, **attrs, lo=-128, hi=127)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=marks)
        for name in (
            *("C8", "C10", "lopsided", "depthwise", "transposed", "planes"),
            *("dense planes", "wide depthwise"),
        )
        for marks in [() if name in ("C8", "dense planes", "depthwise") else pytest.mark.slow]
    ],
)
def test_forbidden_points_are_refused_by_name(name: str) -> None:
    work = SANE[name]
    made = generate(work, SIM)
    refused = forbidden = 0
    for point, broken in points(made, seed=2, tries=2000):
        if not broken or not set(broken) <= LIMITS:
            continue
        forbidden += 1
        names = set().union(*(ALSO.get(each, {each}) for each in broken))
        reason = refusal_of(made, work, point)
        assert reason in {"", *names}, (reason, broken)
        refused += bool(reason)
        if forbidden == 20:
            break
    assert forbidden == 20
    assert refused >= 0.95 * forbidden


MEASURED = (
    *("C8", "C10", "strided", "lopsided", "classifier", "depthwise", "grouped", "transposed"),
    *("product", "planes", "pointwise planes", "dense planes", "dense rows", *WIDE),
)
QUICK = {"C8", "classifier", "depthwise", "grouped", "transposed", "planes", "wide data"}
"""One of each kind; the others take as long again."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in MEASURED],
)
def test_derived_variables_are_those_of_the_lowered_kernel(name: str) -> None:
    work = SANE[name]
    made = generate(work, SIM)
    for point in valid_points(made, seed=3, count=8 if name in QUICK else 20):
        func = lowered(made, work, point)
        gemm = next(k for k in find(func, MicroKernel) if k.engine == "gemm" and not k.reset)
        assert len(gemm.uops) == point["gemm_uops"]
        loops = {loop.var: loop.extent for loop in find(func, For)}
        keys = recorded_keys(gemm, loops)
        assert keys == point["gemm_keys"] * point.get("sums", 1)
        assert iterations(gemm) * point["steps"] * work.planes * work.data_planes == ideal_cycles(
            work, SIM
        )
        distance = limits.acc_distance(gemm.loops, gemm.uops, horizon=1 << 14)
        assert distance == point["distance"]
        resident = {"inp": 0, "wgt": 0, "acc": 0}
        for alloc in find(func, Alloc):
            lanes = {"inp": 16, "wgt": 256, "acc": 16}[alloc.buffer.scope]
            resident[alloc.buffer.scope] += int(np.prod(alloc.buffer.shape)) // lanes
        assert resident == {scope: point[f"{scope}_resident"] for scope in resident}


def iterations(kernel: MicroKernel) -> int:
    return int(np.prod([loop.extent for loop in kernel.loops])) * len(kernel.uops)


def described(space: SearchSpace) -> str:
    """Variables and constraints as a person would list them."""
    tunable = [f"{v.name} in {v.labels or v.domain}" for v in space.tunables]
    derived = [v.name for v in space.variables if not v.tunable]
    rules = [f"{type(c).__name__} {c.name}{': ' * bool(c.why)}{c.why}" for c in space.constraints]
    return "\n".join([*tunable, "", ", ".join(derived), "", *rules])


def test_space_of_a_convolution(golden: Golden) -> None:
    golden(described(generate(EXAMPLES["conv2d"], SIM).space))


def test_trace_of_a_point(golden: Golden) -> None:
    made = generate(SANE["lopsided"], SIM)
    golden(str(made.trace(valid_points(made, seed=4, count=1)[0])))


@pytest.mark.parametrize("name", ["depthwise", "grouped", "transposed", "product", "planes"])
def test_plain_trace_of_every_kind(name: str, golden: Golden) -> None:
    made = generate(SANE[name], SIM)
    golden(str(made.trace(dict(made.space.default))))


def test_spaces_are_reproducible() -> None:
    one = generate(SANE["C8"], SIM)
    generated.cache_clear()
    other = generate(SANE["C8"], SIM)
    assert one is not other
    assert one.space.digest == other.space.digest
    assert one.trace(dict(one.space.default)) == other.trace(dict(other.space.default))


def test_trace_needs_only_the_tunables() -> None:
    made = generate(SANE["C8"], SIM)
    point = valid_points(made, seed=5, count=1)[0]
    chosen = {v.name: point[v.name] for v in made.space.tunables}
    assert made.trace(chosen) == made.trace(point)


def test_one_variable_predicts_the_whole() -> None:
    made = generate(SANE["C8"], SIM)
    derived = [v.name for v in made.space.variables if not v.tunable]
    assert [name for name in derived if name.endswith("_cycles")] == ["predicted_quarter_cycles"]
    best = min(p["predicted_quarter_cycles"] for p in valid_points(made, seed=7, count=30))
    assert best / 4 < 1.6 * lower_bound_cycles(SANE["C8"], SIM)
    assert dict(made.space.default)["predicted_quarter_cycles"] > 5 * best


def test_tables_stay_small() -> None:
    for work in SANE.values():
        for constraint in generate(work, SIM).space.constraints:
            assert len(getattr(constraint, "rows", ())) <= 2000


def test_only_layers_have_a_space() -> None:
    assert [name for name, work in EXAMPLES.items() if has_space(work, SIM)] == [
        name for name, work in EXAMPLES.items() if work.operator in ACCELERATED
    ]
    with pytest.raises(ValueError, match="softmax has no search space"):
        generate(EXAMPLES["softmax"], SIM)


def test_a_target_that_holds_nothing() -> None:
    tiny = Target(name="tiny", vta=VtaConfig(log_acc_buff_size=6))
    with pytest.raises(ValueError, match="nothing fits on tiny"):
        generate(SANE["C8"], tiny)


EMPTY = {
    "inp_sram": Target(name="tiny", vta=VtaConfig(log_inp_buff_size=4)),
    "wgt_sram": Target(name="tiny", vta=VtaConfig(log_wgt_buff_size=8)),
    "acc_sram": Target(name="tiny", vta=VtaConfig(log_acc_buff_size=6)),
    "uop_sram": Target(name="tiny", limits=Limits(kernel_uops=3)),
    "Tensorize": Target(name="tiny", vta=VtaConfig(log_block=3)),
}


@pytest.mark.parametrize("constraint", EMPTY)
def test_what_leaves_a_space_empty_is_named(constraint: str) -> None:
    work = with_epilogue(conv2d(2, 2, 8, 8), shift="lanes")
    with pytest.raises(SpaceError) as empty:
        generate(work, EMPTY[constraint])
    assert empty.value.constraint == constraint
    assert f"nothing fits on tiny, however small the tiles: {constraint}: " in str(empty.value)
    assert "try: a target with more" in str(empty.value)
    assert str(pickle.loads(pickle.dumps(empty.value))) == str(empty.value)


def test_a_layer_that_no_copy_can_load_is_named() -> None:
    with pytest.raises(SpaceError, match="dma_fields: a copy has at least one row"):
        generate(conv2d(1, 1, 1, 1, kernel=(1, 1), pad=(16, 0, 0, 0)), SIM)


def test_rules_say_whether_they_fire_and_why() -> None:
    fired = {each.rule: each.fired for each in generate(SANE["C8"], SIM).rules}
    assert fired == {
        "Always-Inline": False,
        "Multi-level-Tiling": True,
        "Add-Cache-Stage": False,
        "Tensorize": True,
        "Add-Multi-Level-SPM": False,
        "Add-Multi-Scope-SPM": True,
        "User-Defined": True,
    }
    why = {each.rule: each.why for each in generate(SANE["C8"], SIM).rules}
    assert why["Add-Multi-Level-SPM"].startswith("sim has one level of memory")
    assert why["Tensorize"].startswith("the innermost loops are the lanes of an instruction: GEMM")


def test_bounds() -> None:
    assert ideal_cycles(SANE["C8"], SIM) == 14 * 14 * 16 * 16 * 9
    assert lower_bound_cycles(SANE["C8"], SIM) >= ideal_cycles(SANE["C8"], SIM)
    assert lower_bound_cycles(SANE["classifier"], SIM) >= 32 * 63 * 256 // 8
    assert ideal_cycles(EXAMPLES["softmax"], SIM) == 0
