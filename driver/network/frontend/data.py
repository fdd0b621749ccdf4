"""Calibration and evaluation arrays: an .npz file, checked against the network's inputs.

A network with one input takes the array named `x`, `X` or as the input; one with several takes each
under the input's name. `y` or `Y` are labels, see `accuracy.kinds`. The first axis counts
samples.

The rest of an array's shape may be the input's without its batch axis, or the same with axes of
extent 1 left out, or [H, W, C] for an input [C, H, W]: images as files hold them. Any real number
type is taken as it is, so uint8 images give 0..255; scaling belongs to the network. An input of
integers takes these, and the network the reals that they stand for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from tilefarm.errors import DataError
from tilefarm.plural import plural

from driver.network.graph.grid import Grid
from driver.network.graph.ir import FloatArray, Graph, GraphInput

_INPUT_NAMES = ("x", "X")
_LABEL_NAMES = ("y", "Y")
_NUMBERS = "fiu"


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Arrays [samples, ...] by input name in the graph's layout, and labels if given.

    Labels [samples, ...] are integers or finite reals. `unused` are the names of arrays beside them
    that mean nothing here.
    """

    inputs: Mapping[str, FloatArray]
    labels: NDArray[Any] | None
    unused: tuple[str, ...] = ()

    @property
    def samples(self) -> int:
        return len(next(iter(self.inputs.values())))

    def first(self, samples: int) -> Dataset:
        """At most so many samples from the start."""
        inputs = {name: values[:samples] for name, values in self.inputs.items()}
        labels = None if self.labels is None else self.labels[:samples]
        return Dataset(inputs, labels, self.unused)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user may not have meant: a line, or nothing."""
        if not self.unused:
            return ()
        names = ", ".join(map(repr, self.unused))
        of_labels = " or ".join(map(repr, _LABEL_NAMES))
        return (
            f"nothing uses {plural(len(self.unused), 'array')} {names}: labels are {of_labels}",
        )


def load_data(path: Path, graph: Graph) -> Dataset:
    """The arrays of a file in the layout of the graph's inputs.

    Raises:
        DataError: the file cannot be read, is not .npz, or its arrays are absent, empty, not real
            numbers, not finite, or of another shape than the inputs, or labels are not as many;
            the text says which and why.
    """
    return dataset_of(read_arrays(path), graph, path)


def dataset_of(arrays: Mapping[str, NDArray[Any]], graph: Graph, path: Path) -> Dataset:
    """The same, of arrays that were read from a file of another kind.

    Raises:
        DataError: the arrays do not fit, see `load_data`.
    """
    names = {i.name: _input_name(i, arrays, graph, path) for i in graph.inputs}
    inputs = {
        i.name: _input_array(i, arrays[names[i.name]], names[i.name], path) for i in graph.inputs
    }
    counts = {name: len(values) for name, values in inputs.items()}
    if len(set(counts.values())) != 1:
        raise DataError(
            f"{path}: inputs have different numbers of samples: {counts}",
            "save as many samples of each",
        )
    samples = next(iter(counts.values()))
    label = next((name for name in _LABEL_NAMES if name in {*arrays} - {*names.values()}), None)
    labels = None if label is None else _labels(arrays[label], label, samples, path)
    unused = tuple(name for name in arrays if name not in {*names.values(), label})
    return Dataset(inputs, labels, unused)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file by name.

    Raises:
        DataError: it cannot be read or is not .npz; the text says which and why.
    """
    try:
        with path.open("rb") as stream:
            return _archive_arrays(stream, path)
    except OSError as error:
        raise DataError(
            f"cannot read {path}: {error.strerror or error}", "give an .npz file"
        ) from None


def _archive_arrays(stream: BinaryIO, path: Path) -> dict[str, NDArray[Any]]:
    try:
        archive = np.load(stream, allow_pickle=False)
    except Exception:  # damaged bytes make zipfile and numpy raise nearly anything
        raise DataError(
            f"{path}: not an .npz file, or one that was cut off", _how_to_save()
        ) from None
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise DataError(f"{path}: a single array, not an .npz file", _how_to_save())
    with archive:
        return {name: _member(archive, name, path) for name in archive.files}


def _member(archive: np.lib.npyio.NpzFile, name: str, path: Path) -> NDArray[Any]:
    try:
        member = archive[name]
    except Exception as error:  # as above
        objects = isinstance(error, ValueError) and "allow_pickle" in str(error)
        reason = "holds Python objects" if objects else "is damaged or cut off"
        raise DataError(f"{path}: array {name!r} {reason}", _how_to_save()) from None
    if not isinstance(member, np.ndarray):
        raise DataError(f"{path}: {name!r} is not an array", _how_to_save())
    return member


