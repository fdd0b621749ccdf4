"""Random scripts as users write them: row by row, with sums, conditions and several results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from hypothesis import strategies as st

INDENT: Final = "    "
_INPUTS: Final = ("x[i, k]", "y[i, k]", "x[i, 0]", "y[0, k]", "float32(k)")


@dataclass(slots=True)
class _Row:
    """What a row has so far: numbers that are known for all of it, and vectors along it."""

    numbers: list[str] = field(default_factory=list)
    vectors: list[str] = field(default_factory=list)

    def names(self) -> list[str]:
        return [*_INPUTS, *self.numbers, *(f"{name}[k]" for name in self.vectors)]


@st.composite
def row_scripts(draw: st.DrawFn) -> str:
    """The text of `def made(x, y, out)`, all of one shape of two axes; all of out is written."""
    row, lines = _Row(), list[str]()
    for number in range(draw(st.integers(0, 4))):
        lines += _piece(draw, row, number)
    lines += _ending(draw, row)
    rows = [f"{INDENT * 2}{line}" for line in lines]
    return "\n".join(["def made(x, y, out):", f"{INDENT}for i in range(x.shape[0]):", *rows, ""])


def _along(*lines: str) -> list[str]:
    return ["for k in range(x.shape[1]):", *(f"{INDENT}{line}" for line in lines)]


def _piece(draw: st.DrawFn, row: _Row, number: int) -> list[str]:
    name = f"v{number}"
    match draw(
        st.sampled_from(["sum", "top", "some", "vector", "product", "both", "state", "place"])
    ):
        case "sum":
            lines = [f"{name} = 0.0", *_along(f"{name} += {_value(draw, row)}")]
            row.numbers.append(name)
        case "top":
            start = draw(st.sampled_from(["x[i, 0] + 0.0", "float32(-9)"]))
            lines = [f"{name} = {start}", *_along(f"{name} = max({name}, {_value(draw, row)})")]
            row.numbers.append(name)
        case "some":
            body = [f"if {_condition(draw, row)}:", f"{INDENT}{name} += {_value(draw, row)}"]
            lines = [f"{name} = 0.0", *_along(*body)]
            row.numbers.append(name)
        case "vector":
            value = _value(draw, row)
            lines = [f"{name} = buffer(float32, x.shape[1])", *_along(f"{name}[k] = {value}")]
            row.vectors.append(name)
        case "product":
            lines = [
                f"{name} = buffer(float32, x.shape[1])",
                "for j in range(x.shape[1]):",
                f"{INDENT}{name}[j] = 0.0",
                *(f"{INDENT}{line}" for line in _along(f"{name}[j] += x[i, k] * y[0, j]")),
            ]
            row.vectors.append(name)
        case "state":
            lines = [
                f"{name} = 0.0",
                f"{name}b = buffer(float32, x.shape[1])",
                *_along(f"{name} = {name} * 0.5 + {_value(draw, row)}", f"{name}b[k] = {name}"),
            ]
            row.numbers.append(name)
            row.vectors.append(f"{name}b")
        case "place":
            value = _value(draw, row)
            body = [
                f"if {value} > {name}:",
                f"{INDENT}{name} = {value}",
                f"{INDENT}{name}p = float32(k)",
            ]
            lines = [f"{name} = float32(-9)", f"{name}p = 0.0", *_along(*body)]
            row.numbers += [name, f"{name}p"]
        case _:
            lines = [
                f"{name} = 0.0",
                f"{name}b = buffer(float32, x.shape[1])",
                *_along(f"{name}b[k] = {_value(draw, row)}", f"{name} += {name}b[k]"),
            ]
            row.numbers.append(name)
            row.vectors.append(f"{name}b")
    return lines


def _ending(draw: st.DrawFn, row: _Row) -> list[str]:
    first, second = _value(draw, row), _value(draw, row)
    match draw(st.sampled_from(["once", "again", "branch", "sum", "state", "halves"])):
        case "once":
            return _along(f"out[i, k] = {first}")
        case "again":
            return [*_along(f"out[i, k] = {first}"), *_along(f"out[i, k] = out[i, k] * {second}")]
        case "state":
            return ["last = 0.0", *_along(f"last = last * 0.5 + {first}", "out[i, k] = last")]
        case "halves":
            turned = second.replace("[i, k]", "[i, x.shape[1] - 1 - k]").replace("[k]", "[0]")
            store = f"out[i, x.shape[1] - 1 - k] = {turned}"
            half = ["for k in range(x.shape[1] // 2):", f"{INDENT}{store}"]
            return [*_along(f"out[i, k] = {first}"), *half]
        case "branch":
            return _along(
                f"if {_condition(draw, row)}:",
                f"{INDENT}out[i, k] = {first}",
                "else:",
                f"{INDENT}out[i, k] = {second}",
            )
        case _:
            value = first.replace("[i, k]", "[i, j]")
            inner = ["out[i, k] = 0.0", "for j in range(x.shape[1]):"]
            return _along(*inner, f"{INDENT}out[i, k] += {value} * y[0, j]")


def _value(draw: st.DrawFn, row: _Row) -> str:
    one, other = (draw(st.sampled_from(row.names())) for _ in range(2))
    form = draw(
        st.sampled_from(["{0}", "({0} + {1})", "({0} * {1})", "max({0}, {1})", "tanh({0})"])
    )
    return form.format(one, other)


def _condition(draw: st.DrawFn, row: _Row) -> str:
    value: Sequence[str] = [f"{name} > 0.5" for name in row.names()]
    return draw(st.sampled_from(["k <= i", "k > 0", "not k == i", *value]))
