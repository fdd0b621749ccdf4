"""The window that a workload's attributes describe."""

from __future__ import annotations

from tilefarm.workload import Workload

from driver.network.graph.ir import Window


def window_of(workload: Workload, kernel: tuple[int, ...]) -> Window:
    """The window of that kernel; strides and dilations that the workload lacks are 1."""
    attrs = dict(workload.attrs)
    stride = workload.attr_ints("stride") if "stride" in attrs else (1, 1)
    dilation = workload.attr_ints("dilation") if "dilation" in attrs else (1, 1)
    pad = workload.attr_ints("pad")
    return Window(
        kernel=(kernel[0], kernel[1]),
        stride=(stride[0], stride[1]),
        pad=(pad[0], pad[1], pad[2], pad[3]),
        dilation=(dilation[0], dilation[1]),
    )
