"""Inputs that nobody gave: what biases are corrected by where a quantized model has no data.

Rounding the weights of a layer moves the means of its sums, by how much depends on the means of
what it reads. What images have in common is known: amplitudes fall with the frequency, as 1 / f.
Source: D. J. Field, Relations between the statistics of natural images and the response properties
of cortical cells, JOSA A 4 (1987). Some are darker or have less contrast than others. Of vectors
nothing is known but between which ends they are. Other inputs, such as spectrograms, have means
that differ from place to place; made-up ones would say less than none.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from driver.network.graph.ir import Graph, Shape
from driver.network.graph.parts import Arrays

_IMAGES: Final = 16
"""Enough for means over all pixels; 32 take twice as long and gain less than half a decibel."""
_VECTORS: Final = 512
"""Each has every value once, and takes next to no time."""
_COLOURS: Final = (1, 3)
_LEAST_EXTENT: Final = 32
"""Of an image: below it two axes may as well be time and frequency, whose means are others."""
_SEED: Final = 0


def made_up_inputs(graph: Graph) -> Arrays | None:
    """Images [samples, C, H, W] or vectors [samples, C], as the network takes one; else None.

    The model has to say between which ends its values are. The same network gets the same.
    """
    if len(graph.inputs) != 1:
        return None
    given = graph.inputs[0]
    grid = given.grid or given.rounding
    is_image = _is_image(given.shape)
    if grid is None or grid.is_counted or not (is_image or len(given.shape) == 2):
        return None
    count = _IMAGES if is_image else _VECTORS
    shape = (math.ceil(count / graph.batch) * graph.batch, *given.shape[1:])
    rng = np.random.default_rng(_SEED)
    made = _images(shape, rng) if is_image else rng.uniform(size=shape)
    return {given.name: grid.reals(grid.integers(grid.lo + (grid.hi - grid.lo) * made))}


def _is_image(shape: Shape) -> bool:
    if len(shape) != 4:
        return False
    _, channels, *extents = shape
    return channels in _COLOURS and min(extents) >= _LEAST_EXTENT


def _images(shape: Shape, rng: np.random.Generator) -> NDArray[np.float64]:
    """From 0 to 1, each between two brightnesses of its own."""
    ends = np.sort(rng.uniform(size=(2, shape[0], 1, 1, 1)), axis=0)
    return np.asarray(ends[0] + (ends[1] - ends[0]) * _spectral(rng.standard_normal(shape)))


def _spectral(noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """White noise [N, C, H, W] as images, each from 0 to 1."""
    down, across = (np.square(np.fft.fftfreq(extent)) for extent in noise.shape[2:])
    frequency = np.sqrt(down[:, None] + across)
    frequency[0, 0] = 1 / max(noise.shape[2:])
    made = np.fft.ifft2(np.fft.fft2(noise) / frequency).real
    least = made.min(axis=(1, 2, 3), keepdims=True)
    most = made.max(axis=(1, 2, 3), keepdims=True)
    return np.asarray((made - least) / (most - least), np.float64)
