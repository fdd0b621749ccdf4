"""The data of the zoo's networks, in the formats in which they are published."""

from __future__ import annotations

import gzip
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.errors import DataError
from tilefarm.plural import plural

from driver.benchmarks.zoo.images import read_image
from driver.network import read_arrays

_HINT: Final = "the folder of --data has the files of the zoo under `data`"
_BYTES_OF_IDX: Final = (0, 0, 8)
"""How a file of bytes in MNIST's format begins; the number of axes follows."""


@dataclass(frozen=True, slots=True)
class Archive:
    """An .npz file: samples `X`, labels `Y`."""

    file: str


@dataclass(frozen=True, slots=True)
class Idx:
    """MNIST's two gzip files: a header with the extents, then bytes."""

    images: str
    labels: str


@dataclass(frozen=True, slots=True)
class Sheets:
    """Square images side by side in PNG sheets of a folder, row by row; their labels as text.

    Attributes:
        pixels: of a side.
        into: height and width that they are scaled to, by the nearest pixel; None: as they are.
        grey: whether they become one channel of whole numbers, by the weights of ITU-R BT.601.
    """

    folder: str
    pixels: int
    into: tuple[int, int] | None = None
    grey: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipWindows:
    """Runs of `values` values of each clip in an .npz file, `per_clip` of them `stride` apart."""

    file: str
    values: int
    stride: int
    per_clip: int


@dataclass(frozen=True, slots=True)
class RandomInputs:
    """No data: seeded random inputs."""


Source: TypeAlias = Archive | Idx | Sheets | ClipWindows


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Samples x [count, ...] and labels, each of as many samples, one after another."""

    x: NDArray[Any]
    labels: NDArray[np.int64]

    @property
    def per_label(self) -> int:
        """Samples that share a label."""
        return len(self.x) // len(self.labels)

    def first(self, labels: int) -> Samples:
        """Those of at most so many labels from the start."""
        return Samples(self.x[: labels * self.per_label], self.labels[:labels])

    def after(self, labels: int) -> Samples:
        """Those of all labels but the first ones."""
        return Samples(self.x[labels * self.per_label :], self.labels[labels:])


def read(source: Source, folder: Path) -> Samples:
    """All samples of a source whose files lie in the folder.

    Raises:
        DataError: a file cannot be read, or is not what the source says.
    """
    match source:
        case Archive(file=file):
            x, labels = _labelled(folder / file)
        case Idx(images=images, labels=names):
            x, labels = _idx(folder / images), _idx(folder / names)
        case Sheets(folder=name, pixels=pixels, into=into, grey=grey):
            labels = _numbers(folder / name / "labels.txt")
            x = _scaled(_tiles(folder / name, pixels)[: len(labels)], into)
            x = _grey(x) if grey else x
        case ClipWindows(file=file):
            clips, labels = _labelled(folder / file)
            x = _windows(clips, source, folder / file)
    if not len(labels) or len(x) % len(labels):
        raise DataError(
            f"{folder}: {plural(len(x), 'sample')}, but {plural(len(labels), 'label')} of {source}",
            _HINT,
        )
    return Samples(x, labels.reshape(-1).astype(np.int64))


def _labelled(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    arrays = read_arrays(path)
    if not {"X", "Y"} <= arrays.keys():
        raise DataError(f"{path}: needs arrays X and Y; has {', '.join(arrays) or 'none'}", _HINT)
    x, labels = arrays["X"], arrays["Y"]
    if x.ndim < 2 or not x.size or x.dtype.kind not in "fiu" or labels.dtype.kind not in "iu":
        raise DataError(
            f"{path}: X is {x.dtype}{list(x.shape)} and Y {labels.dtype}{list(labels.shape)},"
            " not numbers [samples, ...] and integers",
            _HINT,
        )
    return x, labels


def _idx(path: Path) -> NDArray[np.uint8]:
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}", _HINT) from None
    axes = content[3] if len(content) > 3 else 0
    begin = 4 + 4 * axes
    extents = [int.from_bytes(content[at : at + 4], "big") for at in range(4, begin, 4)]
    if tuple(content[:3]) != _BYTES_OF_IDX or math.prod(extents) != len(content) - begin:
        raise DataError(f"{path}: not a file of bytes in MNIST's format", _HINT)
    return np.frombuffer(content, np.uint8, offset=begin).reshape(extents)


def _numbers(path: Path) -> NDArray[np.int64]:
    try:
        return np.array([int(word) for word in path.read_text().split()], np.int64)
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}", _HINT) from None


def _tiles(folder: Path, pixels: int) -> NDArray[np.uint8]:
    """The images [count, pixels, pixels, 3] of all sheets in the order of their names."""
    sheets = [read_image(file) for file in sorted(folder.glob("sheet_*.png"))]
    if not sheets:
        raise DataError(f"{folder}: no sheet_NN.png", _HINT)
    parts = []
    for sheet in sheets:
        rows, columns = sheet.shape[0] // pixels, sheet.shape[1] // pixels
        whole = sheet[: rows * pixels, : columns * pixels]
        tiles = whole.reshape(rows, pixels, columns, pixels, 3).transpose(0, 2, 1, 3, 4)
        parts.append(tiles.reshape(-1, pixels, pixels, 3))
    return np.concatenate(parts)


def _grey(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Images [count, H, W, 3] as [count, H, W, 1]."""
    grey = np.rint(images @ np.array([0.299, 0.587, 0.114])).astype(np.uint8)
    return np.asarray(grey[..., None])


def _scaled(images: NDArray[np.uint8], into: tuple[int, int] | None) -> NDArray[np.uint8]:
    """Images [count, H, W, 3] of other extents."""
    if into is None:
        return images
    rows, columns = (
        np.arange(extent) * old // extent
        for extent, old in zip(into, images.shape[1:3], strict=True)
    )
    return images[:, rows][:, :, columns]


def _windows(clips: NDArray[Any], cut: ClipWindows, path: Path) -> NDArray[Any]:
    """The windows [clips * per_clip, values]."""
    flat = clips.reshape(len(clips), -1)
    if flat.shape[1] < cut.values + (cut.per_clip - 1) * cut.stride:
        raise DataError(f"{path}: clips of {flat.shape[1]} values are too short", _HINT)
    windows = np.lib.stride_tricks.sliding_window_view(flat, cut.values, axis=1)
    return windows[:, :: cut.stride][:, : cut.per_clip].reshape(-1, cut.values)
