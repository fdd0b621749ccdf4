"""A network in which a layer stores its results within a border that another step fills."""

from __future__ import annotations

from typing import Final

from kit.kernels.nests import SIM, border, conv2d, workload
from tilefarm.dtype import DType

from driver.network.graph.ir import GraphInput
from driver.network.integer.network import Network, NetworkOutput, NetworkStep, NetworkTensor
from driver.network.integer.samples import sample_inputs

BORDERED: Final = conv2d(2, 2, 4, 3, border=(1, 2, 0, 1))
FILL: Final = -7

_X: Final = (1, 32, 4, 3)
_Y: Final = (1, 32, 5, 6)


def bordered_network(*, fill_first: bool) -> Network:
    """x is quantized; BORDERED and the fill of its border make `larger`; y is that as floats."""
    data, *constants = BORDERED.inputs
    (larger,) = BORDERED.outputs
    image, floats = (DType.FLOAT32, _X), (DType.FLOAT32, _Y)
    start = workload("quantize", {"x": image}, (DType.INT8, data.shape), inv_scale=1.0)
    end = workload("dequantize", {"x": (DType.INT8, larger.shape)}, floats, scale=1.0)
    layer = NetworkStep(
        name="layer",
        workload=BORDERED,
        inputs=tuple(spec.name for spec in BORDERED.inputs),
        outputs=("larger",),
        place="accelerator",
        why="",
    )
    fill = NetworkStep(
        name="fill",
        workload=border(larger.shape, BORDERED.border, FILL),
        inputs=(),
        outputs=("larger",),
        place="cpu",
        why="",
    )
    first = NetworkStep(
        name="start", workload=start, inputs=("x",), outputs=("data",), place="cpu", why=""
    )
    last = NetworkStep(
        name="end", workload=end, inputs=("larger",), outputs=("y",), place="cpu", why=""
    )
    tensors = [
        NetworkTensor(name="x", shape=_X, dtype=DType.FLOAT32, kind="input"),
        NetworkTensor(name="data", shape=data.shape, dtype=DType.INT8, kind="intermediate"),
        NetworkTensor(name="larger", shape=larger.shape, dtype=DType.INT8, kind="intermediate"),
        NetworkTensor(name="y", shape=_Y, dtype=DType.FLOAT32, kind="output"),
    ]
    tensors += [
        NetworkTensor(name=spec.name, shape=spec.shape, dtype=spec.dtype, kind="constant")
        for spec in constants
    ]
    values = sample_inputs(BORDERED, seed=3)
    return Network(
        name="bordered",
        target=SIM,
        inputs=(GraphInput(name="x", shape=_X, axes=(0, 1, 2, 3)),),
        outputs=(NetworkOutput(name="y", tensor="y", shape=_Y),),
        steps=(first, *((fill, layer) if fill_first else (layer, fill)), last),
        tensors={tensor.name: tensor for tensor in tensors},
        constants={spec.name: values[spec.name] for spec in constants},
    )
