"""Hand-written schedules of convolutions, and what lowering makes of functions step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from kit.kernels.nests import SIM, inputs_of
from tilefarm.target import Target
from tilefarm.trace import Argument, Step, Trace
from tilefarm.workload import Workload

from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.verify import Stage, verify
from compile_worker.machine import machine_of
from compile_worker.machines.known import MACHINES
from compile_worker.schedule import replay
from compile_worker.te import nest_of

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiling:
    """A schedule of conv2d: tile sizes, loop orders, slots, and where operands are loaded.

    `weight_at` and `data_at` name a loop, or are empty for once and for all. `shift_by_lane` is for
    layers whose shifts are operands.
    """

    co: int = 1
    h: int = 1
    w: int = 4
    ci: int = 1
    kh: int = 3
    kw: int = 3
    order: tuple[str, ...] = ("co", "h", "w")
    micro: tuple[str, ...] = ("ci", "kh", "kw", "co", "h", "w")
    slots: int = 1
    acc_slots: int = 1
    weight_at: str = "conv_kw_0"
    data_at: str = "conv_kw_0"
    shift_by_lane: bool = False

    def trace(self, *, padded: bool = True) -> Trace:
        """The primitives that make this schedule."""
        return Trace(tuple(Step(name, args) for name, args in self._calls(padded)))

    def _calls(self, padded: bool) -> Iterator[tuple[str, tuple[Argument, ...]]]:
        image = "padded" if padded else "data_inp"
        yield ("set_scope", ("padded", "inp")) if padded else ("cache_read", ("data", "inp"))
        yield "cache_read", ("weight", "wgt")
        stages = ("upper", "lower", "shifted", "biased", "conv")
        for stage in stages:
            yield "set_scope", (stage, "acc")
        for name, scope in (("bias", "wgt"), ("unit", "inp")):
            yield "cache_read", (name, scope)
        if self.shift_by_lane:
            yield "cache_read", ("shift", "acc")
        for axis, factor in (("co", self.co), ("h", self.h), ("w", self.w)):
            yield "split", (f"out_{axis}", factor)
        outer = [f"out_{axis}_0" for axis in self.order]
        yield "reorder", ("out_n", *outer, "out_co_1", "out_h_1", "out_w_1")
        for stage in stages:
            yield "compute_at", (stage, outer[-1])
        for axis, factor in (("ci", self.ci), ("kh", self.kh), ("kw", self.kw)):
            yield "split", (f"conv_{axis}", factor)
        inner = [f"conv_{a}_1" if a in ("ci", "kh", "kw") else f"conv_{a}" for a in self.micro]
        steps = ("conv_ci_0", "conv_kh_0", "conv_kw_0")
        yield "reorder", (*steps, "conv_n", *inner, "conv_b", "conv_o", "conv_i")
        yield "tensorize", ("conv", "gemm")
        for stage, loop in ((image, self.data_at), ("weight_wgt", self.weight_at)):
            if loop:
                yield "compute_at", (stage, loop)
                yield "double_buffer", (stage, self.slots)
            yield "annotate", ("block", stage, "dma", "load")
        for name in ("bias_wgt", "unit_inp"):
            yield "annotate", ("block", name, "dma", "load")
        if self.shift_by_lane:
            yield "compute_at", ("shift_acc", outer[-1])
            yield "annotate", ("block", "shift_acc", "dma", "load")
        yield "double_buffer", ("conv", self.acc_slots)
        axes = ("t", "n", "co", "h", "w", "b", "o", "i")
        yield "reorder", tuple(f"biased_{axis}" for axis in axes)
        yield "tensorize", ("biased", "gemm")
        for stage in stages[:-2]:
            yield "annotate", ("block", stage, "alu", 1)
        yield "annotate", ("block", "out", "dma", "store")


def scheduled(workload: Workload, tiling: Tiling, target: Target = SIM) -> Func:
    """The nest of a convolution after a hand-written schedule."""
    padded = any(workload.attr_ints("pad"))
    return replay(tiling.trace(padded=padded), nest_of(workload, target), target)


def lowering(func: Func, target: Target = SIM) -> Iterator[tuple[str, Func]]:
    """The function after each pass that changed it, with the pass's name; verified each time.

    What a pass leaves alone keeps the rules of the stage before; only those of another are new.
    """
    held: Stage | None = None
    for step in machine_of(func, target, MACHINES).passes:
        after = step.run(func, target)
        if after is not func or step.leaves is not held:
            verify(after, step.leaves)
        if after is not func:
            yield step.name, after
        func, held = after, step.leaves


def outputs(func: Func, arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
    """What a function computes, as flat arrays: the same before and after storage is flattened."""
    shaped = {p.name: arrays[p.name].reshape(p.shape) for p in func.params if p.name in arrays}
    return {name: array.reshape(-1) for name, array in interpret(func, shaped).items()}


def keeps_meaning(workload: Workload, func: Func, target: Target = SIM, seed: int = 0) -> None:
    """Assert that every pass leaves the answer of a scheduled function alone."""
    arrays = inputs_of(workload, seed)
    wanted = outputs(nest_of(workload, target), arrays)
    for name, after in lowering(func, target):
        found = outputs(after, arrays)
        for key, value in wanted.items():
            np.testing.assert_array_equal(found[key], value, err_msg=f"after {name}")
