"""Windows over one axis: [N, C, L] is an image of one row for the rules that take images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from driver.network.frontend.call import Lowered, OnnxCall, Rule, Scope
from driver.network.frontend.steps import Composition, Steps
from driver.network.graph.ir import Reshape
from driver.network.graph.shapes import result_shape

_LINE_RANK: Final = 3
_WITH_ONE: Final = ("strides", "dilations", "kernel_shape")
_WITH_ZERO: Final = ("output_padding",)


def also_of_lines(
    rule: Rule,
) -> Rule:
    """A rule on images [N, C, H, W], with constant weights if any, that takes [N, C, L] too."""

    def taken(call: OnnxCall, scope: Scope) -> Lowered:
        name = scope.activation(call)
        shape = scope.shapes[name]
        if len(shape) != _LINE_RANK:
            return rule(call, scope)
        row = (shape[0], shape[1], 1, shape[2])
        image = scope.beside("row", Lowered((Reshape(shape=row[1:]),), (name,), row), call)
        names = [image, *(_of_rows(each, scope) for each in call.inputs[1:2]), *call.inputs[2:]]
        widened = replace(call, inputs=tuple(names), attrs=_widened(call.attrs))
        lowered = rule(widened, scope)
        held = [scope.held(each) for each in lowered.operands]
        for op in lowered.chain:
            held = [result_shape(op, held)]
        ((samples, channels, _, extent),) = held
        line = (samples, channels, extent)
        return Lowered((*lowered.chain, Reshape(shape=line[1:])), lowered.operands, line)

    return taken


def of_lines(weight: int) -> Composition:
    """A layer on integers, with a constant weight at that input, where it is one of lines."""

    def taken(call: OnnxCall, do: Steps) -> tuple[str, ...] | None:
        if len(do.shape(call.inputs[0])) != _LINE_RANK:
            return None
        inputs = list(call.inputs)
        for index in (0, weight):
            inputs[index] = do("Unsqueeze", inputs[index], [2])
        return (do("Squeeze", do(call.operator, *inputs, **_widened(call.attrs)), [2]),)

    return taken


def _of_rows(name: str, scope: Scope) -> str:
    """A constant weight [Co, Ci, K] as [Co, Ci, 1, K]; what is none is left to the rule."""
    values = scope.constants.get(name)
    if values is None or values.ndim != _LINE_RANK:
        return name
    made = f"{name} of rows"
    scope.constants[made] = values[:, :, None, :]
    return made


def _widened(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of windows for an image of one row."""
    wide = dict(attrs)
    for names, of_row in ((_WITH_ONE, [1]), (_WITH_ZERO, [0])):
        wide |= {key: [*of_row, *attrs[key]] for key in names if _is_single(attrs.get(key))}
    pads = attrs.get("pads")
    if isinstance(pads, list) and len(pads) == 2:
        wide["pads"] = [0, pads[0], 0, pads[1]]
    extents = attrs.get("output_shape")
    if isinstance(extents, list) and extents:
        wide["output_shape"] = [*extents[:-1], 1, extents[-1]]
    return wide


def _is_single(values: Any) -> bool:
    return isinstance(values, list) and len(values) == 1


COMPOSITIONS: Final[Mapping[str, Composition]] = {
    "ConvInteger": of_lines(1),
    "QLinearConv": of_lines(3),
}
"""What each operator of this kind is written as."""
