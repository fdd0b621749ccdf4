"""Operators of plugins said in words, `com.example.Product a=96x256 b=256x192`.

Each input is an activation of the shape that is said, each attribute a number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilefarm.errors import SettingsError
from tilefarm.printable import printable

from compile_worker.plugins.operator import CustomOperator
from driver.network.examples.operator_kinds import OperatorGraph, Shape
from driver.network.examples.sketch import Sketch
from driver.network.frontend.call import RefusedError
from driver.network.frontend.custom.plugins import loaded_plugins
from driver.network.frontend.custom.rule import result_shape


@dataclass(frozen=True, slots=True)
class PluginOperatorText:
    """One operator of a plugin with the shapes of its inputs and its numbers, as they were said."""

    label: str
    shapes: tuple[tuple[str, Shape], ...]
    numbers: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        shapes = (f"{name}={'x'.join(map(str, shape))}" for name, shape in self.shapes)
        return " ".join([self.label, *shapes, *(f"{k}={_in_words(v)}" for k, v in self.numbers)])

    @property
    def batch(self) -> int:
        """One run is one sample: nobody says which axis would be that of samples."""
        return 1

    @property
    def graph(self) -> OperatorGraph:
        operator = plugin_operators()[self.label]
        numbers = {**operator.defaults, **dict(self.numbers)}

        def draw(net: Sketch, inputs: Sequence[str], name: str) -> str:
            attrs: dict[str, Any] = dict(self.numbers)
            return net.add(operator.name, [*inputs], name, domain=operator.domain, **attrs)

        try:
            output = result_shape(operator, dict(self.shapes), numbers)
        except RefusedError as error:
            raise SettingsError(f"{self}: {error}", "shapes that belong together") from None
        return OperatorGraph(tuple(shape for _, shape in self.shapes), output, draw)


def plugin_operators() -> dict[str, CustomOperator]:
    """Those that are known, by domain and name."""
    every = (operator for plugin in loaded_plugins() for operator in plugin.operators)
    return {operator.label: operator for operator in every}


def plugin_operator_in(text: str) -> PluginOperatorText:
    """The operator of a text that begins with the domain and name of a plugin's.

    Raises:
        SettingsError: a shape or a number is missing, unknown, or none.
    """
    label, *words = text.split()
    operator = plugin_operators()[label]
    said = dict(word.partition("=")[::2] for word in words)
    needed = [*operator.parameters, *(a for a in operator.attributes if a not in operator.defaults)]
    hint = f"{label} takes " + " ".join(
        [
            *(f"{name}=AxB" for name in operator.parameters),
            *(f"{name}={operator.defaults.get(name, '')}" for name in operator.attributes),
        ]
    )
    missing = [name for name in needed if name not in said]
    unknown = said.keys() - {*operator.parameters, *operator.attributes}
    if missing or unknown or len(said) < len(words):
        what = f"lacks {', '.join(missing)}" if missing else "says what it does not take, or twice"
        raise SettingsError(f"{printable(text)}: {what}", hint)
    try:
        return PluginOperatorText(
            label,
            tuple((name, _shape(said[name])) for name in operator.parameters),
            tuple((name, _number(said[name])) for name in operator.attributes if name in said),
        )
    except ValueError as error:
        raise SettingsError(f"{printable(text)}: {printable(str(error))}", hint) from None


def _shape(said: str) -> Shape:
    if not re.fullmatch(r"[1-9][0-9]{0,8}(x[1-9][0-9]{0,8})*", said):
        raise ValueError(f"{said!r} is no shape")
    return tuple(map(int, said.split("x")))


def _number(said: str) -> float:
    """An int where it is said as one: numpy counts with it."""
    number = int(said) if re.fullmatch(r"[+-]?[0-9]{1,15}", said) else float(said)
    if not math.isfinite(number):
        raise ValueError(f"{said!r} is no finite number")
    return number


def _in_words(number: float) -> str:
    """Short where that says it, else all its digits: operators are told apart by their words."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)
