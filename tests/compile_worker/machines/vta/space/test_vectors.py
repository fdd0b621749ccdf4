"""Spaces of additions and pooling: valid points lower and are right, counts are the kernels'."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.golden import Golden
from kit.kernels.nests import EXAMPLES, SIM, inputs_of, scaled_add, window
from tilefarm.space import violations
from tilefarm.target import Limits, Target, VtaConfig
from tilefarm.workload import Workload

from compile_worker.errors import Refused
from compile_worker.ir.annotations import HOST
from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.printer import show
from compile_worker.ir.stmt import Alloc, For, MicroKernel
from compile_worker.ir.visit import find
from compile_worker.lowering import lower
from compile_worker.machines.vta import limits
from compile_worker.machines.vta.passes.check_instructions import stream_of
from compile_worker.schedule import replay
from compile_worker.space import Generated, generate, has_space, ideal_cycles, lower_bound_cycles
from compile_worker.te import nest_of
from compile_worker.te.operators.window_taps import copied_taps, taps

NO_PAD = (0, 0, 0, 0)

LAYERS = {
    "residual": scaled_add((1, 4, 56, 56, 1, 16)),
    "residual of vectors": scaled_add((2, 6, 1, 16)),
    "residual of rows": scaled_add((1, 4, 6, 1, 16), shift=20),
    "first pool": window("window_max2d", 4, (112, 112)),
    "halving pool": window("window_max2d", 4, (16, 16), (2, 2), pad=NO_PAD),
    "pool that keeps its size": window("window_max2d", 3, (13, 9), (5, 5), (1, 1), (2, 2, 2, 2)),
    "pool of single rows": window("window_max2d", 2, (15, 16), (3, 2), (3, 1), (0, 1, 0, 0)),
    "pool that picks": window("window_max2d", 2, (7, 9), (1, 1), pad=NO_PAD),
    "global": window("window_sum2d", 32, (7, 7), (7, 7), (1, 1), NO_PAD),
    "global of one block": window("window_sum2d", 1, (7, 7), (7, 7), (1, 1), NO_PAD),
    "global too large": window("window_sum2d", 2, (64, 48), (64, 48), (1, 1), NO_PAD, shift=12),
    "average": window("window_sum2d", 2, (12, 10), shift=3),
    "average with gaps": window("window_sum2d", 2, (9, 8), (2, 1), (3, 2), NO_PAD, shift=0),
}

OTHERS = {
    "one buffer": Target(name="other", limits=Limits(buffers=1)),
    "four buffers": Target(name="other", limits=Limits(buffers=4)),
    "two rows": Target(name="other", vta=VtaConfig(log_batch=1)),
    "eight lanes": Target(name="other", vta=VtaConfig(log_block=3)),
    "32 lanes": Target(name="other", vta=VtaConfig(log_block=5)),
    "little memory": Target(name="other", vta=VtaConfig(log_acc_buff_size=12)),
}


def points(made: Generated, seed: int, tries: int) -> Iterator[tuple[dict[str, int], list[str]]]:
    rng = Random(seed)
    for _ in range(tries):
        full = made.completed({v.name: rng.choice(v.domain) for v in made.space.tunables})
        yield full, violations(made.space, full)


def valid_points(made: Generated, seed: int, count: int) -> list[dict[str, int]]:
    found = (point for point, broken in points(made, seed, 20_000) if not broken)
    return [point for point, _ in zip(found, range(count), strict=False)]


def lowered(made: Generated, work: Workload, point: dict[str, int], target: Target = SIM) -> Func:
    return lower(replay(made.trace(point), nest_of(work, target), target), target)


def result(func: Func, work: Workload, inputs: dict[str, Any]) -> Any:
    given = {p.name: inputs[p.name].reshape(p.shape) for p in func.params if p.name in inputs}
    return interpret(func, given)["out"].reshape(work.outputs[0].shape)


@st.composite
def vector_layers(draw: st.DrawFn) -> Workload:
    """Small layers of all three kinds."""
    blocks = draw(st.integers(1, 4))
    size = st.integers(1, 7)
    if draw(st.booleans()):
        shape = (draw(st.integers(1, 2)), blocks, *draw(st.sampled_from([(), (3, 4), (6,)])), 1, 16)
        return scaled_add(shape, draw(st.integers(0, 31)), draw(st.sampled_from([-128, 0])))
    image = (draw(size), draw(size))
    kernel = (draw(st.integers(1, min(4, image[0]))), draw(st.integers(1, min(4, image[1]))))
    most = [min(1, each - 1) for each in (*kernel, *kernel)]  # every window sees the image
    pad = draw(st.tuples(*(st.integers(0, each) for each in most)))
    stride = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    operator = draw(st.sampled_from(["window_max2d", "window_sum2d"]))
    return window(operator, blocks, image, kernel, stride, pad)


@settings(max_examples=examples(12), deadline=None)
@given(vector_layers(), st.integers(0, 1 << 16))
def test_valid_points_are_right(work: Workload, seed: int) -> None:
    made = generate(work, SIM)
    inputs = inputs_of(work)
    wanted = interpret(nest_of(work, SIM), inputs)["out"]
    for point in [dict(made.space.default), *valid_points(made, seed, 2)]:
        scheduled = replay(made.trace(point), nest_of(work, SIM), SIM)
        np.testing.assert_array_equal(result(scheduled, work, inputs), wanted)
        np.testing.assert_array_equal(result(lower(scheduled, SIM), work, inputs), wanted)


@pytest.mark.parametrize("target", OTHERS.values(), ids=OTHERS.keys())
def test_other_accelerators(target: Target) -> None:
    b, c = target.lanes.batch, target.lanes.block
    for work in (
        scaled_add((2, 3, 5, 4, b, c)),
        window("window_max2d", 3, (7, 6), unit=(2, b, c)),
        window("window_sum2d", 3, (7, 6), unit=(2, b, c)),
    ):
        made, nest = generate(work, target), nest_of(work, target)
        inputs = inputs_of(work)
        wanted = interpret(nest, inputs)["out"]
        for point in [dict(made.space.default), *valid_points(made, seed=6, count=1)]:
            func = lowered(made, work, point, target)
            np.testing.assert_array_equal(result(func, work, inputs), wanted)


@pytest.mark.parametrize("name", LAYERS)
def test_the_default_is_valid_and_sane(name: str) -> None:
    work = LAYERS[name]
    made = generate(work, SIM)
    default = dict(made.space.default)
    assert has_space(work, SIM)
    assert violations(made.space, default) == []
    lowered(made, work, default)
    assert 0 < ideal_cycles(work, SIM) < lower_bound_cycles(work, SIM)
    assert lower_bound_cycles(work, SIM) <= default["predicted_quarter_cycles"] / 4


@pytest.mark.parametrize("name", ["first pool", "pool that keeps its size", "residual", "average"])
def test_derived_variables_are_those_of_the_lowered_kernel(name: str) -> None:
    work = LAYERS[name]
    made = generate(work, SIM)
    for point in valid_points(made, seed=3, count=6):
        func = lowered(made, work, point)
        resident = {"inp": 0, "wgt": 0, "acc": 0}
        for alloc in find(func, Alloc):
            lanes = {"inp": 16, "wgt": 256, "acc": 16}[alloc.buffer.scope]
            resident[alloc.buffer.scope] += int(np.prod(alloc.buffer.shape)) // lanes
        assert resident == {scope: point[f"{scope}_resident"] for scope in resident}
        if point["acc_slots"] == 2:  # otherwise the end of a tile may be cut into parts
            assert stream_of(func).uops == point["uops"]


def test_the_distance_between_two_sums_is_that_of_the_kernel() -> None:
    work = LAYERS["average"]
    made = generate(work, SIM)
    for point in valid_points(made, seed=5, count=8):
        func = lowered(made, work, point)
        kernels = [k for k in find(func, MicroKernel) if k.engine == "gemm" and not k.reset]
        (kernel,) = kernels
        assert len(kernel.uops) == point["sum_uops"]
        apart = any(HOST.of(loop) for loop in find(func, For))
        assert apart == (point["sum_parts"] > 1)
        distance = limits.acc_distance(kernel.loops, kernel.uops, horizon=1 << 14)
        assert distance == point["distance"]


LIMITS = {"inp_sram", "acc_sram", "acc_distance", "dma_fields"}


@pytest.mark.parametrize("name", ["first pool", "residual", "global", "average"])
def test_forbidden_points_are_refused_by_name(name: str) -> None:
    work = LAYERS[name]
    made = generate(work, SIM)
    forbidden = 0
    for point, broken in points(made, seed=2, tries=3000):
        if len(broken) != 1 or not set(broken) <= LIMITS:
            continue
        forbidden += 1
        with pytest.raises(Refused) as refusal:
            lowered(made, work, point)
        assert refusal.value.constraint in {*broken, "loop_fields"}
        if forbidden == 12:
            break
    assert forbidden


def test_nothing_fits_into_too_little_memory() -> None:
    tiny = Target(name="tiny", vta=VtaConfig(log_acc_buff_size=6))
    with pytest.raises(ValueError, match="nothing fits on tiny"):
        generate(LAYERS["first pool"], tiny)


@pytest.mark.parametrize("name", ["scaled_add", "window_max2d"])
def test_what_there_is_too_little_of_is_named(name: str) -> None:
    """Windows in parts, which maxima cannot have, are not what is wrong."""
    cramped = Target(name="cramped", limits=Limits(kernel_uops=1))
    with pytest.raises(ValueError, match="uop_sram: UOP keeps 1 micro-ops"):
        generate(EXAMPLES[name], cramped)


def test_space_of_a_pool(golden: Golden) -> None:
    made = generate(EXAMPLES["window_max2d"], SIM)
    tunable = [f"{v.name} in {v.labels or v.domain}" for v in made.space.tunables]
    rules = [
        f"{type(c).__name__} {c.name}{': ' * bool(c.why)}{c.why}" for c in made.space.constraints
    ]
    golden("\n".join([*tunable, "", *rules]))


@pytest.mark.parametrize("name", ["scaled_add", "window_max2d", "window_sum2d"])
def test_lowered(name: str, golden: Golden) -> None:
    made = generate(EXAMPLES[name], SIM)
    golden(show(lowered(made, EXAMPLES[name], dict(made.space.default))))


@given(st.integers(1, 8), st.integers(1, 5), st.integers(1, 6))
def test_taps_are_all_there_once(kernel: int, stride: int, windows: int) -> None:
    for found in (taps(kernel, stride, windows), copied_taps(kernel, stride, windows)):
        start = [] if found.start is None else [(found.start, 0)]
        for at in range(windows):
            read = [
                piece.first + (at + offset) * stride for piece, offset in (*start, *found.others)
            ]
            assert sorted(read) == [at * stride + tap for tap in range(kernel)]
        for piece, offset in found.others:
            assert 0 <= offset <= piece.extent - windows
    assert copied_taps(kernel, stride, windows).start is not None


@given(st.integers(1, 8), st.integers(1, 5), st.integers(1, 6))
def test_nobody_else_reads_where_a_maximum_grows(kernel: int, stride: int, windows: int) -> None:
    found = taps(kernel, stride, windows)
    if found.start is None:
        assert kernel >= 2 * stride
    else:
        assert found.start not in {piece for piece, _ in found.others}
        for other in range(windows):
            own = found.start.first + other * stride
            readers = [at for at in range(windows) if at * stride <= own < at * stride + kernel]
            assert readers == [other]
