"""The file on disk: bytes to an ONNX model, and its weights one by one."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from tilefarm.errors import ModelError
from tilefarm.plural import plural

from driver.network.frontend.call import Array
from driver.network.frontend.external_data import (
    ExternalDataError,
    bytes_beside,
    location_of,
    range_of,
)
from driver.network.frontend.lazy_weights import HERE, thin_model
from driver.network.frontend.reasons import Reasons

OPSETS: Final = range(7, 29)

_MOST_BYTES: Final = 1 << 31
"""The limit of protobuf."""
_MOST_A_BYTE: Final = 4
"""The smallest elements have two bits."""
_AGAIN: Final = "export or download the model again"


def read_model(path: Path) -> onnx.ModelProto:
    """The model in a file; its large weights are left there, see `frontend.lazy_weights`.

    Raises:
        ModelError: the file cannot be read, is too large, is not ONNX, or is cut off or damaged.
    """
    content, nbytes = _content(path)
    try:
        model = onnx.ModelProto.FromString(content)
    except DecodeError:
        raise ModelError(
            f"{path}: not an ONNX file, or one that was cut off ({plural(nbytes, 'byte')})", _AGAIN
        ) from None
    if model.graph.output and not model.graph.node:
        raise ModelError(
            f"{path}: the network computes nothing: it has no nodes",
            "export the network itself, not only its inputs and outputs",
        )
    if not model.HasField("graph") or not model.graph.node:
        raise ModelError(
            f"{path}: not an ONNX file, or one that was cut off: no graph in"
            f" {plural(nbytes, 'byte')}",
            _AGAIN,
        )
    if not all(isinstance(name, str) for name in _names(model.graph)) or not all(
        isinstance(entry.domain, str) for entry in model.opset_import
    ):
        raise ModelError(f"{path}: damaged: a name in it is not text", _AGAIN)
    return model


def _content(path: Path) -> tuple[bytes, int]:
    """The bytes of a file that may hold a model, without large weights, and how many it has."""
    try:
        if path.exists() and not path.is_file():
            raise ModelError(f"cannot read {path}: it is not a file", "give an .onnx file")
        if path.stat().st_size > _MOST_BYTES:
            raise ModelError(
                f"{path}: larger than 2 GiB, which no ONNX file can be",
                "store the weights as external data",
            )
        with path.open("rb") as file:
            return _without_large_weights(file.fileno(), path.stat().st_size)
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}", "give an .onnx file") from None
    except ValueError as error:
        raise ModelError(f"cannot read {path}: {error}", "give an .onnx file") from None


def _without_large_weights(descriptor: int, nbytes: int) -> tuple[bytes, int]:
    if not nbytes:
        return b"", 0
    with (
        mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as mapped,
        memoryview(mapped) as content,
    ):
        with suppress(ValueError):  # protobuf says what is wrong with it
            return thin_model(content), nbytes
        return bytes(content), nbytes


def _names(graph: onnx.GraphProto) -> Iterator[object]:
    """Every name that a graph uses; protobuf gives bytes for one that is not UTF-8."""
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        for attribute in node.attribute:
            yield attribute.name
            yield from _names(attribute.g)
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield value.name
        yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)
    for tensor in graph.initializer:
        yield tensor.name
        yield from (text for entry in tensor.external_data for text in (entry.key, entry.value))
    yield from (sparse.values.name for sparse in graph.sparse_initializer)


def opset_of(model: onnx.ModelProto, reasons: Reasons) -> int:
    """The version of ONNX's own operators that the model uses, or the nearest that is supported."""
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    supported = f"{OPSETS[0]} to {OPSETS[-1]}"
    if not versions:
        reasons.add(
            f"names no operator set; {supported} are supported",
            "the file may be cut off; export or download it again",
        )
        return OPSETS[-1]
    if versions[0] not in OPSETS:
        reasons.add(
            f"operator set {versions[0]} is not supported, only {supported}",
            "export with opset_version=17, or convert with onnx.version_converter",
        )
    return min(max(int(versions[0]), OPSETS[0]), OPSETS[-1])


def read_initializers(graph: onnx.GraphProto, path: Path, reasons: Reasons) -> dict[str, Array]:
    """The good weights by name, from the model's file and from those beside it."""
    weights: dict[str, Array] = {}
    spoilt = set[str | None]()
    for tensor in graph.initializer:
        if tensor.name in weights:
            reasons.add(f"weight {tensor.name!r}: the file has two of that name", _AGAIN)
            continue
        if location_of(tensor) in spoilt:
            continue  # One reason for a file, not for each weight in it.
        try:
            weights[tensor.name] = tensor_array(tensor, path)
        except ExternalDataError as reason:
            spoilt.add(location_of(tensor))
            reasons.add(f"weight {tensor.name!r}: {reason}", reason.remedy)
        except ValueError as reason:
            reasons.add(f"weight {tensor.name!r}: {reason}", "export the model again")
    for sparse in graph.sparse_initializer:
        reasons.add(
            f"weight {sparse.values.name!r}: sparse weights are not supported",
            "export it with dense weights",
        )
    return weights


def tensor_array(tensor: onnx.TensorProto, path: Path | None = None) -> Array:
    """The values of a stored tensor; what is not in it is read from the model's file, or beside it.

    Raises:
        ExternalDataError: the external file is not usable.
        ValueError: sizes do not agree, or the type is unknown.
    """
    if (location := location_of(tensor)) is not None:
        if path is None:
            raise ValueError("has external data, which only weights of the graph may")
        if location == HERE:
            raw = _bytes_of(path, *range_of(tensor, path.stat().st_size))
        else:
            raw = bytes_beside(tensor, path.parent)
        if _is_plain(tensor, len(raw)):
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
            return np.frombuffer(raw, dtype).reshape(tensor.dims)
        tensor = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        tensor.raw_data = raw
    if any(extent < 0 for extent in tensor.dims):
        raise ValueError(f"has the shape {list(tensor.dims)}")
    stored = tensor.ByteSize()
    if math.prod(tensor.dims) > _MOST_A_BYTE * stored:
        raise ValueError(f"has the shape {list(tensor.dims)}, but only {plural(stored, 'byte')}")
    if tensor.data_type not in _TYPES:
        raise ValueError(f"has the unknown type {tensor.data_type}")
    try:
        values = np.asarray(onnx.numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise ValueError(f"cannot be decoded ({error})") from None
    exact = tensor.data_type == onnx.TensorProto.BFLOAT16  # the upper half of a float32
    return values.astype(np.float32) if exact else values


_TYPES: Final = frozenset(onnx.helper.get_all_tensor_dtypes())
"""The element types that the `onnx` package knows."""
_PLAIN: Final = frozenset(
    {
        onnx.TensorProto.FLOAT,
        onnx.TensorProto.DOUBLE,
        onnx.TensorProto.FLOAT16,
        onnx.TensorProto.INT8,
        onnx.TensorProto.UINT8,
        onnx.TensorProto.INT32,
        onnx.TensorProto.INT64,
    }
)
"""Types that numpy has as ONNX stores them, on the little-endian machines that tilefarm runs on."""


def _is_plain(tensor: onnx.TensorProto, nbytes: int) -> bool:
    """Whether so many bytes are the tensor's array just as they are."""
    if tensor.data_type not in _PLAIN or any(extent < 0 for extent in tensor.dims):
        return False
    itemsize = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)).itemsize
    return math.prod(tensor.dims) * itemsize == nbytes


def _bytes_of(path: Path, start: int, length: int) -> bytes:
    """Some bytes of the model's own file.

    Raises:
        ValueError: it cannot be read any more.
    """
    try:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(length)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
