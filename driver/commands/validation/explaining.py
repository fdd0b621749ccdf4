"""What became of a network: for each layer its place and why, its scales, its work, its error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from driver.network import (
    Int32Array,
    Network,
    NetworkStep,
    Noise,
    NoiseSources,
    Origin,
    QAdd,
    QAffine,
    QAvgPool2d,
    QConv2d,
    QConvTranspose2d,
    QDense,
    QMatMul,
    QProduct,
    QRescale,
    QuantGraph,
    QuantNode,
    Real,
    TensorNoise,
)
from driver.report.noise_chart import NoiseRow

IN_PLACE = "nothing to do"
_NO_STEP = "the bytes stay where they are, or the next layer's weights follow their order"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerScales:
    """What the integers of a layer stand for.

    Attributes:
        scale_in: real value of 1 of each operand; scale: that of the result; None for float32.
        zero: the integer that stands for the real 0.
        shift: how sums become int8, in words; empty where nothing is shifted.
    """

    scale_in: tuple[float | None, ...] = ()
    scale: float | None = None
    zero: int = 0
    shift: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedLayer:
    """A node of the integer network.

    Attributes:
        place: accelerator, cpu, or that there is nothing to do.
        why: the reason for the place.
        made_from: nodes of the ONNX file that it is, none for what quantization adds.
        kernels: operators of its steps.
        macs: useful multiply-accumulates.
        noise: against the float network, where that has the tensor.
        sources: where it comes from, as far as that is known.
    """

    name: str
    operator: str
    place: str
    why: str
    made_from: tuple[Origin, ...]
    kernels: tuple[str, ...]
    scales: LayerScales
    macs: int
    noise: Noise | None = None
    sources: NoiseSources | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subgraph:
    """Layers that run one after the other in one place; `why` has each of their reasons once."""

    place: str
    first: str
    last: str
    layers: int
    macs: int
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All layers in order, and what they add up to.

    `crossings` are the tensors that one of accelerator and processor makes and the other reads;
    without an accelerator (`has_accelerator`) there are none.
    """

    name: str
    target: str
    samples: int
    layers: tuple[ExplainedLayer, ...]
    crossings: tuple[str, ...]
    has_accelerator: bool = True

    @property
    def macs(self) -> int:
        return sum(layer.macs for layer in self.layers)

    @property
    def subgraphs(self) -> tuple[Subgraph, ...]:
        """Runs of layers in one place, in order.

        Layers without work are in none, nor are borders, which are made beforehand.
        """
        runs: list[list[ExplainedLayer]] = []
        for layer in self.layers:
            if layer.place == IN_PLACE or layer.kernels == ("border",):
                continue
            if not runs or runs[-1][0].place != layer.place:
                runs.append([])
            runs[-1].append(layer)
        return tuple(map(_subgraph, runs))

    @property
    def noise_rows(self) -> tuple[NoiseRow, ...]:
        """The layers that were compared with float, for their picture."""
        return tuple(
            NoiseRow(
                name=layer.name,
                ratio_db=layer.noise.ratio_db,
                shares=tuple(layer.sources.shares().items()) if layer.sources else (),
            )
            for layer in self.layers
            if layer.noise is not None
        )

    @property
    def share_on_accelerator(self) -> float:
        """Of the multiply-accumulates, 0 to 1; 1 where there are none."""
        there = sum(layer.macs for layer in self.layers if layer.place == "accelerator")
        return there / self.macs if self.macs else 1.0


def explain(
    quantized: QuantGraph,
    network: Network,
    *,
    made_from: Mapping[str, tuple[Origin, ...]],
    noise: Mapping[str, TensorNoise],
    samples: int,
) -> Explanation:
    """What became of a network.

    Args:
        made_from: see `driver.network.frontend.origins.origins`.
        noise: see `driver.network.accuracy.noise_sources`, of as many samples.
    """
    steps = _steps_of_nodes(quantized, network)
    layers = [
        _layer(node, steps[node.output], quantized, network, made_from, noise)
        for node in quantized.nodes
    ]
    return Explanation(
        name=network.name,
        target=network.target.name,
        has_accelerator=network.target.has_accelerator,
        samples=samples,
        layers=tuple(layers),
        crossings=crossings(network),
    )


