"""The form that ONNX defines for an operator: how many inputs and outputs, which attributes."""

from __future__ import annotations

from functools import cache
from typing import Final

import onnx

from driver.network.frontend.call import OnnxCall, RefusedError

_REQUIRED: Final = onnx.defs.OpSchema.FormalParameterOption.Single


def check_form(call: OnnxCall) -> None:
    """Refuses a node that lacks what ONNX's definition of its operator requires.

    Raises:
        RefusedError: inputs or attributes are missing, or there are too many inputs or outputs.
    """
    schema = _schema(call.operator, call.opset, call.domain)
    if schema is None:
        return
    if not call.outputs:
        raise RefusedError("has no output")
    for index, formal in enumerate(schema.inputs[: schema.min_input]):
        given = call.has_input(index) or formal.name in call.attrs  # as it was in older sets
        if formal.option == _REQUIRED and not given:
            raise RefusedError(f"input {index} ({formal.name}) is missing")
    for what, count, most in (
        ("inputs", len(call.inputs), schema.max_input),
        ("outputs", len(call.outputs), schema.max_output),
    ):
        if count > most and call.full_name != "If":  # what its branches read is among them
            raise RefusedError(f"has {count} {what}, but at most {most} are defined")
    for name, attribute in schema.attributes.items():
        if attribute.required and name not in call.attrs:
            raise RefusedError(f"attribute {name!r} is missing")


@cache
def _schema(operator: str, opset: int, domain: str) -> onnx.defs.OpSchema | None:
    """What ONNX says of an operator in a version of its set; None for what it does not know."""
    try:
        return onnx.defs.get_schema(operator, opset, domain)
    except onnx.defs.SchemaError:
        return None
