"""Products of matrices as a choice: where there is one, what it excludes, and what it computes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from kit.kernels import numpy_operators, qlinear
from kit.kernels.matrices import OF_MATRICES, deep
from kit.kernels.nests import inputs_of
from kit.kernels.qlinear_elements import matmul
from kit.objects.hosts import ARM
from tilefarm.dtype import DType
from tilefarm.processors import AARCH64, processor
from tilefarm.space import Point, violations
from tilefarm.target import Host
from tilefarm.workload import Workload

from compile_worker.codegen.dots import INSTRUCTIONS
from compile_worker.emit import kernel_text
from compile_worker.generated import Generated
from compile_worker.ir.interpret import interpret
from compile_worker.ir.stmt import For
from compile_worker.lowering import lower
from compile_worker.machines.cpu.space import cpu_space
from compile_worker.machines.cpu.space.windows import SKIPPED
from compile_worker.passes.matrix_products import matrix_product_of
from compile_worker.passes.nests import of_kind
from compile_worker.schedule import replay
from compile_worker.te import nest_of

I8MM = processor("cpu", ARM["aarch64i8mm"])
WITHOUT = processor("cpu", Host(triple=AARCH64, cpu="neoverse-n2", features="-i8mm"))


def space_of(work: Workload) -> Generated:
    made = cpu_space(work, I8MM)
    assert made is not None
    return made


def points(made: Generated, count: int) -> Iterator[Point]:
    """Some valid points, the same in every run."""
    rng = random.Random(2)
    for _ in range(50 * count):
        point = made.completed({v.name: rng.choice(v.domain) for v in made.space.tunables})
        if not violations(made.space, point):
            yield point
            count -= 1
            if not count:
                return


def changed(made: Generated, point: Point, **values: int) -> Point:
    """The point with other values of what the search chooses."""
    return made.completed({v.name: {**point, **values}[v.name] for v in made.space.tunables})


@pytest.mark.parametrize("name", OF_MATRICES)
def test_lowering_keeps_the_meaning_and_every_product_is_one_of_matrices(name: str) -> None:
    work = OF_MATRICES[name]
    arrays, made = inputs_of(work), space_of(work)
    func = lower(replay(made.trace(made.default), nest_of(work, I8MM), I8MM), I8MM, check=True)
    flat = {each: array.reshape(-1) for each, array in arrays.items()}
    out = np.zeros(np.prod(work.outputs[0].shape), work.outputs[0].dtype.value)
    found = interpret(func, {**flat, "out": out})["out"]
    np.testing.assert_array_equal(found, numpy_operators.run(work, arrays).reshape(-1))
    products = [each for each in map(matrix_product_of, of_kind(func.body, For)) if each]
    a_step = made.default["pixels"] // 2 * made.default["blocks"] * 8
    assert len(products) == a_step


@pytest.mark.parametrize("name", OF_MATRICES)
def test_points_have_the_instruction_that_they_choose(name: str) -> None:
    work = OF_MATRICES[name]
    made, chosen = space_of(work), set()
    signed = work.inputs[0].dtype is DType.INT8
    matrix, dot = ("smmla", "sdot") if signed else ("usmmla", "usdot")
    for point in points(made, 6):
        func = lower(replay(made.trace(point), nest_of(work, I8MM), I8MM), I8MM)
        text = kernel_text(func, "entry", I8MM)
        by_matrices = bool(point["matrices"])
        assert (f"@{INSTRUCTIONS[matrix]}(" in text) == by_matrices, point
        assert by_matrices or f"@{INSTRUCTIONS[dot]}(" in text, point
        chosen.add(by_matrices)
    assert False in chosen


def test_matrices_have_pairs_of_pixels_of_which_no_column_is_left_out() -> None:
    made = space_of(OF_MATRICES["zeros around"])
    point = made.default
    assert (point["matrices"], point["pixels"] % 2) == (1, 0)
    odd, skipped = changed(made, point, pixels=1), changed(made, point, padding=SKIPPED)
    assert violations(made.space, odd) == ["pairs_of_pixels"]
    assert violations(made.space, skipped) == ["whole_matrices"]
    assert not violations(made.space, changed(made, skipped, matrices=0))
    above = space_of(OF_MATRICES["zeros above"])
    assert not violations(above.space, changed(above, above.default, padding=SKIPPED))


def test_there_is_no_choice_without_the_instruction_the_weights_or_a_pair_of_pixels() -> None:
    work = OF_MATRICES["blocks"]
    in_quads = qlinear.convolution(2, 2, (5, 8))
    a_pixel = qlinear.convolution(1, 2, (4, 1), (1, 1), pad=(0, 0, 0, 0), together=8)
    a_row = deep(matmul((DType.INT8, (2, 12, 1)), (DType.UINT8, (2, 12, 48))))
    for each, target in ((work, WITHOUT), (in_quads, I8MM), (a_pixel, I8MM), (a_row, I8MM)):
        made = cpu_space(each, target)
        assert made is not None
        assert "matrices" not in [variable.name for variable in made.space.variables]


def test_other_processors_compute_a_trace_of_matrices_too() -> None:
    """As loops: a trace is for one target, and whatever it says is right on any."""
    work = OF_MATRICES["blocks"]
    made = space_of(work)
    func = lower(replay(made.trace(made.default), nest_of(work, WITHOUT), WITHOUT), WITHOUT)
    assert "mmla" not in kernel_text(func, "entry", replace(WITHOUT, name="other"))
