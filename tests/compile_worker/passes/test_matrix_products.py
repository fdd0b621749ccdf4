"""Which nests are products of matrices."""

from __future__ import annotations

import pytest
from tilefarm.dtype import DType

from compile_worker.ir.expr import Buffer, Cast, Expr, Var
from compile_worker.ir.stmt import For, Store
from compile_worker.passes.matrix_products import matrix_product_of

P, O, I = Var("p"), Var("o"), Var("i")  # noqa: E741
ACC = Buffer("acc", (64,), DType.INT32)


def nest(
    data: Buffer,
    weights: Buffer,
    at: Expr = P * 2 + O + 4,
    row: Expr = P * 16 + I,
    column: Expr = O * 8 + I,
    depth: int = 8,
) -> For:
    product = Cast(DType.INT32, data[row]) * Cast(DType.INT32, weights[column])
    return For(P, 2, For(O, 2, For(I, depth, Store(ACC, (at,), ACC[at] + product))))


def of_type(dtype: DType) -> Buffer:
    return Buffer("b", (64,), dtype)


I8, U8, I16 = map(of_type, (DType.INT8, DType.UINT8, DType.INT16))


@pytest.mark.parametrize("data", [I8, U8])
def test_two_rows_by_two(data: Buffer) -> None:
    found = matrix_product_of(nest(data, I8))
    assert found is not None
    assert (found.apart, found.data.buffer, found.loops) == (16, data, (P, O, I))
    assert found.weights.index == (O * 8 + I,)


def test_factors_may_come_in_any_order() -> None:
    found = matrix_product_of(nest(I8, I8, row=O * 8 + I, column=P * 24 + I))
    assert found is not None
    assert (found.apart, found.weights.index) == (24, (O * 8 + I,))


@pytest.mark.parametrize(
    "other",
    [
        nest(I8, U8),
        nest(I16, I8),
        nest(I8, I8, depth=4),
        nest(I8, I8, at=P * 16 + O),
        nest(I8, I8, at=P * 2 + O + I),
        nest(I8, I8, column=O * 4 + I),
        nest(I8, I8, row=P * 16 + O * 8 + I),
        nest(I8, I8, row=P * 16 + I * 2),
        nest(I8, I8, row=P // 2 * 16 + I),
        nest(I8, I8).body,
    ],
    ids=lambda each: "",
)
def test_other_nests_are_none(other: For) -> None:
    assert matrix_product_of(other) is None
