"""Targets as the user names them, with a host that there is code for."""

from __future__ import annotations

from tilefarm.errors import TargetError
from tilefarm.target import Target, load_target

from compile_worker.codegen.hosts import check_host


def usable_target(name_or_path: str) -> Target:
    """The target of that name or file, as `load_target`, if kernels can be compiled for its host.

    Raises:
        TargetError: as `load_target`, or no code can be made for the host; lists every reason.
    """
    target = load_target(name_or_path)
    reasons = check_host(target.host)
    if reasons:
        raise TargetError(
            f"{name_or_path}: " + "; ".join(reasons),
            "`tilefarm targets --show sim` prints a host that is known",
        )
    return target
