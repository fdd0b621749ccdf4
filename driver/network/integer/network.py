"""A network as kernel calls: what the compiler, the memory scheduler and the devices work on.

Steps read and write named tensors in list order. A tensor is a run of bytes: a step may see it
under another shape with as many elements than the step before did (flattening blocked data moves
nothing), so the shape that a kernel sees is the one in its workload. A view is a part of another
tensor: concatenating and slicing channels is a matter of addresses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from numpy.typing import NDArray
from tilefarm.dtype import DType
from tilefarm.target import Target
from tilefarm.workload import Workload

from driver.network.graph.grid import Grid
from driver.network.graph.ir import GraphInput, Shape
from driver.network.integer.search_choice import is_searched

TensorKind = Literal["input", "output", "constant", "intermediate", "view"]
Place = Literal["accelerator", "cpu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTensor:
    """One tensor of the program, in the shape in which it is made.

    A view is a run of bytes of its `parent`, which may be a view itself, from byte `offset` on.
    """

    name: str
    shape: Shape
    dtype: DType
    kind: TensorKind
    parent: str = ""
    offset: int = 0

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.nbytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkStep:
    """One kernel call; `inputs` and `outputs` name tensors in the order of the workload's specs.

    `macs` counts useful multiply-accumulates on the network's own channels; `why` says why the step
    is where it is.
    """

    name: str
    workload: Workload
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    place: Place
    why: str
    macs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkOutput:
    """A result by the user's name: float32 of the logical `shape`, in `tensor`.

    `grid` is that of `graph.ir.GraphOutput`.
    """

    name: str
    tensor: str
    shape: Shape
    grid: Grid | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Network:
    """A whole network for one target: tensors, kernel calls in order, and the constants' values.

    Inputs are float32 tensors named as the graph's inputs, in their logical shape.
    """

    name: str
    target: Target
    inputs: tuple[GraphInput, ...]
    outputs: tuple[NetworkOutput, ...]
    steps: tuple[NetworkStep, ...]
    tensors: Mapping[str, NetworkTensor] = field(repr=False)
    constants: Mapping[str, NDArray[Any]] = field(repr=False)

    @property
    def macs(self) -> int:
        """Useful multiply-accumulates of one run."""
        return sum(step.macs for step in self.steps)

    def macs_by_layer(self) -> dict[str, int]:
        """The same of each layer, by its name."""
        found: dict[str, int] = {}
        for step in self.steps:
            found[step.name] = found.get(step.name, 0) + step.macs
        return found

    @property
    def batch(self) -> int:
        """Samples that one run takes."""
        return self.inputs[0].shape[0]

    def place_of(self, name: str) -> tuple[str, int]:
        """The tensor with bytes of its own that a tensor lies in, and from which byte on."""
        tensor, offset = self.tensors[name], 0
        while tensor.kind == "view":
            offset += tensor.offset
            tensor = self.tensors[tensor.parent]
        return tensor.name, offset

    def is_searched(self, step: NetworkStep) -> bool:
        """Whether there is a schedule to choose for a step."""
        if self.target.has_accelerator:
            return step.place == "accelerator"
        return is_searched(step.workload, self.target)

    def workloads(self) -> tuple[tuple[Workload, int], ...]:
        """The distinct workloads that are searched, with their counts, in order of first use.

        These are the accelerator's; of a processor alone, those that have a choice.
        """
        counts: dict[Workload, int] = {}
        for step in self.steps:
            if self.is_searched(step):
                counts[step.workload] = counts.get(step.workload, 0) + 1
        return tuple(counts.items())

    def tensors_of(self, kind: TensorKind) -> tuple[NetworkTensor, ...]:
        """The tensors of one kind, in the order in which the steps first name them."""
        return tuple(tensor for tensor in self.tensors.values() if tensor.kind == kind)
