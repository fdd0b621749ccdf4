"""An imported network against ONNX's reference evaluator, and its kernels against its integers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from kit.networks.onnx_models import saved
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator
from tilefarm.target import TARGETS

from driver.network import import_model
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import FloatArray, Graph, GraphInput
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.quantizer import quantize


def agrees_with_onnx(made: onnx.ModelProto, folder: Path) -> Graph:
    """The import gives the evaluator's answers on random data, and its kernels the integers'."""
    graph = import_model(saved(made, folder))
    rng = np.random.default_rng(7)
    files, inputs = {}, {}
    for given in graph.inputs:
        dims = next(v for v in made.graph.input if v.name == given.name).type.tensor_type.shape.dim
        x = rng.standard_normal(given.given_shape).astype(np.float32)
        files[given.name] = x.reshape([dim.dim_value for dim in dims])
        inputs[given.name] = x.transpose(given.axes)
    wanted: Any = ReferenceEvaluator(made).run(None, files)
    for got, expected in zip(run_float(graph, inputs).values(), wanted, strict=True):
        np.testing.assert_allclose(got.reshape(expected.shape), expected, rtol=1e-4, atol=1e-5)
    integers = quantize(graph, inputs)
    kernels = run_network(partition_network(integers, TARGETS["sim"]), inputs)
    for name, values in run_integer(integers, inputs).items():
        assert kernels[name].tobytes() == values.tobytes(), name
    return graph


def answers_as_onnx(
    made: onnx.ModelProto, given: Mapping[str, NDArray[Any]], folder: Path, near: float = 1e-4
) -> Graph:
    """The import gives the evaluator's answers on these arrays, in the types that the file says."""
    graph = import_model(saved(made, folder))
    inputs = {each.name: _as_held(given[each.name], each) for each in graph.inputs}
    wanted: Any = ReferenceEvaluator(made).run(None, dict(given))
    found = run_float(graph, inputs)
    for output, expected in zip(graph.outputs, wanted, strict=True):
        reals = found[output.name]
        got = reals if output.grid is None else output.grid.integers(reals)
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got.reshape(expected.shape), expected, rtol=near, atol=near / 10)
    integers = quantize(graph, inputs)
    kernels = run_network(partition_network(integers, TARGETS["sim"]), inputs)
    for name, values in run_integer(integers, inputs).items():
        assert kernels[name].tobytes() == values.tobytes(), name
    return graph


def _as_held(values: NDArray[Any], given: GraphInput) -> FloatArray:
    reals = np.asarray(values, np.float32) if given.grid is None else given.grid.reals(values)
    return reals.reshape(given.given_shape).transpose(given.axes)
