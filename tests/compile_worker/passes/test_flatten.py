"""Where elements of buffers in host memory lie."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from kit.kernels.nests import SIM
from tilefarm.dtype import DType

from compile_worker.ir.annotations import align, paired
from compile_worker.ir.expr import Buffer, Const, Var
from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.simplify import simplify
from compile_worker.ir.stmt import Alloc, For, Mark, Stmt, Store, sequence
from compile_worker.passes.flatten import flatten
from compile_worker.passes.nests import of_kind


def through(shape: tuple[int, ...], *marks: Mark) -> Func:
    """Numbers into a local buffer of a shape, and from there to a result, element by element."""
    local = Buffer("t", shape, DType.INT32, "local")
    out = Buffer("out", shape, DType.INT32)
    back = [Var(f"i{axis}") for axis in range(len(shape))]
    writes: Stmt = sequence(
        Store(local, tuple(Const(i, DType.INT64) for i in index), Const(number, DType.INT32))
        for number, index in enumerate(itertools.product(*map(range, shape)), start=1)
    )
    reads: Stmt = Store(out, tuple(back), local[tuple(back)])
    for var, extent in zip(reversed(back), reversed(shape), strict=True):
        reads = For(var, extent, reads)
    return Func("through", (out,), Alloc(local, sequence((writes, reads)), marks))


@pytest.mark.parametrize(
    ("shape", "marks"),
    [
        ((4, 16), (paired(0)(1),)),
        ((2, 6, 1, 4), (paired(1)(1),)),
        ((2, 4, 3, 4), (paired(0)(1),)),
        ((3, 5), (paired(0)(1),)),
        ((3, 7, 2), (paired(1)(1), align(0)(16))),
    ],
)
def test_every_element_of_a_paired_buffer_has_a_place(
    shape: tuple[int, ...], marks: tuple[Mark, ...]
) -> None:
    func = flatten(through(shape, *marks), SIM)
    size = int(np.prod(shape))
    found = interpret(func, {"out": np.zeros(size, np.int32)})["out"]
    np.testing.assert_array_equal(found, np.arange(1, size + 1))


def test_two_by_two_elements_of_a_paired_buffer_lie_together() -> None:
    """Rows of four: 0 1 | 2 3 above 4 5 | 6 7 are 0 1 4 5, 2 3 6 7."""
    func = simplify(flatten(through((2, 4), paired(0)(1)), SIM))
    places = [each.index[0] for each in of_kind(func.body, Store) if each.buffer.name == "t"]
    assert places == [Const(at, DType.INT64) for at in (0, 1, 4, 5, 2, 3, 6, 7)]
