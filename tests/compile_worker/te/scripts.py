"""Random scripts as text, and what Python itself makes of them on numpy's integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

ROWS, COLUMNS = 3, 4
INDENT: Final = "    "

WORDS: Final[Mapping[str, Any]] = {
    "int32": np.int32,
    "int64": int,
    "select": lambda condition, then, otherwise: then if condition else otherwise,
    "buffer": lambda dtype, *shape: np.zeros(shape, dtype),
    "parallel": range,
    "unrolled": range,
}
"""What the words of scripts mean to Python."""


@st.composite
def scripts(draw: st.DrawFn) -> str:
    """The text of `def made(x, y, out)`: int32 [ROWS, COLUMNS] each; every output is written."""
    lines = ["def made(x, y, out):"]
    lines += _nest(draw, ["out[i, j] = x[i, j] - y[i, j]"])
    if draw(st.booleans()):
        lines.append(f"{INDENT}t = buffer(int32, {ROWS}, {COLUMNS})")
        lines += _nest(draw, [f"t[i, j] = {_value(draw, _NAMES, 2)}"])
        lines += _nest(draw, _work(draw, 1, [*_NAMES, "t[i, j]"]))
    for _ in range(draw(st.integers(1, 2))):
        lines += _nest(draw, _work(draw, 1, _NAMES))
    return "\n".join(lines) + "\n"


def as_python(
    text: str, x: npt.NDArray[np.int32], y: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """The output when Python runs the text."""
    names: dict[str, Any] = dict(WORDS)
    exec(text, names)
    out = np.zeros((ROWS, COLUMNS), np.int32)
    with np.errstate(over="ignore"):
        names["made"](x, y, out)
    return out


_NAMES: Final = ("x[i, j]", "y[i, j]", "out[i, j]", "int32(i)", "int32(j)", "x[i, 0]", "y[0, j]")
_SHIFTED: Final = "out[max(i - 1, 0), j]"


def _nest(draw: st.DrawFn, body: Sequence[str]) -> list[str]:
    """The body in loops over i and j, in either order."""
    loops = [f"for i in range({ROWS}):", f"for j in range({COLUMNS}):"]
    first, second = loops if draw(st.booleans()) else reversed(loops)
    return [
        f"{INDENT}{first}",
        f"{INDENT * 2}{second}",
        *(f"{INDENT * 3}{line}" for line in body),
    ]


def _work(draw: st.DrawFn, depth: int, names: Sequence[str]) -> list[str]:
    """Statements at (i, j): stores, branches, a variable with a loop that changes it."""
    kind = draw(st.sampled_from(["store", "change", "branch", "loop", "reduce", "scan"]))
    match kind:
        case "branch" if depth:
            then = [f"{INDENT}{line}" for line in _work(draw, depth - 1, names)]
            otherwise = [f"{INDENT}{line}" for line in _work(draw, depth - 1, names)]
            return [f"if {_condition(draw, names)}:", *then, "else:", *otherwise]
        case "loop":
            start = draw(st.integers(0, 1))
            step = _value(draw, [*names, "acc", "int32(k)", "x[i, k]"], 1)
            return [
                f"acc = int32({draw(st.integers(-3, 3))})",
                f"for k in range({start}, {COLUMNS}):",
                f"{INDENT}acc {draw(st.sampled_from(['+', '-']))}= ({step}) % 7",
                "out[i, j] = acc",
            ]
        case "reduce":
            fold = draw(st.sampled_from(["out[i, j] + y[i, k]", "max(out[i, j], y[i, k])"]))
            return ["out[i, j] = 0", f"for k in range({COLUMNS}):", f"{INDENT}out[i, j] = {fold}"]
        case "change":
            return [f"out[i, j] += {_value(draw, names, 2)}"]
        case "scan":
            return [f"out[i, j] = ({_SHIFTED} + {_value(draw, names, 1)}) % 11"]
        case _:
            return [f"out[i, j] = {_value(draw, names, 2)}"]


def _condition(draw: st.DrawFn, names: Sequence[str]) -> str:
    left, right = _value(draw, names, 1), draw(st.integers(-4, 4))
    compared = f"{left} {draw(st.sampled_from(['<', '<=', '>', '==', '!=']))} {right}"
    if draw(st.booleans()):
        return (
            f"{compared} {draw(st.sampled_from(['and', 'or']))} not i < {draw(st.integers(0, 2))}"
        )
    return compared


def _value(draw: st.DrawFn, names: Sequence[str], depth: int) -> str:
    """An int32 expression; products are kept small."""
    name = draw(st.sampled_from(list(names)))
    if depth == 0:
        return name
    inner = _value(draw, names, depth - 1)
    match draw(st.sampled_from(["name", "sum", "scaled", "min", "division", "select"])):
        case "sum":
            return f"({name} {draw(st.sampled_from(['+', '-']))} {inner})"
        case "scaled":
            return f"({inner} % 9 * {draw(st.integers(-3, 3))})"
        case "min":
            return f"{draw(st.sampled_from(['min', 'max']))}({name}, {inner})"
        case "division":
            sign = draw(st.sampled_from(["//", "%", ">>"]))
            return f"({inner} {sign} {draw(st.integers(1, 5))})"
        case "select":
            return f"select({_condition(draw, [name])}, {name}, {inner})"
        case _:
            return name
