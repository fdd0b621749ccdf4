"""Targets as the user names them, which there is code for."""

from __future__ import annotations

from typing import Final

from tilefarm.errors import TargetError
from tilefarm.target import Target, load_target

from compile_worker.codegen.hosts import check_host

_RECORDED_DISTANCE: Final = 3


def usable_target(name_or_path: str) -> Target:
    """The target of that name or file, as `load_target`, if kernels can be compiled for it.

    Raises:
        TargetError: as `load_target`, or no code can be made for the host, biases have no room in
            vectors of one lane, or VTA's runtime would refuse the kernels; lists every reason.
    """
    target = load_target(name_or_path)
    reasons = list(check_host(target.host))
    if target.vta.log_block == 0:
        reasons.append("vta.log_block: 0, but kernels need vectors of at least two lanes")
    if target.limits.acc_distance < _RECORDED_DISTANCE:
        reasons.append(
            f"limits.acc_distance: {target.limits.acc_distance}, but VTA's runtime records no"
            f" kernel that writes an accumulator again before the micro-op {_RECORDED_DISTANCE}"
            " places on"
        )
    if reasons:
        raise TargetError(
            f"{name_or_path}: " + "; ".join(reasons),
            "`tilefarm targets --show sim` prints a target that can be used",
        )
    return target
