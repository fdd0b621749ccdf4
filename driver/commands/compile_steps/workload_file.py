"""A workload from a file: read, and checked before anything is made of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Final

from tilefarm.documents import read_text
from tilefarm.errors import DataError
from tilefarm.target import Target
from tilefarm.workload import ACCELERATED, OPERATORS, TensorSpec, Workload

from compile_worker.ir.verify import Stage, VerifyError, verify
from compile_worker.te import nest_of

_ADDRESSED_NBYTES: Final = 1 << 32
"""VTA addresses memory by 32 bits (apache/tvm-vta, hw/include/vta/hw_spec.h)."""


_MOST_EXTENT: Final = 1 << 16
"""Sizes and strides of a copy have 16 bits; far larger extents take minutes to search for tiles."""
_MOST_WINDOW: Final = 1 << 8
_WINDOWED: Final = 6
"""Axes that weights have at least where a window is among them."""

_HINT: Final = "`tilefarm show NETWORK --json` has workloads as they are written"


def read_workload(path: Path, target: Target) -> Workload:
    """A workload from the JSON that `Workload.to_json` writes.

    Raises:
        DataError: the file cannot be read, is not a workload, or its tensors and attributes do not
            fit together.
    """
    try:
        text = read_text(path)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path}: cannot be read: {getattr(error, 'strerror', error)}", _HINT
        ) from None
    try:
        workload = Workload.from_json(text)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{path}: not a workload: {_why(error)}", _HINT) from None
    wrong = next(_wrong(workload, target), None)
    if wrong is not None:
        operator = workload.operator
        raise DataError(f"{path}: {wrong}", f"{operator} is {OPERATORS[operator]}")
    return workload


def _why(error: Exception) -> str:
    """What is wrong with a document that is no workload, as far as its reader says."""
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(error) if isinstance(error, ValueError) else f"of another form ({error})"


def _wrong(workload: Workload, target: Target) -> Iterator[str]:
    """What no workload may have; the first one is told."""
    for spec in workload.tensors:
        if not all(type(extent) is int and extent > 0 for extent in spec.shape):
            yield f"{spec}: extents are whole numbers from 1 on"
        elif spec.nbytes > _ADDRESSED_NBYTES:
            yield f"{spec} has {spec.nbytes} bytes: the accelerator's addresses have 32 bits"
        elif workload.operator in ACCELERATED:
            yield from _too_large(spec)
    if bool(workload.inputs) == (workload.operator == "border") or not workload.outputs:
        inputs = "no inputs" if workload.operator == "border" else "inputs"
        yield f"{workload.operator} has {inputs} and an output"
    for name, value in workload.attrs:
        positive = name in ("stride", "dilation", "kernel", "groups")
        values = value if isinstance(value, tuple) else (value,)
        if positive and not all(type(each) is int and each > 0 for each in values):
            yield f"{name} is {value}: whole numbers from 1 on"
    yield from _unlike_its_nest(workload, target)


def _too_large(spec: TensorSpec) -> Iterator[str]:
    """Extents that no layer of a network has, and that are not worth the wait."""
    if max(spec.shape, default=1) > _MOST_EXTENT:
        yield f"{spec}: extents on the accelerator are at most {_MOST_EXTENT}"
    elif spec.name == "weight" and max(_window(spec), default=1) > _MOST_WINDOW:
        yield f"{spec}: windows have at most {_MOST_WINDOW} rows and columns"


def _window(weight: TensorSpec) -> tuple[int, ...]:
    """Rows and columns of a convolution's window; nothing of other weights."""
    return weight.shape[-4:-2] if len(weight.shape) >= _WINDOWED else ()


def _unlike_its_nest(workload: Workload, target: Target) -> Iterator[str]:
    """Why the operator cannot be computed on these tensors as they are."""
    try:
        func = nest_of(workload, target)
        verify(func, Stage.NEST)
    except KeyError as missing:
        kind = "tensor" if str(missing).strip("'") in _tensor_names(workload) else "attribute"
        yield f"{workload.operator} needs the {kind} {missing}"
    except VerifyError as finding:
        yield f"tensors and attributes do not fit together: {finding}"
    except (IndexError, TypeError, ValueError) as error:
        yield f"tensors and attributes do not fit together: {error}"
    else:
        for spec, param in zip(workload.tensors, func.params, strict=False):
            if spec.nbytes != prod(param.shape) * param.dtype.nbytes:
                yield f"{spec} would be {param.dtype}{list(param.shape)}"


def _tensor_names(workload: Workload) -> list[str]:
    """The words of the operator's description in front of its arrow."""
    return re.findall(r"\w+", OPERATORS[workload.operator].partition("->")[0])
