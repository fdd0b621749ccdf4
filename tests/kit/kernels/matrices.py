"""Layers whose operands are packed for products of matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kit.kernels.qlinear import (
    as_reals,
    convolution,
    image_convolution,
    of_channels,
    transposed,
    with_addend,
    with_other,
    with_weight_zero,
    with_zeros_around,
)
from kit.kernels.qlinear_elements import matmul
from tilefarm.dtype import DType
from tilefarm.workload import Workload

_DEPTH: Final = 8
_NO_PAD: Final = (0, 0, 0, 0)
_U8, _I8 = DType.UINT8, DType.INT8


def deep(work: Workload) -> Workload:
    """A product whose operands are packed for products of matrices."""
    return replace(work, attrs=(*work.attrs, ("depth", _DEPTH)))


_BLOCKS: Final = convolution(2, 2, (3, 8), together=_DEPTH)
_ODD_ROW: Final = convolution(2, 2, (1, 37), (1, 1), pad=_NO_PAD, together=_DEPTH)

OF_MATRICES: Final[Mapping[str, Workload]] = {
    "blocks": _BLOCKS,
    "signed": convolution(1, 2, (3, 8), together=_DEPTH, dtype=_I8),
    "odd rows": convolution(1, 2, (3, 7), together=_DEPTH),
    "strided": convolution(2, 1, (4, 25), (3, 3), (2, 2), together=_DEPTH),
    "weight zero": with_weight_zero(convolution(1, 2, (3, 6), together=_DEPTH)),
    "zeros around": with_zeros_around(convolution(1, 2, (3, 8), together=_DEPTH)),
    "zeros above": with_zeros_around(
        convolution(2, 2, (3, 8), (3, 1), pad=(1, 0, 1, 0), together=_DEPTH)
    ),
    "grouped": with_addend(convolution(2, 4, (3, 4), groups=2, together=_DEPTH)),
    "reals": with_addend(as_reals(convolution(1, 2, together=_DEPTH))),
    "other": with_other(with_addend(convolution(2, 1, (4, 6), together=_DEPTH))),
    "few channels": of_channels(convolution(1, 2, (4, 6), together=_DEPTH), 8),
    "image": image_convolution(size=(6, 8), together=_DEPTH),
    "dense": convolution(3, 4, (1, 12), (1, 1), pad=_NO_PAD, together=_DEPTH, dtype=_I8),
    "dense, odd": with_other(with_weight_zero(_ODD_ROW)),
    "phases": transposed(together=_DEPTH),
    "phases with zeros around": with_zeros_around(
        transposed(1, 2, (3, 8), together=_DEPTH, dtype=_I8)
    ),
    "product": deep(matmul((_U8, (2, 9, 8)), (_U8, (2, 9, 19)))),
    "product, signed": deep(matmul((_I8, (1, 8, 4)), (_I8, (1, 8, 32)), (0, 0), _I8)),
    "product, mixed": deep(matmul((_I8, (2, 6, 4)), (_U8, (2, 6, 16)), (-9, 128), DType.FLOAT32)),
    "product, tall": deep(matmul((_U8, (1, 16, 21)), (_I8, (1, 16, 64)))),
}