def _input_name(
    given: GraphInput, arrays: Mapping[str, NDArray[Any]], graph: Graph, path: Path
) -> str:
    """The name of the array that an input takes."""
    names = (given.name, *_INPUT_NAMES) if len(graph.inputs) == 1 else (given.name,)
    name = next((name for name in names if name in arrays), None)
    if name is None:
        found = ", ".join(f"{k} {v.dtype}{list(v.shape)}" for k, v in arrays.items()) or "nothing"
        raise DataError(
            f"{path}: no array for input {given.name!r}; found {found}",
            f"name it {' or '.join(map(repr, names))}",
        )
    return name


def _input_array(given: GraphInput, values: NDArray[Any], name: str, path: Path) -> FloatArray:
    if values.dtype.kind not in _NUMBERS and not (given.grid and values.dtype == np.bool_):
        raise DataError(
            f"{path}: array {name!r} has type {values.dtype}, not real numbers", _how_to_save()
        )
    if values.size == 0:
        raise DataError(f"{path}: array {name!r} is empty: {list(values.shape)}", _how_to_save())
    placed = _in_layout(values, given, name, path)
    return _finite(
        placed if given.grid is None else _reals(placed, given.grid, name, path), name, path
    )


def _reals(values: NDArray[Any], grid: Grid, name: str, path: Path) -> FloatArray:
    """What the integers that the model takes stand for."""
    lowest, highest = grid.ends
    if not ((values >= lowest) & (values <= highest) & (values == np.rint(values))).all():
        raise DataError(
            f"{path}: array {name!r} has values that are not whole numbers of"
            f" {lowest} to {highest}, but the network takes {grid.dtype}",
            "save the integers that the network takes, not the reals they stand for",
        )
    reals = grid.reals(values)
    if grid.is_whole and not (reals == values).all():
        raise DataError(
            f"{path}: array {name!r} has values beyond 2^24, of which float32 does not have all",
            "use smaller ones: the network computes in float32 with them",
        )
    return reals


def _in_layout(values: NDArray[Any], given: GraphInput, name: str, path: Path) -> NDArray[Any]:
    """`values` with the axes of the graph's input; samples stay first."""
    sample, wanted = values.shape[1:], given.shape[1:]
    if sample == given.given_shape[1:]:
        return values.transpose(given.axes)
    if sample == wanted:
        return values
    channels_last = (*wanted[1:], *wanted[:1])
    if len(wanted) == 3 and sample == channels_last:
        return np.moveaxis(values, -1, 1)
    if values.ndim > 1 and _long_axes(sample) == _long_axes(wanted):
        return values.reshape(len(values), *wanted)
    is_one = values.shape in (given.given_shape[1:], wanted, channels_last)
    raise DataError(
        f"{path}: array {name!r} has shape {list(values.shape)};"
        f" input {given.name!r} needs [samples, {', '.join(map(str, given.given_shape[1:]))}]",
        f"{name}[None] is an array of one sample"
        if is_one
        else "reshape or scale the data as in training",
    )


def _long_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(extent for extent in shape if extent != 1)


def _finite(values: NDArray[Any], name: str, path: Path) -> FloatArray:
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(values, np.float32)
    if not np.isfinite(single).all():
        bad = np.argwhere(~np.isfinite(single))[0]
        kind = "NaN" if np.isnan(single[tuple(bad)]) else "a value beyond float32"
        raise DataError(
            f"{path}: array {name!r} contains {kind}, first in sample {bad[0]}",
            "leave such samples out",
        )
    return single


def _labels(labels: NDArray[Any], name: str, samples: int, path: Path) -> NDArray[Any]:
    if labels.shape[:1] != (samples,) or not labels.size:
        raise DataError(
            f"{path}: labels {name!r} have shape {list(labels.shape)}, but there are {samples}"
            " samples",
            f"labels [{samples}, ...], or leave {name!r} out",
        )
    if labels.dtype.kind in "biu":
        if int(labels.max()) > np.iinfo(np.int64).max:
            raise DataError(
                f"{path}: labels {name!r} reach {labels.max()}", "labels are class numbers from 0"
            )
        return labels.astype(np.int64)
    if labels.dtype.kind != "f":
        raise DataError(
            f"{path}: labels {name!r} have type {labels.dtype}, not numbers",
            "labels are class numbers from 0, or the values that the network should give",
        )
    if not np.isfinite(labels).all():
        bad = np.argwhere(~np.isfinite(labels))[0]
        raise DataError(
            f"{path}: labels {name!r} contain {labels[tuple(bad)]}, first in sample {bad[0]}",
            "leave such samples out",
        )
    return labels.astype(np.float64)


def _how_to_save() -> str:
    return "numpy.savez('data.npz', x=inputs, y=labels)"
