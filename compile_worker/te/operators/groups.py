"""Grouped convolutions: which input blocks an output block reads, as sums of loop variables.

Groups of one block each need no axis of their own: output block co reads input block co. Larger
ones are an axis: data [N, Ci, ...] is seen as [N, G, Ci/G, ...], weights, biases and shifts
[Co, ...] as [G, Co/G, ...]. The bytes stay where they are. Those of a `qlinear_conv2d` are an axis
whatever their size.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tilefarm.workload import TensorSpec, Workload

_WITHIN_WEIGHTS: Final = {"conv2d": 4, "qlinear_conv2d": 5}
"""Axes of weights behind the input blocks, by operator."""


def groups_of(workload: Workload) -> int:
    """Groups of a convolution, counted in blocks of channels; 1 if it does not say."""
    return workload.attr_int("groups") if "groups" in dict(workload.attrs) else 1


def is_depthwise(workload: Workload) -> bool:
    """Whether every output block reads the one input block at its own place."""
    groups, weight = groups_of(workload), workload.inputs[1]
    if workload.operator != "conv2d":
        return False
    planes = (workload.planes,) if workload.planes > 1 else ()
    return groups > 1 and weight.shape[:-4] == (groups, *planes, 1)


def by_group(workload: Workload) -> Workload:
    """The workload with an axis of groups, if it has groups that are larger than one block.

    Raises:
        ValueError: the groups do not divide the blocks of channels.
    """
    within = _WITHIN_WEIGHTS.get(workload.operator)
    if within is None:
        return workload
    groups = groups_of(workload)
    outputs, *_, inputs = workload.inputs[1].shape[:-within]
    of_data, of_out = (1 + (each > 1) for each in (workload.data_planes, workload.out_planes))
    blocks = workload.inputs[0].shape[of_data]
    if blocks != groups * inputs or outputs % groups:
        raise ValueError(
            f"{workload.name}: {groups} groups do not divide {blocks} input and"
            f" {outputs} output blocks into weights for {inputs}"
        )
    if groups == 1 or is_depthwise(workload):
        return workload
    first, *others = workload.inputs
    return replace(
        workload,
        inputs=(_split(first, of_data, groups), *(_parameter(each, groups) for each in others)),
        outputs=(_split(workload.outputs[0], of_out, groups),),
    )


def _parameter(spec: TensorSpec, groups: int) -> TensorSpec:
    if spec.name in ("unit", "weight_zero"):
        return spec
    return _split(spec, int(spec.name == "other"), groups)


def _split(spec: TensorSpec, axis: int, groups: int) -> TensorSpec:
    """The tensor with one axis as groups and what each has of it."""
    shape = spec.shape
    seen = (*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :])
    return replace(spec, shape=seen)
