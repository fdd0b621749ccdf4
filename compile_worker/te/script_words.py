"""The words that scripts may use besides Python's own: types, buffers, kinds of loops.

They exist so that editors, linters and type checkers know them. A script is never run by Python:
outside of one these do nothing but say so.
"""

from __future__ import annotations

from typing import Any, NoReturn, Protocol


class Cells(Protocol):
    """What a script sees of a tensor: its elements and its shape."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, at: Any) -> Any: ...

    def __setitem__(self, at: Any, value: Any) -> None: ...


def _outside(word: str) -> NoReturn:
    raise TypeError(f"{word} means something in a script only; the script itself is not run")


def buffer(dtype: object, *shape: int) -> Cells:
    """Scratch memory of a type and extents: `buffer(int32, 4, 16)`."""
    _outside(f"buffer({dtype}, {shape})")


def parallel(*bounds: int) -> range:
    """`range`, of iterations that may run at the same time."""
    _outside(f"parallel{bounds}")


def vectorized(*bounds: int) -> range:
    """`range`, of iterations for vector instructions."""
    _outside(f"vectorized{bounds}")


def unrolled(*bounds: int) -> range:
    """`range`, of iterations that are written out."""
    _outside(f"unrolled{bounds}")


def select(condition: object, then: Any, otherwise: Any) -> Any:
    """`then if condition else otherwise`."""
    _outside(f"select({condition}, {then}, {otherwise})")


def round_even(value: object) -> Any:
    """The nearest integer, halves to the even one, as a float."""
    _outside(f"round_even({value})")


def int8(value: object) -> Any:
    """The value as int8; integers wrap."""
    _outside(f"int8({value})")


def uint8(value: object) -> Any:
    """The value as uint8; integers wrap."""
    _outside(f"uint8({value})")


def int16(value: object) -> Any:
    """The value as int16; integers wrap."""
    _outside(f"int16({value})")


def int32(value: object) -> Any:
    """The value as int32; integers wrap."""
    _outside(f"int32({value})")


def int64(value: object) -> Any:
    """The value as int64, which is the type of indices and loop variables."""
    _outside(f"int64({value})")


def float32(value: object) -> Any:
    """The value as float32."""
    _outside(f"float32({value})")


def exp(value: object) -> Any:
    """The exponential of a float32."""
    _outside(f"exp({value})")


def log(value: object) -> Any:
    """The natural logarithm of a float32."""
    _outside(f"log({value})")


def tanh(value: object) -> Any:
    """The hyperbolic tangent of a float32."""
    _outside(f"tanh({value})")


def sigmoid(value: object) -> Any:
    """1 / (1 + exp(-x)) of a float32."""
    _outside(f"sigmoid({value})")


def sqrt(value: object) -> Any:
    """The square root of a float32."""
    _outside(f"sqrt({value})")


def erf(value: object) -> Any:
    """The error function of a float32."""
    _outside(f"erf({value})")


def floor(value: object) -> Any:
    """The largest integer that is not above a float32, as a float32."""
    _outside(f"floor({value})")


def ceil(value: object) -> Any:
    """The smallest integer that is not below a float32, as a float32."""
    _outside(f"ceil({value})")
