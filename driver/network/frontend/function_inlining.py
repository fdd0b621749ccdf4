"""Calls of functions as the nodes of their bodies: a model's own, and some that ONNX defines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import onnx
from onnx import inliner
from tilefarm.errors import ModelError

from driver.network.frontend.file import read_model

_FAILURES: Final = (
    RuntimeError,
    ValueError,
    onnx.checker.ValidationError,
    onnx.shape_inference.InferenceError,
)
_OF_ITS_SOURCE: Final = re.compile(
    r"\S+\.(?:cc|h|cpp):\d+:.*?Assertion `.*?` failed:?(?P<said>.*)", re.DOTALL
)
"""An assertion of the ONNX library: a file of its source, a condition in C++, and what it means."""
_MOST_NODES: Final = 1 << 20
_DEEPEST: Final = 64
_OF_ONNX: Final = ("CenterCropPad", "SwiGLU")
"""Operators that ONNX itself defines by others, all of which are taken."""


def model_with_bodies(path: Path) -> onnx.ModelProto:
    """The model in a file, with the nodes of functions in place of their calls.

    Raises:
        ModelError: as `frontend.file.read_model`, or a function calls itself or is damaged.
    """
    model = read_model(path)
    called = {node.op_type for node in model.graph.node}
    try:
        if model.functions:
            _check_growth(model)
            model = inliner.inline_local_functions(model)
        if called.intersection(_OF_ONNX):
            names = [("", name) for name in _OF_ONNX]
            model = inliner.inline_selected_functions(model, names, inline_schema_functions=True)
    except _FAILURES as error:
        raise ModelError(
            f"{path}: its functions cannot take the place of their calls: {_reason(error)}",
            "export without functions, or with another version of the exporter",
        ) from None
    return model


def _reason(error: Exception) -> str:
    """Why, in a line: what the ONNX library says of its own source is nothing for a user."""
    found = _OF_ITS_SOURCE.search(str(error))
    if found is None:
        return str(error)
    said = found["said"].strip(" :.\n")
    return f"the ONNX library refuses them: {said}" if said else "the ONNX library refuses them"


def _check_growth(model: onnx.ModelProto) -> None:
    """Refuses functions whose bodies would be more nodes than any network has.

    Raises:
        ValueError: they are, or calls lie within calls without an end in sight.
    """
    bodies = {(each.domain, each.name): each.node for each in model.functions}
    sizes: dict[tuple[str, str], int] = {}

    def size(nodes: Iterable[onnx.NodeProto], depth: int) -> int:
        if depth > _DEEPEST:
            raise ValueError(f"they call one another in a ring, or more than {_DEEPEST} deep")
        total = 0
        for node in nodes:
            key = (node.domain, node.op_type)
            if key in bodies and key not in sizes:
                sizes[key] = size(bodies[key], depth + 1)
            total += sizes.get(key, 1)
        return total

    nodes = size(model.graph.node, 0)
    if nodes > _MOST_NODES:
        raise ValueError(f"they would be {nodes} nodes")
