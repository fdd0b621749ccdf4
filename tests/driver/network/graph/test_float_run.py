"""Operators along axes and operands of unlike shapes: what they mean in floats, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from driver.network.graph.float_run import apply
from driver.network.graph.ir import (
    Add,
    MatMul,
    Normalize,
    Operator,
    Product,
    Reduce,
    Shape,
    Softmax,
)
from driver.network.graph.shapes import result_shape

X = np.arange(1, 25, dtype=np.float32).reshape(1, 2, 3, 4)


@pytest.mark.parametrize(
    ("op", "wanted"),
    [
        (Reduce(kind="sum", axes=(2,)), X.sum(axis=2, keepdims=True)),
        (Reduce(kind="mean", axes=(1, 3)), X.mean(axis=(1, 3), keepdims=True)),
        (Reduce(kind="max", axes=(3,)), X[..., 3:]),
        (Reduce(kind="min", axes=(2, 3)), X[:, :, :1, :1]),
        (Reduce(kind="prod", axes=(3,)), X.prod(axis=3, keepdims=True)),
    ],
    ids=lambda each: each.kind if isinstance(each, Reduce) else "",
)
def test_reductions_keep_their_axes(op: Reduce, wanted: np.ndarray) -> None:
    np.testing.assert_array_equal(apply(op, X), wanted)
    assert result_shape(op, [X.shape]) == wanted.shape


def test_normalized_values_have_mean_0_and_mean_square_1() -> None:
    found = apply(Normalize(axes=(2, 3), epsilon=0.0), X)
    np.testing.assert_allclose(found.mean(axis=(2, 3)), 0, atol=1e-6)
    np.testing.assert_allclose(np.square(found).mean(axis=(2, 3)), 1, rtol=1e-6)
    root = apply(Normalize(axes=(1,), epsilon=0.5, centered=False), X)
    np.testing.assert_allclose(root, X / np.sqrt(np.square(X).mean(1) + 0.5)[:, None], rtol=1e-6)


def test_softmax_along_the_last_axis_sums_to_1() -> None:
    found = apply(Softmax(axis=3), X)
    np.testing.assert_allclose(found.sum(axis=3), 1, rtol=1e-6)
    np.testing.assert_allclose(found[0, 0, 0], found[0, 1, 2], rtol=1e-6)


@pytest.mark.parametrize("op", [Add(), Product(divides=True)])
def test_operands_are_repeated_along_extents_of_1(op: Operator) -> None:
    rows, columns = X[:, :, :1], X[..., :1]
    assert result_shape(op, [rows.shape, columns.shape]) == X.shape
    assert apply(op, rows, columns).shape == X.shape


def test_products_sum_over_the_channels_of_a_group() -> None:
    op, rng = MatMul(groups=2, scale=0.5), np.random.default_rng(0)
    a, b = (rng.standard_normal((3, 8, extent)).astype(np.float32) for extent in (5, 7))
    found = apply(op, a, b)
    assert found.shape == result_shape(op, [a.shape, b.shape]) == (3, 10, 7)
    np.testing.assert_allclose(found[1, 5 + 2, 6], 0.5 * a[1, 4:, 2] @ b[1, 4:, 6], rtol=1e-5)


@pytest.mark.parametrize(
    ("op", "shapes", "why"),
    [
        (Softmax(axis=0), [(1, 4)], r"along the axes \[0\]"),
        (Reduce(kind="sum", axes=(1, 1)), [(1, 4)], r"along the axes \[1, 1\]"),
        (Reduce(kind="sum", axes=()), [(1, 4)], r"along the axes \[\]"),
        (Normalize(axes=(2,), epsilon=0.0), [(1, 4)], r"along the axes \[2\] of \[1, 4\]"),
        (MatMul(), [(1, 4, 2), (1, 3, 2)], "along their channels in 1 groups"),
        (MatMul(scale=-1.0), [(1, 4, 2), (1, 4, 2)], "scales by -1.0"),
        (MatMul(groups=3), [(1, 4, 2), (1, 4, 2)], "in 3 groups"),
        (MatMul(), [(1, 4), (1, 4)], "along their channels"),
        (Add(), [(1, 4), (1, 3)], "only extents of 1 may differ"),
        (Add(), [(1, 4), (1, 4, 1)], "only extents of 1 may differ"),
        (Product(), [(2, 4), (1, 4)], "not in the batch"),
    ],
)
def test_what_does_not_fit_is_refused(op: Operator, shapes: list[Shape], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        result_shape(op, shapes)
