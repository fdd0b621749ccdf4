"""Search spaces of the processor: what may be chosen for the kernels that take most of its time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tilefarm.target import Target
from tilefarm.workload import Workload

from compile_worker.draft import Emptied
from compile_worker.errors import SpaceError
from compile_worker.generated import Generated
from compile_worker.machines.cpu.space.convolution import convolution_space
from compile_worker.machines.cpu.space.dense import dense_space, is_dense
from compile_worker.machines.cpu.space.depthwise import depthwise_space
from compile_worker.machines.cpu.space.matmul import matmul_space
from compile_worker.machines.cpu.space.scripts import script_space
from compile_worker.machines.cpu.space.transposed import transposed_space
from compile_worker.machines.cpu.space.winograd import winograd_space


def _dense_or_not(workload: Workload, target: Target) -> Generated:
    space = dense_space if is_dense(workload) else convolution_space
    return space(workload, target)


_SPACES: Final[Mapping[str, Callable[[Workload, Target], Generated | None]]] = {
    "qlinear_conv2d": _dense_or_not,
    "qlinear_depthwise2d": depthwise_space,
    "qlinear_conv2d_transpose": transposed_space,
    "qlinear_matmul": matmul_space,
    "qlinear_winograd2d": winograd_space,
    "script": script_space,
}


def cpu_space(workload: Workload, target: Target) -> Generated | None:
    """The search space of a workload on the processor; None where there is nothing to choose.

    Raises:
        SpaceError: not one choice is valid; says which constraint is to blame.
    """
    space = _SPACES.get(workload.operator)
    if space is None:
        return None
    try:
        return space(workload, target)
    except Emptied as emptied:
        raise SpaceError(workload.name, target.name, *emptied.args) from None
