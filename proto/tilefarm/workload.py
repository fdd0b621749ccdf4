"""A workload: one operator on concrete shapes, the unit that is searched, compiled and measured.

Tensors of the accelerator are blocked: data is `[N/b, C/c, H, W, b, c]` int8 and weights are
`[Co/c, Ci/c, Kh, Kw, c, c]` int8 (output lane before input lane), with b = batch and c = block of
the target. Channels that a network does not have are zero. OPERATORS lists what each operator
means.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from tilefarm.digest import Digest, canonical_json
from tilefarm.dtype import DType

AttrValue: TypeAlias = "int | float | str | tuple[int, ...]"

OPERATORS: Final[Mapping[str, str]] = {
    # On the accelerator. acc is int32; `>>` is arithmetic; shift >= 0 per output channel.
    "conv2d": "(data, weight, bias, shift) -> out = int8(min(max((conv(data, weight) + bias[co]) >>"
    " shift[co], lo), hi)); attrs stride=(h, w), pad=(top, left, bottom, right), dilation=(h, w),"
    " lo, hi. bias and shift are int32 [Co/c, b, c] (equal over b). Padding is zero.",
    "dense": "(data [N/b, Ci/c, b, c], weight [Co/c, Ci/c, c, c], bias, shift) -> out"
    " [N/b, Co/c, b, c] as conv2d; attrs lo, hi",
    # On the CPU; int8 tensors are blocked as above.
    "quantize": "(x float32 [N, C, ...]) -> blocked int8: clip(round_half_even(x * inv_scale),"
    " -128, 127), absent channels 0; attrs inv_scale (a float32)",
    "dequantize": "(x blocked int8) -> float32 [N, C, ...]: float32(x) * scale; attrs scale (a"
    " float32)",
    "add": "(a, b) -> clip((a*mul_a + b*mul_b + round) >> shift, lo, hi), round = 1 << (shift-1) or"
    " 0 for shift 0; attrs mul_a, mul_b, shift, lo, hi",
    "affine": "(x, mul int32 [C/c, b, c], add int32 [C/c, b, c], shift int32 [C/c, b, c]) ->"
    " clip((x*mul[c] + add[c]) >> shift[c], lo, hi); attrs lo, hi",
    "max_pool2d": "(x) -> max over the window, padding is -128; attrs kernel, stride, pad",
    "avg_pool2d": "(x, mul int32 [OH, OW]) -> clip((sum*mul[oh, ow] + round) >> shift, lo, hi),"
    " padding is 0; attrs kernel, stride, pad, shift, lo, hi",
    "relayout": "(x blocked int8 of one logical shape) -> blocked int8 of another with the same"
    " elements in row-major logical order; attrs logical_in, logical_out",
    "softmax": "(x blocked int8 [N/b, C/c, b, c], table float32 [256]) -> float32 [N, C]:"
    " table[max - x] / sum over channels, summed in channel order in float32; no attrs",
}


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Name, shape and element type of one tensor; row-major and dense."""

    name: str
    shape: tuple[int, ...]
    dtype: DType

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.nbytes

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Workload:
    """An operator, its tensors and its attributes. Equal workloads are searched once.

    Attributes are sorted by name. `macs` counts useful multiply-accumulates on logical channels and
    does not take part in the identity.
    """

    operator: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    attrs: tuple[tuple[str, AttrValue], ...] = ()

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ValueError(f"unknown operator {self.operator!r}")
        object.__setattr__(self, "attrs", tuple(sorted(self.attrs)))

    def attr_int(self, name: str) -> int:
        value = dict(self.attrs)[name]
        if not isinstance(value, int):
            raise TypeError(f"{self.operator}.{name} is {value!r}, not an integer")
        return value

    def attr_float(self, name: str) -> float:
        value = dict(self.attrs)[name]
        if not isinstance(value, float | int):
            raise TypeError(f"{self.operator}.{name} is {value!r}, not a number")
        return float(value)

    def attr_ints(self, name: str) -> tuple[int, ...]:
        value = dict(self.attrs)[name]
        if not isinstance(value, tuple):
            raise TypeError(f"{self.operator}.{name} is {value!r}, not a tuple")
        return value

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """Inputs, then outputs: the order of the parameters of every compiled function."""
        return self.inputs + self.outputs

    @property
    def digest(self) -> Digest:
        return Digest.of(self.to_json().encode())

    @property
    def name(self) -> str:
        """A short name for people, for example `conv2d_1x2x14x14_3x3_s1_ab12cd`."""
        parts = [self.operator, "x".join(map(str, self.inputs[0].shape[:-2]))]
        if self.operator == "conv2d":
            co, _, kh, kw = self.inputs[1].shape[:4]
            parts += [f"{co}co", f"{kh}x{kw}", f"s{self.attr_ints('stride')[0]}"]
        elif self.operator == "dense":
            parts += [f"{self.inputs[1].shape[0]}co"]
        return "_".join([*parts, self.digest.hex[:6]])

    def to_json(self) -> str:
        return canonical_json(
            {
                "operator": self.operator,
                "inputs": [[t.name, list(t.shape), t.dtype.value] for t in self.inputs],
                "outputs": [[t.name, list(t.shape), t.dtype.value] for t in self.outputs],
                "attrs": {k: list(v) if isinstance(v, tuple) else v for k, v in self.attrs},
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Workload:
        """The workload that `to_json` wrote.

        Raises:
            ValueError, KeyError, TypeError: the text is not a workload.
        """
        document = json.loads(text)

        def tensors(rows: list[tuple[str, list[int], str]]) -> tuple[TensorSpec, ...]:
            return tuple(
                TensorSpec(name, tuple(shape), DType(dtype)) for name, shape, dtype in rows
            )

        return cls(
            operator=document["operator"],
            inputs=tensors(document["inputs"]),
            outputs=tensors(document["outputs"]),
            attrs=tuple(
                (k, tuple(v) if isinstance(v, list) else v) for k, v in document["attrs"].items()
            ),
        )
