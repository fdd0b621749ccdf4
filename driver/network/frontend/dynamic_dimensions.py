"""Extents that a model leaves open, fixed as `--shape` says: batch=1, or input=1x3x224x224."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import onnx
from tilefarm.errors import SettingsError
from tilefarm.plural import plural

Extents: TypeAlias = Mapping[str, tuple[int, ...]]
"""What the user says: all extents of an input by its name, or one of a dimension by its name."""


_MOST: Final = 2**31 - 1
"""Far more than any memory holds; a file has 64 bits for an extent."""


def read_extents(words: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """What `--shape` says, each word as NAME=EXTENT or NAME=EXTENTxEXTENTx...

    Raises:
        SettingsError: a word is not of that form, or two are about one name.
    """
    found: dict[str, tuple[int, ...]] = {}
    for word in words:
        name, _, extents = word.rpartition("=")
        numbers = extents.split("x")
        if not name or not all(map(_is_extent, numbers)):
            raise SettingsError(
                f"--shape {word}: not a name with extents from 1 to {_MOST}",
                "--shape batch=1, or --shape input=1x3x224x224",
            )
        if name in found:
            raise SettingsError(f"--shape {word}: {name!r} was given before", "give it once")
        found[name] = tuple(map(int, numbers))
    return found


def _is_extent(text: str) -> bool:
    digits = text.isascii() and text.isdigit() and len(text) <= len(str(_MOST))
    return digits and 1 <= int(text) <= _MOST


def fix_extents(model: onnx.ModelProto, extents: Extents) -> None:
    """Writes the extents into the model, for every tensor that names the dimension.

    Raises:
        SettingsError: a name is unknown, or contradicts the file; every such case is listed.
    """
    wrong: list[str] = []
    inputs = _inputs(model.graph)
    for name, given in extents.items():
        symbols = {d.dim_param for value in inputs.values() for d in _dims(value) if d.dim_param}
        if name in symbols and len(given) == 1:
            _fix(model.graph, name, given[0])
        elif name in inputs:
            wrong += _fix_input(model.graph, inputs[name], given)
        else:
            known = ", ".join((*sorted(symbols), *inputs)) or "nothing"
            wrong.append(f"--shape {name}: no such input or open dimension; there are {known}")
    if wrong:
        raise SettingsError("; ".join(wrong), "name an input, or a dimension that the model names")


def option_for(value: onnx.ValueInfoProto) -> str:
    """The options that fix an input of which extents are open; N where only the user can know."""
    if not value.type.tensor_type.HasField("shape"):
        return f"--shape {value.name}=1xN..."
    dims = [_written(d) for d in _dims(value)]
    filled = [d if isinstance(d, int) else "1" if axis == 0 else "N" for axis, d in enumerate(dims)]
    open_ones = {d: filled[axis] for axis, d in enumerate(dims) if isinstance(d, str)}
    if "" in open_ones:
        return f"--shape {value.name}=" + "x".join(map(str, filled))
    return " ".join(f"--shape {name}={extent}" for name, extent in open_ones.items())


def _inputs(graph: onnx.GraphProto) -> dict[str, onnx.ValueInfoProto]:
    """The inputs that are not weights, by name."""
    weights = {tensor.name for tensor in graph.initializer}
    return {value.name: value for value in graph.input if value.name not in weights}


def _fix_input(
    graph: onnx.GraphProto, value: onnx.ValueInfoProto, given: tuple[int, ...]
) -> Iterator[str]:
    """Fixes the open extents of an input; why not, where the file says otherwise."""
    shape = value.type.tensor_type.shape
    if not value.type.tensor_type.HasField("shape"):
        shape.dim.extend(onnx.TensorShapeProto.Dimension() for _ in given)
    dims = _dims(value)
    shown = "x".join(map(str, given))
    if len(dims) != len(given):
        axes = plural(len(dims), "axis", "axes")
        yield f"--shape {value.name}={shown}: the input has {axes}, not {len(given)}"
        return
    for axis, (dim, extent) in enumerate(zip(dims, given, strict=True)):
        written = _written(dim)
        if isinstance(written, int):
            if written != extent:
                yield f"--shape {value.name}={shown}: axis {axis} is {written} in the file"
        elif written:
            _fix(graph, written, extent)
        else:
            dim.dim_value = extent


def _fix(graph: onnx.GraphProto, symbol: str, extent: int) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in _dims(value):
            if dim.dim_param == symbol:
                dim.dim_value = extent


def _dims(value: onnx.ValueInfoProto) -> Sequence[onnx.TensorShapeProto.Dimension]:
    return value.type.tensor_type.shape.dim


def _written(dim: onnx.TensorShapeProto.Dimension) -> int | str:
    """The extent, or the name of an open one, which may be empty."""
    is_fixed = dim.HasField("dim_value") and dim.dim_value > 0
    return dim.dim_value if is_fixed else dim.dim_param