def _subgraph(layers: Sequence[ExplainedLayer]) -> Subgraph:
    return Subgraph(
        place=layers[0].place,
        first=layers[0].name,
        last=layers[-1].name,
        layers=len(layers),
        macs=sum(layer.macs for layer in layers),
        why=tuple(dict.fromkeys(layer.why for layer in layers)),
    )


def crossings(network: Network) -> tuple[str, ...]:
    """Tensors that cross between accelerator and processor, in order; those at the ends do not.

    Nor do borders, which are made beforehand.
    """
    places: dict[str, set[str]] = {}
    for step in network.steps:
        if step.workload.operator == "border":
            continue
        for name in step.outputs:
            places.setdefault(network.place_of(name)[0], set()).add(step.place)
    found: dict[str, None] = {}
    for step in network.steps:
        for name in step.inputs:
            root = network.place_of(name)[0]
            if places.get(root, set()) - {step.place}:
                found[root] = None
    return tuple(found)


def shift_words(op: object, block: int) -> str:
    """How an operator's sums become int8, in few words; empty where nothing is shifted."""
    match op:
        case QConv2d() | QConvTranspose2d() | QDense() | QAffine():
            return _factors(op.factor) + _shifts(op.shift, block)
        case QAdd(mul_a=a, mul_b=b, shift=each):
            return f"({a}a{b:+}b)>>{each}"
        case QRescale(mul=mul, shift=each):
            return f"{mul}x>>{each}"
        case QAvgPool2d(shift=each) | QMatMul(shift=each) | QProduct(shift=each):
            return f"sum>>{each}"
    return ""


def _factors(factor: Int32Array | None) -> str:
    """The range of what sums are multiplied by first, each channel its own; empty for nothing."""
    if factor is None:
        return ""
    lowest, highest = int(factor.min()), int(factor.max())
    return f"x{lowest}" if lowest == highest else f"x{lowest}..{highest}"


def _shifts(shift: Int32Array, block: int) -> str:
    """The range of the shifts, and whether the channels of a block share one."""
    lowest, highest = int(shift.min()), int(shift.max())
    if lowest == highest:
        return f">>{lowest}"
    parts = [shift[at : at + block] for at in range(0, len(shift), block)]
    whose = "block" if all(bool(np.all(part == part[0])) for part in parts) else "channel"
    return f">>{lowest}..{highest} by {whose}"


def _steps_of_nodes(quantized: QuantGraph, network: Network) -> dict[str, list[NetworkStep]]:
    """The steps of every node of the integer network, by its result.

    A step belongs to the node whose name or result it bears; one that makes a tensor that only the
    kernels know belongs to the node whose result's name that begins with.
    """
    by_name = {node.name: node.output for node in quantized.nodes}
    results = {node.output for node in quantized.nodes}
    found: dict[str, list[NetworkStep]] = {node.output: [] for node in quantized.nodes}
    for step in network.steps:
        (made,) = step.outputs
        owner = by_name.get(step.name) or (made if made in results else None)
        if owner is None:
            owner = max((r for r in results if made.startswith(f"{r}.")), key=len, default=None)
        found[owner or quantized.nodes[-1].output].append(step)
    return found


def _layer(
    node: QuantNode,
    steps: Sequence[NetworkStep],
    quantized: QuantGraph,
    network: Network,
    made_from: Mapping[str, tuple[Origin, ...]],
    noise: Mapping[str, TensorNoise],
) -> ExplainedLayer:
    result = quantized.tensors[node.output]
    off = noise.get(node.output)
    main = next((step for step in steps if step.name == node.name), steps[-1] if steps else None)
    return ExplainedLayer(
        name=node.name,
        operator=_operator(node),
        place=main.place if main else IN_PLACE,
        why=main.why if main else _NO_STEP,
        made_from=made_from.get(node.output, ()),
        kernels=tuple(step.workload.operator for step in steps),
        scales=LayerScales(
            scale_in=tuple(quantized.tensors[name].scale for name in node.inputs),
            scale=result.scale,
            zero=round(-result.middle / result.scale) if result.scale else 0,
            shift=shift_words(node.op, network.target.lanes.block),
        ),
        macs=sum(step.macs for step in steps),
        noise=off.noise if off else None,
        sources=off.sources if off else None,
    )


def _operator(node: QuantNode) -> str:
    """The name of what a node does, in integers or in floats."""
    op = node.op
    return f"{type(op.op).__name__} in float32" if isinstance(op, Real) else type(op).__name__
