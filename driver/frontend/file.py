"""The file on disk: bytes to an ONNX model whose weights are all in memory and readable."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from tilefarm.errors import ModelError

from driver.frontend.beside import BesideError, bytes_beside, location_of
from driver.frontend.call import Array
from driver.frontend.reasons import Reasons

OPSETS: Final = range(8, 29)

_MOST_BYTES: Final = 1 << 31
"""The limit of protobuf."""
_MOST_A_BYTE: Final = 4
"""The smallest elements have two bits."""
_AGAIN: Final = "export or download the model again"


def read_model(path: Path) -> onnx.ModelProto:
    """The model in a file.

    Raises:
        ModelError: the file cannot be read, is too large, is not ONNX, or is cut off or damaged.
    """
    content = _content(path)
    try:
        model = onnx.ModelProto.FromString(content)
    except DecodeError:
        raise ModelError(
            f"{path}: not an ONNX file, or one that was cut off ({len(content)} bytes)", _AGAIN
        ) from None
    if not model.HasField("graph") or not model.graph.node:
        raise ModelError(
            f"{path}: not an ONNX file, or one that was cut off: no graph in {len(content)} bytes",
            _AGAIN,
        )
    if not all(isinstance(name, str) for name in _names(model)):
        raise ModelError(f"{path}: damaged: a name in it is not text", _AGAIN)
    return model


def _content(path: Path) -> bytes:
    """The bytes of a file that may hold a model."""
    try:
        if path.exists() and not path.is_file():
            raise ModelError(f"cannot read {path}: it is not a file", "give an .onnx file")
        if path.stat().st_size > _MOST_BYTES:
            raise ModelError(
                f"{path}: larger than 2 GiB, which no ONNX file can be",
                "store the weights as external data",
            )
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}", "give an .onnx file") from None
    except ValueError as error:
        raise ModelError(f"cannot read {path}: {error}", "give an .onnx file") from None


def _names(model: onnx.ModelProto) -> Iterator[object]:
    """Every name that the model uses; protobuf gives bytes for one that is not UTF-8."""
    graph = model.graph
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield value.name
        yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)
    for tensor in graph.initializer:
        yield tensor.name
        yield from (text for entry in tensor.external_data for text in (entry.key, entry.value))
    yield from (sparse.values.name for sparse in graph.sparse_initializer)
    yield from (entry.domain for entry in model.opset_import)


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


def read_initializers(graph: onnx.GraphProto, folder: Path, reasons: Reasons) -> dict[str, Array]:
    """The good weights by name; external data are read from files of `folder`."""
    weights: dict[str, Array] = {}
    spoilt = set[str | None]()
    for tensor in graph.initializer:
        if tensor.name in weights:
            reasons.add(f"weight {tensor.name!r}: the file has two of that name", _AGAIN)
            continue
        if location_of(tensor) in spoilt:
            continue  # One reason for a file, not for each weight in it.
        try:
            weights[tensor.name] = tensor_array(tensor, folder)
        except BesideError as reason:
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


def tensor_array(tensor: onnx.TensorProto, folder: Path | None = None) -> Array:
    """The values of a stored tensor; external data are read from `folder`.

    Raises:
        BesideError: the external file is not usable.
        ValueError: sizes do not agree, or the type is unknown.
    """
    if location_of(tensor) is not None:
        if folder is None:
            raise ValueError("has external data, which only weights of the graph may")
        raw = bytes_beside(tensor, folder)
        tensor = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        tensor.raw_data = raw
    if any(extent < 0 for extent in tensor.dims):
        raise ValueError(f"has the shape {list(tensor.dims)}")
    stored = tensor.ByteSize()
    if math.prod(tensor.dims) > _MOST_A_BYTE * stored:
        raise ValueError(f"has the shape {list(tensor.dims)}, but only {stored} bytes")
    try:
        return np.asarray(onnx.numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise ValueError(f"cannot be decoded ({error})") from None
