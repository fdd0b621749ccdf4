"""Layers of every kind that the accelerator multiplies, on shapes that are out of the ordinary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hypothesis import strategies as st
from kit.kernels.nests import LANES, borders, conv2d, conv2d_transpose, dense, matmul, with_epilogue
from tilefarm.target import Limits, Target, VtaConfig
from tilefarm.workload import Workload

_SMALL: Final = {"log_inp_buff_size": 14, "log_wgt_buff_size": 16, "log_acc_buff_size": 15}
"""Fewer bytes, so that indices of short vectors fit a micro-op."""

TARGETS: Final = {
    (vta.batch, vta.block): Target(name=name, vta=vta, limits=Limits(alu_mul=True))
    for name, vta in {
        "one row": VtaConfig(),
        "eight": VtaConfig(log_block=3, **_SMALL),
        "thirty-two": VtaConfig(log_block=5),
        "two rows": VtaConfig(log_batch=1),
        "two rows of eight": VtaConfig(log_batch=1, log_block=3, **_SMALL),
    }.items()
}
"""Accelerators with MUL by the batch and block of their vectors."""


@dataclass(frozen=True, slots=True)
class Case:
    """A workload, and the accelerator that its tensors are blocked for."""

    work: Workload
    target: Target


@st.composite
def convolutions(draw: st.DrawFn) -> Case:
    """Kernels to 11, strides to 4, dilations to 3, uneven pads and borders, groups of any size."""
    element = draw(st.sampled_from(list(TARGETS)))
    kernel, stride, dilation, sizes = [], [], [], []
    pads: list[tuple[int, int]] = []
    for _ in range(2):
        taps = draw(st.sampled_from([1, 1, 2, 3, 3, 5, 11]))
        step = draw(st.integers(1, 3)) if taps in (2, 3) else 1
        reach = step * (taps - 1) + 1
        before, after = (draw(st.integers(0, min(reach - 1, 6))) for _ in range(2))
        size = draw(st.integers(max(1, reach - before - after), 12))
        kernel.append(taps)
        dilation.append(step)
        stride.append(draw(st.integers(1, 4)))
        sizes.append(size)
        pads.append((before, after))
    groups, per_group = draw(st.sampled_from([1, 1, 2, 3, 4])), draw(st.integers(1, 2))
    work = conv2d(
        ci=groups * per_group,
        co=groups * draw(st.integers(1, 2)),
        height=sizes[0],
        width=sizes[1],
        kernel=(kernel[0], kernel[1]),
        stride=(stride[0], stride[1]),
        pad=(pads[0][0], pads[1][0], pads[0][1], pads[1][1]),
        dilation=(dilation[0], dilation[1]),
        groups=groups,
        border=draw(borders()),
        rows=draw(st.integers(1, 2)),
        element=element,
    )
    return Case(_ended(draw, work), TARGETS[element])


@st.composite
def transposed(draw: st.DrawFn) -> Case:
    """Phases from 1x1 to 3x3, kernels of a phase to 3x3."""
    element = draw(st.sampled_from(list(TARGETS)))
    kernel = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    pads = [draw(st.integers(0, size - 1)) for size in (*kernel, *kernel)]
    work = conv2d_transpose(
        ci=draw(st.integers(1, 3)),
        co=draw(st.integers(1, 3)),
        height=draw(st.integers(kernel[0], 6)),
        width=draw(st.integers(kernel[1], 6)),
        kernel=kernel,
        stride=(draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        pad=(pads[0], pads[1], pads[2], pads[3]),
        element=element,
    )
    return Case(_ended(draw, work), TARGETS[element])


@st.composite
def products(draw: st.DrawFn) -> Case:
    """Products of activations, and fully connected layers of several rows."""
    element = draw(st.sampled_from(list(TARGETS)))
    sizes = [draw(st.integers(1, 6)) for _ in range(4)]
    work = matmul(
        batches=sizes[0],
        rows=sizes[1],
        inner=sizes[2],
        columns=sizes[3],
        bias=draw(st.integers(0, 2)),
        shift=draw(st.booleans()),
        element=element,
    )
    return Case(work, TARGETS[element])


@st.composite
def denses(draw: st.DrawFn) -> Case:
    """Fully connected layers of several rows."""
    work = dense(draw(st.integers(1, 6)), draw(st.integers(1, 6)), rows=draw(st.integers(1, 4)))
    return Case(_ended(draw, work), TARGETS[1, LANES])


def kinds() -> st.SearchStrategy[Case]:
    """A layer of any kind."""
    return st.one_of(convolutions(), transposed(), products(), denses())


def _ended(draw: st.DrawFn, work: Workload) -> Workload:
    """The layer with one of the epilogues."""
    shift = draw(st.sampled_from(["block", "lanes", ""]))
    bias, factor = draw(st.integers(0, 2)), draw(st.booleans())
    return with_epilogue(work, bias=bias, shift=shift, factor=factor)
