"""Published networks with real data keep their accuracy as integers."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from kit.shared import shared_folder
from numpy.typing import NDArray
from tilefarm.target import TARGETS

from driver.frontend import import_model, load_data
from driver.graph import partition, quantize, run, run_float, run_network


@pytest.fixture
def zoo() -> Path:
    folder = shared_folder()
    if folder is None or not (folder / "zoo").is_dir():
        pytest.skip("the zoo of trained networks is not next to this repository")
    return folder / "zoo"


def idx_array(file: Path) -> NDArray[np.uint8]:
    """An array in MNIST's own format: a header with the extents, then bytes."""
    content = gzip.decompress(file.read_bytes())
    extents = np.frombuffer(content, ">i4", offset=4, count=content[3])
    return np.frombuffer(content, np.uint8, offset=4 + 4 * content[3]).reshape(extents)


def right(scores: NDArray[np.float32], labels: NDArray[np.generic]) -> float:
    return float((scores.argmax(axis=1) == labels).mean())


def test_resnet8_on_cifar10(zoo: Path) -> None:
    graph = import_model(zoo / "models/resnet8_f32_float.onnx")
    data = load_data(zoo / "data/ic01_cifar10_200.npz", graph)
    quantized = quantize(graph, data.inputs)
    floats = run_float(graph, data.inputs)["output"]
    integers = run(quantized, data.inputs)["output"]
    assert data.correct(floats) == 171
    assert data.correct(integers) >= 167
    assert (floats.argmax(axis=1) == integers.argmax(axis=1)).mean() > 0.93
    network = partition(quantized, TARGETS["sim"])
    assert network.macs == 12_501_632
    for sample in (0, 199):
        one = {name: values[sample : sample + 1] for name, values in data.inputs.items()}
        assert run_network(network, one)["output"].tobytes() == integers[sample].tobytes()


def test_mnist8(zoo: Path) -> None:
    graph = import_model(zoo / "models/mnist-8.onnx")
    images = idx_array(zoo / "data/t10k-images-idx3-ubyte.gz")[:, None].astype(np.float32)
    labels = idx_array(zoo / "data/t10k-labels-idx1-ubyte.gz")
    (name,) = (i.name for i in graph.inputs)
    quantized = quantize(graph, images[-128:])
    (floats,) = run_float(graph, {name: images[:2000]}).values()
    (integers,) = run(quantized, {name: images[:2000]}).values()
    assert right(integers[:1000], labels[:1000]) >= 0.985
    assert right(integers, labels[:2000]) >= right(floats, labels[:2000]) - 0.003


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
    assert auc(run(quantized, {name: rows})["output"]) > in_float - 0.03
