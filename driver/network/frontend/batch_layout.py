"""How the graph holds a tensor of an ONNX file: what of its shape counts samples.

The graph's tensors are [N, ...], N the batch that its operators never mix. A file does not say what
its batch is, so it is read in one of two ways. Axis 0 of every input is the batch, and every tensor
has it in front; or, where that is refused, one run of the network is one sample: the batch is 1,
and a tensor that does not begin with an extent of 1 gets one more axis. In the second way a tensor
may be reshaped, transposed and joined along any axis.
"""

from __future__ import annotations

from dataclasses import dataclass

from driver.network.graph.ir import Operator, Reshape, Shape


def held_shape(shape: Shape, batch: int) -> Shape:
    """The shape [batch, ...] of the graph for one of the file; a number for each sample is [N, 1].

    Raises:
        ValueError: it does not begin with the batch, and that is not 1.
    """
    if len(shape) > 1 and shape[0] == batch:
        return shape
    if batch == 1:
        return (1, *(shape or (1,)))
    if shape == (batch,):
        return (batch, 1)
    raise ValueError(f"changes the batch axis: a result {list(shape)} of a batch of {batch}")


def file_shape(held: Shape, like: Shape, batch: int) -> Shape:
    """The shape of the file for a result that is held as a tensor of shape `like` is."""
    of_like = held_shape(like, batch)
    if held == of_like:
        return like
    return held[1:] if batch == 1 and of_like != like else held


@dataclass(frozen=True, slots=True)
class Along:
    """A form of a tensor in which some axes are not the batch: what brings it there, and its shape.

    `axes` are where those axes are in it.
    """

    before: tuple[Operator, ...]
    shape: Shape
    axes: tuple[int, ...]


def along(shape: Shape, axes: tuple[int, ...], batch: int) -> Along:
    """The form for axes of a tensor of the file.

    Raises:
        ValueError: axis 0 is the batch.
    """
    held = held_shape(shape, batch)
    shifted = tuple(axis + 1 for axis in axes)
    if batch == 1 and held != shape:
        return Along((), held, shifted)
    if 0 not in axes:
        return Along((), held, axes)
    if batch != 1:
        raise ValueError(f"works along the batch axis of {list(shape)}")
    return Along((Reshape(shape=shape),), (1, *shape), shifted)
