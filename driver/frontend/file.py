"""The file on disk: bytes to an ONNX model whose weights are all in memory and readable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from tilefarm.errors import ModelError

from driver.frontend.call import Array
from driver.graph.ir import Shape

OPSETS: Final = range(8, 22)


def read_model(path: Path) -> onnx.ModelProto:
    """The model in a file.

    Raises:
        ModelError: the file cannot be read, is not ONNX, is cut off, or has an opset outside 8..21.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}", "give an .onnx file") from None
    try:
        model = onnx.ModelProto.FromString(content)
    except DecodeError:
        raise ModelError(
            f"{path}: not an ONNX file, or one that was cut off ({len(content)} bytes)",
            "export or download the model again",
        ) from None
    if not model.HasField("graph") or not model.graph.node:
        raise ModelError(
            f"{path}: not an ONNX file, or one that was cut off: no graph in {len(content)} bytes",
            "export or download the model again",
        )
    if not all(isinstance(name, str) for name in _names(model.graph)):
        raise ModelError(
            f"{path}: damaged: a name in it is not text", "export or download the model again"
        )
    return model


def _names(graph: onnx.GraphProto) -> Iterator[object]:
    """Every name that the graph uses; protobuf gives bytes for one that is not UTF-8."""
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
    for value in (*graph.input, *graph.output):
        yield value.name
        yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)
    yield from (tensor.name for tensor in graph.initializer)


def opset_of(model: onnx.ModelProto, path: Path) -> int:
    """The version of ONNX's own operators that the model uses.

    Raises:
        ModelError: the model names none, or one outside 8..21.
    """
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    supported = f"{OPSETS[0]} to {OPSETS[-1]}"
    if not versions:
        raise ModelError(
            f"{path}: names no operator set; {supported} are supported",
            "the file may be cut off; export or download it again",
        )
    if versions[0] not in OPSETS:
        raise ModelError(
            f"{path}: operator set {versions[0]} is not supported, only {supported}",
            "export with opset_version=17, or convert with onnx.version_converter",
        )
    return int(versions[0])


def read_initializers(model: onnx.ModelProto, path: Path) -> dict[str, Array]:
    """The weights by name, those in external files included.

    Raises:
        ModelError: a weight cannot be read; every such weight is listed.
    """
    weights: dict[str, Array] = {}
    reasons = []
    for tensor in model.graph.initializer:
        try:
            weights[tensor.name] = tensor_array(tensor, path.parent)
        except ValueError as reason:
            reasons.append(f"weight {tensor.name!r}: {reason}")
    reasons += [
        f"weight {sparse.values.name!r}: sparse weights are not supported"
        for sparse in model.graph.sparse_initializer
    ]
    if reasons:
        raise ModelError(f"{path}: " + "; ".join(reasons), "export the model again")
    return weights


def inferred_shapes(model: onnx.ModelProto) -> dict[str, Shape]:
    """The static shapes that ONNX infers for what nodes make; empty where it cannot."""
    try:
        values = onnx.shape_inference.infer_shapes(model).graph.value_info
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        return {}
    shapes = {}
    for value in values:
        dims = value.type.tensor_type.shape.dim
        shape = tuple(dim.dim_value for dim in dims)
        if len(shape) > 1 and min(shape) > 0:
            shapes[value.name] = shape
    return shapes


def tensor_array(tensor: onnx.TensorProto, folder: Path | None = None) -> Array:
    """The values of a stored tensor; external data are read from `folder`.

    Raises:
        ValueError: sizes do not agree, the type is unknown, or the external file is not usable.
    """
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raw = _external_bytes(tensor, folder)
        tensor = onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        tensor.raw_data = raw
    if any(extent < 0 for extent in tensor.dims):
        raise ValueError(f"has the shape {list(tensor.dims)}")
    try:
        return np.asarray(onnx.numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"cannot be decoded ({error})") from None


def _external_bytes(tensor: onnx.TensorProto, folder: Path | None) -> bytes:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None or not location:
        raise ValueError("names no file for its external data")
    root = folder.resolve()
    file = (root / location).resolve()
    if not file.is_relative_to(root):
        raise ValueError(f"its external data {location!r} lie outside the model's folder")
    try:
        start, length = int(entries.get("offset", "0")), int(entries.get("length", "-1"))
        with file.open("rb") as stream:
            stream.seek(start)
            content = stream.read(length)
    except OSError as error:
        raise ValueError(f"cannot read external data {location!r}: {error.strerror}") from None
    except ValueError:
        raise ValueError(f"its external data {location!r} have no sensible place") from None
    if length >= 0 and len(content) < length:
        raise ValueError(f"its external data {location!r} are cut off")
    return content
