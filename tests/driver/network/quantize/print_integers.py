"""Prints the digest of some small networks' integers, for a test of what decides them.

A process of its own, as libraries read their environment when they are imported.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace

import numpy as np
from kit.networks.random_networks import Builder, conv, dense, transposed, window
from tilefarm.target import TARGETS, load_target

from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL
from driver.network.frontend.onnx import import_model
from driver.network.graph.ir import Affine, FloatArray, Graph, Reshape, Softmax, Unary
from driver.network.quantize.fitting import fit_quantization
from driver.network.quantize.options import AS_USUAL, Quantization

WAYS = {
    "as usual": ("sim", AS_USUAL),
    "fitted": ("sim", Quantization(fit_weights=True, equalize=True)),
    "of a processor": ("cpu:x86-64-v3", AS_USUAL),
}


def digits() -> tuple[Graph, FloatArray]:
    """The demo's network, which is trained, on the first of its pictures."""
    with np.load(DEMO_CALIBRATION) as data:
        (name,) = data.files
        return import_model(DEMO_MODEL), np.asarray(data[name][:64], np.float32)


def every_layer() -> tuple[Graph, FloatArray]:
    """Layers with long sums, with groups, transposed and dense, and one that is folded."""
    rng = np.random.default_rng(3)
    b = Builder((1, 24, 10, 10))
    name = b.put(replace(conv(rng, 24, 40, window(pad=1)), lo=0.0), "x")
    name = b.put(replace(conv(rng, 40, 32, window(pad=1), groups=4), lo=0.0), name)
    name = b.put(replace(transposed(rng, 32, 12, (2, 2), (2, 2)), lo=0.0), name)
    name = b.put(replace(conv(rng, 12, 24, window(stride=2)), lo=0.0), name)
    name = b.put(Unary(function="sigmoid"), name)
    count = int(np.prod(b.shapes[name][1:]))
    name = b.put(Reshape(shape=(count,)), name)
    shift = Affine(
        weight=np.full(count, 0.7, np.float32),
        bias=rng.normal(size=count).astype(np.float32),
    )
    name = b.put(dense(rng, count, 50), b.put(shift, name))
    data = rng.normal(0.5, 2, (20, 24, 10, 10)).astype(np.float32)
    return b.graph(b.put(Softmax(axis=1), name)), data


def leaves(value: object) -> Iterator[bytes]:
    """What a record is made of, in order."""
    if isinstance(value, np.ndarray):
        yield value.tobytes()
    elif is_dataclass(value):
        for field in fields(value):
            yield from leaves(getattr(value, field.name))
    elif isinstance(value, tuple):
        for each in value:
            yield from leaves(each)
    else:
        yield repr(value).encode()


def main() -> None:
    found = {}
    for make in (digits, every_layer):
        graph, data = make()
        for words, (target, how) in WAYS.items():
            known = TARGETS[target] if target in TARGETS else load_target(target)
            made = fit_quantization(known, graph, data, how).quantized
            tensors = tuple(sorted(made.tensors.items()))
            content = b"".join(leaves((made.nodes, tensors)))
            found[f"{make.__name__}, {words}"] = hashlib.sha256(content).hexdigest()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
