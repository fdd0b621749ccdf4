"""Operators that a workload brings along: a script in its attributes, see `te.script`."""

from __future__ import annotations

from typing import Final

from tilefarm.errors import TilefarmError
from tilefarm.workload import NUMBER_PREFIX, Workload

from compile_worker.ir.expr import Buffer
from compile_worker.te.script import script_of
from compile_worker.te.tensor import Tensor
from compile_worker.te.work import Work

_MOST_NBYTES: Final = 1 << 16
"""Of a script: one that people write has a few kilobytes."""


def scripted(workload: Workload, inputs: list[Tensor]) -> list[Work]:
    """What the script makes of the inputs, each of which has the name of its parameter.

    Raises:
        ValueError: the script does not fit the tensors, or is none; it says where.
    """
    text = workload.attr_str("source")
    if len(text) > _MOST_NBYTES:
        raise ValueError(f"a script of {len(text)} bytes; at most {_MOST_NBYTES}")
    numbers = {
        name.removeprefix(NUMBER_PREFIX): workload.attr_float(name)
        for name, _ in workload.attrs
        if name.startswith(NUMBER_PREFIX)
    }
    whole = {name: _whole(value) for name, value in numbers.items()}
    try:
        found = script_of(text, whole)
        wanted = {each.arg for each in found.tree.args.kwonlyargs}
        by_name = {tensor.buffer.name: tensor for tensor in inputs}
        names = [each.arg for each in found.tree.args.args][: len(inputs)]
        outputs = [Buffer(o.name, o.shape, o.dtype, "dram") for o in workload.outputs]
        given = {name: whole[name] for name in wanted & whole.keys()}
        return [found([by_name[name] for name in names], outputs, **given)]
    except KeyError as error:
        raise ValueError(f"the script has no parameter {error}") from None
    except TilefarmError as error:
        raise ValueError(f"{error.what}; try {error.hint}") from None


def _whole(value: float) -> float:
    """An int where it is one: extents and indices are; what meets a float32 becomes one again."""
    return int(value) if value.is_integer() else value
