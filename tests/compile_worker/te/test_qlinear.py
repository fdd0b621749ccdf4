"""ONNX's quantized operators: fused is the same as one after the other, and numpy agrees."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.kernels import numpy_operators, qlinear, qlinear_elements
from kit.kernels.nests import SIM, inputs_of
from kit.kernels.numpy_operators import Array
from tilefarm.dtype import DType
from tilefarm.workload import TensorSpec, Workload

from compile_worker.ir.interpret import interpret
from compile_worker.te import nest_of

BYTES = st.sampled_from([DType.UINT8, DType.INT8])
U8, I8, F32 = DType.UINT8, DType.INT8, DType.FLOAT32


def result(work: Workload, arrays: dict[str, Array]) -> Array:
    """What the nest of a workload computes."""
    func = nest_of(work, SIM)
    seen = {
        param.name: arrays[param.name].reshape(param.shape)
        for param in func.params
        if param.name in arrays
    }
    (out,) = work.outputs
    return interpret(func, seen)["out"].reshape(out.shape)


@settings(max_examples=examples(12), deadline=None)
@given(
    function=st.sampled_from(["add", "sub", "mul", "div"]),
    own=BYTES,
    other=BYTES,
    to=BYTES,
    groups=st.integers(1, 2),
    seed=st.integers(0, 99),
)
def test_a_fused_operand_is_a_zip_behind_the_layer(
    function: str, own: DType, other: DType, to: DType, groups: int, seed: int
) -> None:
    alone = qlinear.convolution(2, 2, (3, 2), (1, 2), pad=(0, 1, 0, 0), dtype=own, groups=groups)
    fused = qlinear.with_other(alone, function, other, to)
    arrays = inputs_of(fused, seed)
    attrs = dict(fused.attrs)
    ends = {name: attrs[f"to_{name}"] for name in ("scale", "zero", "lo", "hi")}
    grids = {name: attrs[name] for name in ("a_scale", "a_zero", "b_scale", "b_zero", "function")}
    shape = alone.outputs[0].shape
    behind = Workload(
        "qlinear_zip",
        (TensorSpec("a", shape, own), TensorSpec("b", shape, other)),
        fused.outputs,
        tuple({**grids, **ends}.items()),
    )
    two = result(behind, {"a": result(alone, arrays), "b": arrays["other"]})
    np.testing.assert_array_equal(result(fused, arrays), two)


@settings(max_examples=examples(12), deadline=None)
@given(
    types=st.tuples(BYTES, BYTES, st.sampled_from([U8, I8, F32])),
    shape=st.tuples(st.integers(1, 2), st.integers(1, 9), st.integers(1, 7), st.integers(1, 18)),
    zeros=st.tuples(st.sampled_from([0, -7, 130]), st.sampled_from([0, 128, 5])),
    seed=st.integers(0, 99),
)
def test_products_of_any_shape(
    types: tuple[DType, DType, DType],
    shape: tuple[int, int, int, int],
    zeros: tuple[int, int],
    seed: int,
) -> None:
    z, k, i, j = shape
    work = qlinear_elements.matmul((types[0], (z, k, i)), (types[1], (z, k, j)), zeros, types[2])
    arrays = inputs_of(work, seed)
    np.testing.assert_array_equal(result(work, arrays), numpy_operators.run(work, arrays))


def test_what_is_no_number_becomes_the_least() -> None:
    work = qlinear_elements.quantize((1, 16, 3), (I8, (1, 1, 3, 1, 16)), zero=-5)
    x = np.zeros((1, 16, 3), np.float32)
    x[0, 0] = np.nan, np.inf, -np.inf
    assert result(work, {"x": x})[0, 0, :, 0, 0].tolist() == [-128, 127, -128]
    blocks = (I8, (1, 1, 3, 1, 16))
    ratio = qlinear_elements.zipped("div", blocks, blocks, blocks)
    zeros = {"a": np.full(blocks[1], 5, np.int8), "b": np.full(blocks[1], -3, np.int8)}
    assert (result(ratio, zeros) == dict(ratio.attrs)["lo"]).all()


def test_an_addend_that_is_no_number_gives_the_least() -> None:
    work = qlinear.with_addend(qlinear.convolution(size=(2, 2), kernel=(1, 1), pad=(0, 0, 0, 0)))
    arrays = {**inputs_of(work), "addend": np.full((1, 16), np.nan, np.float32)}
    assert (result(work, arrays) == dict(work.attrs)["lo"]).all()
    reals = qlinear.as_reals(work)
    assert np.isnan(result(reals, arrays)).all()
