"""Operators said in words, `gemm m=64 n=64 k=64`, as networks with seeded random weights.

Each is a kind of `operator_kinds.OPERATOR_KINDS` and its sizes. Several are one network in which
they stand side by side, each with inputs and an output of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from tilefarm.errors import SettingsError
from tilefarm.plural import plural
from tilefarm.printable import printable

from driver.network.examples.operator_kinds import OPERATOR_KINDS, OperatorGraph, Shape
from driver.network.examples.plugin_operators import (
    PluginOperatorText,
    plugin_operator_in,
    plugin_operators,
)
from driver.network.examples.sketch import Sketch
from driver.network.frontend.onnx import import_model

OPERATOR_PREFIX: Final = "op:"
"""`op:TEXT; TEXT` stands where the path of a model could."""
EXAMPLE: Final = "gemm m=64 n=64 k=64"
_SAMPLES: Final = 4
_MOST: Final = 1 << 28
"""Elements of one tensor: a gigabyte of float32. More is a slip of the pen."""
_LARGEST: Final = 999_999_999
"""A size of more digits is a slip of the pen as well."""
_TITLE: Final = 60
"""Letters of a name for files."""
_MAY_BE_ZERO: Final = ("pad", "relu")
_POOLS: Final = ("max_pool2d", "avg_pool2d")
"""ONNX has no windows of theirs that lie in what is padded alone."""


@dataclass(frozen=True, slots=True)
class OperatorText:
    """One operator with all its sizes, in the order of `OPERATOR_KINDS`."""

    operator: str
    sizes: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        """The words, without sizes that have their default."""
        defaults = OPERATOR_KINDS[self.operator].defaults
        return " ".join(
            [self.operator, *(f"{k}={v}" for k, v in self.sizes if defaults.get(k) != v)]
        )

    @property
    def graph(self) -> OperatorGraph:
        return OPERATOR_KINDS[self.operator].graph(dict(self.sizes))

    @property
    def batch(self) -> int:
        return dict(self.sizes)["batch"]


SaidOperator: TypeAlias = OperatorText | PluginOperatorText


def operators_in(text: str) -> tuple[SaidOperator, ...]:
    """Those of a text, one a line or parted by `;`; a `#` begins a remark, and equal ones are one.

    Each may begin with `op:`, as it does where it stands in place of a model.

    Raises:
        SettingsError: one is not understood: which, why, and what could stand there.
    """
    lines = (line.split("#")[0] for line in text.splitlines())
    parts = (part.strip() for line in lines for part in line.split(";"))
    said = (part.removeprefix(OPERATOR_PREFIX).lstrip() for part in parts)
    found = tuple(dict.fromkeys(_parsed(each) for each in said if each))
    if not found:
        raise SettingsError("no operator is named", f"for example '{EXAMPLE}'")
    for each in found:
        if each.batch != found[0].batch:
            raise SettingsError(
                f"{each}: another batch than that of {found[0]}",
                "operators of one run have the same batch: give each batch a run of its own",
            )
    return found


def is_operator(text: str) -> bool:
    """Whether a text begins with the word for an operator, whatever follows."""
    first = text.strip().removeprefix(OPERATOR_PREFIX).split()[:1]
    return first == [OPERATOR_PREFIX] or any(word in OPERATOR_KINDS for word in first)


def operators_title(said: Iterable[SaidOperator]) -> str:
    """A name for files and folders: `gemm_m64_n64_k64`, or `3_operators`."""
    first, *others = said
    if others:
        return f"{1 + len(others)}_operators"
    return re.sub(r"\W+", "_", str(first).replace("=", ""))[:_TITLE]


def write_operators(said: Iterable[SaidOperator], model: Path, data: Path) -> None:
    """Write operators as one ONNX network, and npz of normal samples to calibrate it with.

    Raises:
        OSError: a file cannot be written.
        ModelError: an operator of a plugin's does not do what its numpy does.
    """
    said = tuple(said)
    net, rng = Sketch(np.random.default_rng(0)), np.random.default_rng([0, 1])
    inputs: dict[str, Shape] = {}
    outputs: dict[str, Shape] = {}
    samples: dict[str, Any] = {}
    for number, operator in enumerate(said, start=1):
        graph = operator.graph
        mark = str(number) if len(said) > 1 else ""
        count = len(graph.inputs)
        letters = ["x"] if count == 1 else [chr(ord("a") + at) for at in range(count)]
        names = [letter + mark for letter in letters]
        for name, shape in zip(names, graph.inputs, strict=True):
            inputs[name] = shape
            net.channels[name] = shape[1] if len(shape) > 1 else 1
            samples[name] = rng.standard_normal((_SAMPLES * shape[0], *shape[1:]), np.float32)
        outputs[graph.draw(net, names, str(operator))] = graph.output
    net.write(model, operators_title(said), inputs, outputs)
    if any(isinstance(each, PluginOperatorText) for each in said):
        # which axis is that of samples is what the operator lets it be
        made = import_model(model)
        samples = {
            each.name: rng.standard_normal((_SAMPLES * made.batch, *each.shape[1:]), np.float32)
            for each in made.inputs
        }
    np.savez(data, **samples)


def operator_lines() -> list[str]:
    """What can be said of each operator, a line each and its caption behind it."""
    return [f"{name} {_choices(name)}: {kind.caption}" for name, kind in OPERATOR_KINDS.items()]


def _parsed(text: str) -> SaidOperator:
    operator, *words = text.split()
    if operator in plugin_operators():
        return _checked(plugin_operator_in(text))
    if operator not in OPERATOR_KINDS:
        every = ", ".join([*OPERATOR_KINDS, *plugin_operators()])
        raise SettingsError(
            f"{printable(text)}: no operator {printable(operator)} is known in words",
            f"one of {every}; --plugin FILE.py for one of yours; or a network with it as ONNX",
        )
    kind = OPERATOR_KINDS[operator]
    known = (*kind.needed, *kind.defaults)
    hint = f"{operator} takes {_choices(operator)}"
    given: dict[str, int] = {}
    for word in words:
        key, _, value = word.partition("=")
        if key not in known:
            raise SettingsError(f"{printable(text)}: no size {printable(key)}", hint)
        if key in given:
            raise SettingsError(f"{printable(text)}: {key} is said twice", "say it once")
        given[key] = _size(text, key, value)
    missing = [key for key in kind.needed if key not in given]
    if missing:
        raise SettingsError(f"{printable(text)}: lacks {', '.join(missing)}", hint)
    sizes = {**kind.defaults, **given}
    found = OperatorText(operator, tuple((key, sizes[key]) for key in known))
    _check(found)
    return _checked(found)


def _size(text: str, key: str, value: str) -> int:
    least = 0 if key in _MAY_BE_ZERO else 1
    if not re.fullmatch(r"[0-9]{1,9}", value) or not least <= int(value) <= _LARGEST:
        raise SettingsError(
            f"{printable(text)}: {key}={printable(value)} is no whole number from {least}"
            f" to {_LARGEST:,}",
            f"{key}={max(least, 1)}",
        )
    return int(value)


def _check(said: OperatorText) -> None:
    sizes, graph = dict(said.sizes), said.graph
    groups = sizes.get("groups", 1)
    if sizes.get("ci", 0) % groups or sizes.get("co", 0) % groups:
        raise SettingsError(
            f"{said}: {plural(groups, 'group')} do not divide its channels",
            "groups that divide ci and co",
        )
    if said.operator in _POOLS and sizes["pad"] >= sizes["kernel"]:
        raise SettingsError(
            f"{said}: its pad is as large as its window", f"pad={sizes['kernel'] - 1}, or less"
        )
    if min(graph.output) < 1:
        raise SettingsError(
            f"{said}: the window is larger than the image", "a smaller kernel, or more pad"
        )


def _checked(said: SaidOperator) -> SaidOperator:
    graph = said.graph
    weights = _weights(dict(said.sizes)) if isinstance(said, OperatorText) else ()
    largest = max(map(math.prod, (*graph.inputs, graph.output, *weights)))
    if largest > _MOST:
        raise SettingsError(
            f"{said}: a tensor has {largest:,} elements", f"at most {_MOST:,} in each"
        )
    return said


def _weights(sizes: dict[str, int]) -> Iterable[Shape]:
    if "co" in sizes:
        yield (sizes["ci"] // sizes.get("groups", 1), sizes["co"], sizes["kernel"], sizes["kernel"])
    if "k" in sizes:
        yield (sizes["k"], sizes["n"])


def _choices(operator: str) -> str:
    kind = OPERATOR_KINDS[operator]
    choices = [f"{key}=" for key in kind.needed]
    return " ".join([*choices, *(f"{key}={size}" for key, size in kind.defaults.items())])
