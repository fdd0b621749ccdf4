"""Outputs with borders: results within a larger tensor, and `border`, which fills what is around.

    t t t t t t      bytes of one image, and those of the next, in the order of memory:
    t t t t t t
    l . . . r r      ttttttttttttl...rrl...rrl...rrbbbbbbttttttttttttl...rr
    l . . . r r
    l . . . r r      first  gap  gap  between
    b b b b b b

What is right of a row and left of the next one is one run of bytes, and so is what is below an
image and above the next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tilefarm.workload import Workload

from compile_worker.ir.expr import Buffer
from compile_worker.te.script import script
from compile_worker.te.script_words import Cells
from compile_worker.te.tensor import Tensor, surrounded
from compile_worker.te.work import Work

BORDERED: Final = frozenset({"conv2d"})
"""Operators whose outputs may be within a border."""


@script
def around(
    out: Cells,
    *,
    images: int,
    rows: int,
    image: int,
    row: int,
    first: int,
    gap: int,
    last: int,
    fill: int,
) -> None:
    """Runs of bytes around `rows` rows of each image: `first` before them, `last` behind."""
    if first > 0:
        for i in range(first):
            out[i] = fill
    if gap * (rows - 1) > 0:
        for n in range(images):
            for h in range(rows - 1):
                for i in range(gap):
                    out[n * image + h * row + (first + row - gap) + i] = fill
    if images > 1:
        for n in range(images - 1):
            for i in range(last + first):
                out[n * image + (image - last) + i] = fill
    if last > 0:
        for i in range(last):
            out[images * image - last + i] = fill


def border(workload: Workload, inputs: list[Tensor]) -> list[Work]:
    """The output alone, as the bytes [N] that it is.

    Raises:
        ValueError: there is no border, it does not fit the output, or `fill` is no int8.
    """
    fill = workload.attr_int("fill")
    if not any(workload.border):
        raise ValueError(f"border is {workload.border}: there is nothing to fill")
    if not -128 <= fill <= 127:
        raise ValueError(f"fill is {fill}: -128 to 127")
    spec = workload.outputs[0]
    *_, columns, batch, lanes = spec.shape
    rows = workload.within[-4]
    top, left, bottom, right = (each * batch * lanes for each in workload.border)
    image = math.prod(spec.shape[-4:])
    out = Buffer(spec.name, (spec.nbytes,), spec.dtype, "dram")
    runs = around(
        inputs,
        [out],
        images=spec.nbytes // image,
        rows=rows,
        image=image,
        row=columns * batch * lanes,
        first=top * columns + left,
        gap=left + right,
        last=right + bottom * columns,
        fill=fill,
    )
    return [runs]


def bordered(workload: Workload, stages: Sequence[Tensor | Work]) -> list[Tensor | Work]:
    """The stages of a convolution whose output is within a border of a larger tensor.

    Raises:
        ValueError: another operator has no border.
    """
    if workload.operator not in BORDERED:
        raise ValueError(f"the outputs of {workload.operator} have no border")
    *others, out = stages
    assert isinstance(out, Tensor)
    top, left, bottom, right = workload.border
    outer, lanes = (0,) * (len(out.shape) - 4), (0, 0)
    before, after = (*outer, top, left, *lanes), (*outer, bottom, right, *lanes)
    return [*others, surrounded(out, before, after)]
