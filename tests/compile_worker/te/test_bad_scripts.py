"""What a script may not do is refused at its line, with what is allowed instead."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tilefarm.dtype import DType
from tilefarm.workload import TensorSpec

from compile_worker.ir.expr import Buffer
from compile_worker.te import script_words
from compile_worker.te.script import Script, ScriptError, script
from compile_worker.te.tensor import placeholder
from compile_worker.te.work import Work

INT = DType.INT32
X = placeholder(TensorSpec("x", (4, 6), INT))
F = placeholder(TensorSpec("f", (4,), DType.FLOAT32))
OUT = Buffer("out", (4,), INT)

HEAD = "def bad(x, f, out):\n"
LOOP = "    for i in range(4):\n        "

BAD: dict[str, tuple[str, int, str, str]] = {
    "a while": ("    while True:\n        pass", 2, "While is no statement", "for i in range"),
    "a return": (f"{LOOP}out[i] = 0\n    return", 4, "Return is no statement", "stored in the"),
    "an else of a loop": (
        f"{LOOP}pass\n    else:\n        pass",
        2,
        "For is no statement",
        "for i",
    ),
    "two targets": (f"{LOOP}out[i] = out[0] = 0", 3, "Assign is no statement", "t[i] ="),
    "a loop over a list": ("    for i in [1, 2]:\n        pass", 2, "no loop", "range(n)"),
    "a step": ("    for i in range(0, 4, 2):\n        pass", 2, "3 bounds", "range(a, b)"),
    "a bound that is not known": (
        f"{LOOP}for j in range(i):\n            pass",
        3,
        "a loop's bound must be a known number",
        "t.shape[0]",
    ),
    "no iterations": ("    for i in range(3, 3):\n        pass", 2, "from 3 to 3", "one or more"),
    "one name for two loops": (
        f"{LOOP}for i in range(2):\n            pass",
        3,
        "i stands for something else",
        "another name",
    ),
    "a parallel recurrence": (
        "    for i in parallel(3):\n        out[i + 1] = out[i]",
        2,
        "iterations of this parallel loop need one another",
        "range(...)",
    ),
    "a name of nothing": (f"{LOOP}out[i] = y", 3, "y is not known here", "one of"),
    "a name after its loop": (f"{LOOP}v = x[i, 0]\n    out[0] = v", 4, "v is not known", "one of"),
    "a whole tensor": (f"{LOOP}out[i] = x", 3, "x is a whole tensor", "x[i, j]"),
    "elements of a number": (
        f"{LOOP}k = 2\n        out[i] = k[0]",
        4,
        "have elements",
        "x, f, out",
    ),
    "too few axes": (f"{LOOP}out[i] = x[i]", 3, "x has 2 axes, not 1", "x[i, j]"),
    "a float as an index": (f"{LOOP}out[f[i]] = 0", 3, "float32 where int64 should be", "int64("),
    "an input that is written": (f"{LOOP}x[i, 0] = 0", 3, "x is an input", "one of out"),
    "an input that is changed": (f"{LOOP}x[i, 0] += 1", 3, "x is an input", "one of out"),
    "another type": (f"{LOOP}out[i] = f[i]", 3, "float32 where int32 should be", "int32(...)"),
    "mixed types": (
        f"{LOOP}out[i] = x[i, 0] + f[i]",
        3,
        "int32 and float32 do not mix",
        "float32(",
    ),
    "a fraction": (f"{LOOP}out[i] = x[i, 0] + 0.5", 3, "0.5 where int32 should be", "whole number"),
    "true division": (f"{LOOP}out[i] = x[i, 0] / 2", 3, "/ of int32", "//"),
    "a shift of floats": (f"{LOOP}out[i] = int32(f[i] // 2.0)", 3, "for integers", "/ for floats"),
    "a power": (f"{LOOP}out[i] = x[i, 0] ** 2", 3, "Pow is no operator", "+ - *"),
    "bits": (f"{LOOP}out[i] = ~x[i, 0]", 3, "Invert is no operator", "-x, not x"),
    "membership": (f"{LOOP}out[i] = 1 if x[i, 0] in 3 else 0", 3, "In is no comparison", "< <="),
    "no truth value": (
        f"{LOOP}out[i] = 1 if x[i, 0] and True else 0",
        3,
        "int32 where bool",
        "x != 0",
    ),
    "a branch on a number": (
        f"{LOOP}if x[i, 0]:\n            out[i] = 0",
        3,
        "int32 where bool should be",
        "a comparison",
    ),
    "no types at all": (
        f"{LOOP}out[i] = 1 if i < 2 else 0",
        3,
        "neither side has a type",
        "int32(",
    ),
    "another function": (f"{LOOP}out[i] = pow(x[i, 0])", 3, "pow of 1 is no function", "min, max"),
    "another expression": (f"{LOOP}out[i] = [1]", 3, "List is no expression", "numbers, names"),
    "no extent": (f"{LOOP}out[i] = x.shape[7]", 3, "no extent of a tensor", "t.shape[0]"),
    "a constant that changes": (f"{LOOP}k = 2\n        k += 1", 4, "k does not change", "int32(0)"),
    "a name given twice": (
        f"{LOOP}k = 2\n        k = 3",
        4,
        "k stands for something else",
        "int32",
    ),
    "a tensor's name": (f"{LOOP}out = 3", 3, "out stands for something else", "another name"),
    "a buffer of no type": (f"{LOOP}b = buffer(int4, 2)", 3, "int4[2] is no type", "int8"),
    "a buffer without extents": (f"{LOOP}b = buffer(int8)", 3, "int8[] is no type", "extents"),
    "out of bounds": (f"{LOOP}out[i] = x[i, i * 2]", 3, "index 1 of x can be 6, extent 6", "an if"),
    "out of bounds behind a guard": (
        f"{LOOP}if i < 3:\n            out[i + 2] = 0",
        4,
        "index 0 of out can be 4, extent 4",
        "smaller range",
    ),
}


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], Script]:
    """Makes a script of a text, as a file of its own."""
    return lambda text: _loaded(tmp_path, text)


def _loaded(folder: Path, text: str) -> Script:
    file = folder / "bad.py"
    file.write_text(text)
    names: dict[str, Any] = {**vars(script_words)}
    exec(compile(text, str(file), "exec"), names)
    function = next(each for name, each in names.items() if name == "bad")
    return script(function)


@pytest.mark.parametrize("case", BAD)
def test_it_is_refused_at_its_line(case: str, load: Callable[[str], Script]) -> None:
    body, line, why, legal = BAD[case]
    with pytest.raises(ScriptError) as caught:
        load(f"{HEAD}{body}\n")([X, F], [OUT])
    text = f"{HEAD}{body}".splitlines()[line - 1].strip()
    assert caught.value.what.startswith(f"bad.py:{line}: ")
    assert caught.value.what.endswith(f"\n    {text}")
    assert why in caught.value.what
    assert legal in caught.value.hint
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def applied(load: Callable[[str], Script], text: str, **numbers: int) -> Work:
    return load(text)([X, F], [OUT], **numbers)


def test_parameters_that_do_not_fit(load: Callable[[str], Script]) -> None:
    with pytest.raises(ScriptError, match="bad takes 2 tensors, not 3"):
        applied(load, "def bad(x, out):\n    pass\n")
    with pytest.raises(ScriptError, match="bad takes the numbers none: low"):
        applied(load, f"{HEAD}    pass\n", low=3)
    with pytest.raises(ScriptError, match="bad takes the numbers high, low: high"):
        applied(load, "def bad(x, f, out, *, low, high):\n    pass\n", low=3)
    with pytest.raises(ScriptError, match="a function with named parameters"):
        applied(load, "def bad(*tensors):\n    pass\n")


@pytest.mark.parametrize("word", ["select", "buffer", "parallel", "int8", "round_even", "unrolled"])
def test_words_mean_nothing_outside_of_scripts(word: str) -> None:
    arguments = (1, 2, 3) if word == "select" else (1,)
    with pytest.raises(TypeError, match=rf"{word}\(.*in a script only"):
        getattr(script_words, word)(*arguments)
