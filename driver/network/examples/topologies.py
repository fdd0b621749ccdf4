"""Well-known networks as ONNX with seeded random weights: true shapes, meaningless answers.

The same name and seed give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from driver.network.examples.large_topologies import densenet121, inception_v1, resnet50, vgg19
from driver.network.examples.sketch import CLASSES, IMAGE, Sketch
from driver.network.examples.small_topologies import (
    mobilenet_v1,
    mobilenet_v2,
    resnet18,
    squeezenet,
)
from driver.network.graph.ir import FloatArray

_COARSE: Final = (7, 28, 112)
"""Sizes of the random patterns that a calibration image is made of, besides single pixels."""

Drawer: TypeAlias = Callable[[Sketch], str]

SMALL_TOPOLOGIES: Final[Mapping[str, Drawer]] = {
    "resnet18": resnet18,
    "mobilenet_v1": mobilenet_v1,
    "mobilenet_v2": mobilenet_v2,
    "squeezenet": squeezenet,
}
LARGE_TOPOLOGIES: Final[Mapping[str, Drawer]] = {
    "resnet50": resnet50,
    "densenet121": densenet121,
    "inception_v1": inception_v1,
    "vgg19": vgg19,
}
TOPOLOGIES: Final[Mapping[str, Drawer]] = {**SMALL_TOPOLOGIES, **LARGE_TOPOLOGIES}
"""Name of the network: what draws it and gives its output."""


def write_topology(name: str, path: Path, *, seed: int = 0) -> None:
    """Write one of TOPOLOGIES as ONNX: 1x3x224x224 images to 1000 probabilities.

    Raises:
        OSError: the file cannot be written.
    """
    net = Sketch(np.random.default_rng(seed))
    output = TOPOLOGIES[name](net)
    net.write(path, name, {"image": (1, *IMAGE)}, {output: (1, CLASSES)})


def random_images(samples: int, *, seed: int = 0) -> FloatArray:
    """Random pictures [samples, 3, 224, 224] of unit spread: coarse patterns and single pixels."""
    rng = np.random.default_rng([seed, 1])
    size = IMAGE[1]
    total = rng.standard_normal((samples, *IMAGE))
    for coarse in _COARSE:
        pattern = rng.standard_normal((samples, IMAGE[0], coarse, coarse))
        total += np.kron(pattern, np.ones((size // coarse, size // coarse)))
    return np.asarray(total / total.std(), np.float32)
