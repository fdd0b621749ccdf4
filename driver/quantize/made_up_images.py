"""Images that nobody took: what the biases of a network that takes images are corrected by, else.

Rounding the weights of a layer moves the means of its sums, by how much depends on the means of
what it reads. A model that was quantized before comes without data, but what images have in common
is known: amplitudes fall with the frequency, as 1 / f. Source: D. J. Field, Relations between the
statistics of natural images and the response properties of cortical cells, JOSA A 4 (1987). Some
are darker or have less contrast than others.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from driver.graph.ir import Graph, GraphInput
from driver.graph.parts import Arrays

_IMAGES: Final = 16
"""Enough for means over all pixels; 32 take twice as long and gain less than half a decibel."""
_COLOURS: Final = (1, 3)
_LEAST_EXTENT: Final = 32
"""Of an image: below it two axes may as well be time and frequency, whose means are others."""
_SEED: Final = 0


def made_up_images(graph: Graph) -> Arrays | None:
    """Images [samples, C, H, W] for a network whose one input is such; None for others.

    The model has to say between which ends its pixels are. The same network gets the same.
    """
    if len(graph.inputs) != 1 or not _is_image(graph.inputs[0]):
        return None
    given = graph.inputs[0]
    grid = given.grid or given.rounding
    if grid is None or grid.is_counted:
        return None
    count = math.ceil(_IMAGES / graph.batch) * graph.batch
    rng = np.random.default_rng(_SEED)
    pixels = _between_0_and_1(rng.standard_normal((count, *given.shape[1:])))
    ends = np.sort(rng.uniform(size=(2, count, 1, 1, 1)), axis=0)
    pixels = ends[0] + (ends[1] - ends[0]) * pixels
    return {given.name: grid.reals(grid.integers(grid.lo + (grid.hi - grid.lo) * pixels))}


def _is_image(given: GraphInput) -> bool:
    if len(given.shape) != 4:
        return False
    _, channels, *extents = given.shape
    return channels in _COLOURS and min(extents) >= _LEAST_EXTENT


def _between_0_and_1(noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """White noise [N, C, H, W] as images, each from 0 to 1."""
    down, across = (np.square(np.fft.fftfreq(extent)) for extent in noise.shape[2:])
    frequency = np.sqrt(down[:, None] + across)
    frequency[0, 0] = 1 / max(noise.shape[2:])
    made = np.fft.ifft2(np.fft.fft2(noise) / frequency).real
    least = made.min(axis=(1, 2, 3), keepdims=True)
    most = made.max(axis=(1, 2, 3), keepdims=True)
    return np.asarray((made - least) / (most - least), np.float64)
