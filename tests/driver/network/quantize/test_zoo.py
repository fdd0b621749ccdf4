"""Published networks with real data keep their accuracy as integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kit.shared import zoo_folder
from numpy.typing import NDArray
from tilefarm.target import TARGETS

from driver.benchmarks.zoo.samples import Idx, read
from driver.commands.validation.layer_noise import noise_of
from driver.network import import_model, load_data
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import Add, Conv2d
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.floats import KEPT
from driver.network.quantize.options import Quantization
from driver.network.quantize.quantizer import quantize
from driver.program.evaluate import differing_samples


@pytest.fixture
def zoo() -> Path:
    return zoo_folder()


def right(scores: NDArray[np.float32], labels: NDArray[np.generic] | None) -> float:
    """The share of samples whose class has the highest score."""
    return float((scores.argmax(axis=1) == labels).mean())


@pytest.mark.slow
def test_resnet8_on_cifar10(zoo: Path) -> None:
    graph = import_model(zoo / "models/resnet8_f32_float.onnx")
    data = load_data(zoo / "data/ic01_cifar10_200.npz", graph)
    quantized = quantize(graph, data.inputs)
    floats = run_float(graph, data.inputs)["output"]
    integers = run_integer(quantized, data.inputs)["output"]
    assert right(floats, data.labels) == 171 / 200
    assert right(integers, data.labels) >= 167 / 200
    assert (floats.argmax(axis=1) == integers.argmax(axis=1)).mean() > 0.93
    network = partition_network(quantized, TARGETS["sim"])
    assert network.macs == 12_501_632
    for sample in (0, 199):
        one = {name: values[sample : sample + 1] for name, values in data.inputs.items()}
        assert run_network(network, one)["output"].tobytes() == integers[sample].tobytes()


def test_resnet8_with_its_first_layer_in_float(zoo: Path) -> None:
    graph = import_model(zoo / "models/resnet8_f32_float.onnx")
    data = load_data(zoo / "data/ic01_cifar10_200.npz", graph).first(6)
    first = graph.nodes[0]
    assert isinstance(first.op, Conv2d)
    kept = quantize(graph, data.inputs, Quantization(keep_float=(first.name,)))
    usual = noise_of(graph, quantize(graph, data.inputs), data.inputs)
    better = noise_of(graph, kept, data.inputs)
    assert better[first.output].ratio_db > 100 > usual[first.output].ratio_db
    behind = [node.output for node in graph.nodes if isinstance(node.op, Conv2d | Add)]
    whole = [name for name in behind if not kept.tensors[name].middle]
    assert len(whole) > 5
    assert all(better[name].ratio_db > usual[name].ratio_db + 0.3 for name in whole)
    one = {name: values[:1] for name, values in data.inputs.items()}
    network = partition_network(kept, TARGETS["sim"])
    assert network.steps[0].why == KEPT
    assert differing_samples(run_network(network, one), run_integer(kept, one)) == 0


@pytest.mark.slow
def test_mnist8(zoo: Path) -> None:
    graph = import_model(zoo / "models/mnist-8.onnx")
    samples = read(Idx("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"), zoo / "data")
    images, labels = samples.x[:, None].astype(np.float32), samples.labels
    (name,) = (i.name for i in graph.inputs)
    quantized = quantize(graph, images[-128:])
    (floats,) = run_float(graph, {name: images[:2000]}).values()
    (integers,) = run_integer(quantized, {name: images[:2000]}).values()
    assert right(integers[:1000], labels[:1000]) >= 0.985
    assert right(integers, labels[:2000]) >= right(floats, labels[:2000]) - 0.003


def test_keywords(zoo: Path) -> None:
    """Depthwise layers, whose weights differ most from channel to channel."""
    graph = import_model(zoo / "models/kws_int8_float.onnx")
    with np.load(zoo / "data/kws01_speechcmd_1000_int8mfcc.npz") as archive:
        sounds, labels = archive["X"].astype(np.float32), archive["Y"]
    x = ((sounds - 83) * np.float32(0.5847029089927673))[:400, None]
    (name,) = (i.name for i in graph.inputs)
    quantized = quantize(graph, x[:100])
    assert right(run_integer(quantized, {name: x})["output"], labels[:400]) >= 0.89
    steps = partition_network(quantized, TARGETS["sim"]).steps
    assert [s.workload.operator for s in steps if s.place == "cpu"] == [
        "quantize_windows",
        *["border"] * 4,
        "softmax",
    ]


@pytest.mark.slow
def test_anomaly_autoencoder(zoo: Path) -> None:
    """Mean squared error of the reconstruction tells machines apart as well as in float."""
    graph = import_model(zoo / "models/ad_f32_float.onnx")
    with np.load(zoo / "data/ad01_0.npz") as archive:
        clips, odd = archive["X"].astype(np.float32)[:, : 196 + 4], archive["Y"]
    windows = np.lib.stride_tricks.sliding_window_view(clips.reshape(len(clips), -1), 640, axis=1)
    rows = np.ascontiguousarray(windows[:, :: 128 * 8]).reshape(-1, 640)
    quantized = quantize(graph, rows[::4])

    def auc(rebuilt: NDArray[np.float32]) -> float:
        error = ((rebuilt - rows) ** 2).mean(axis=1).reshape(len(clips), -1).mean(axis=1)
        bad, good = error[odd == 1], error[odd == 0]
        return float((bad[:, None] > good[None]).mean())

    (name,) = (i.name for i in graph.inputs)
    in_float = auc(run_float(graph, {name: rows})["output"])
    assert auc(run_integer(quantized, {name: rows})["output"]) > in_float - 0.03


@pytest.mark.slow
def test_resnet8_that_was_quantized_before(zoo: Path) -> None:
    """No data to calibrate: every scale is in the model."""
    graph = import_model(zoo / "models/resnet8_int8_qdq.onnx")
    data = load_data(zoo / "data/ic01_cifar10_200.npz", graph)
    quantized = quantize(graph, None)
    integers = run_integer(quantized, data.inputs)["output"]
    assert right(integers, data.labels) >= 168 / 200
    floats = run_float(graph, data.inputs)["output"]
    assert (floats.argmax(axis=1) == integers.argmax(axis=1)).mean() > 0.92  # ONNX Runtime's: 0.96
    one = {name: values[:1] for name, values in data.inputs.items()}
    network = partition_network(quantized, TARGETS["sim"])
    assert run_network(network, one)["output"].tobytes() == integers[0].tobytes()
