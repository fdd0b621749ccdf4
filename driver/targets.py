"""Targets as the user names them: which there is code for, and which can be simulated here."""

from __future__ import annotations

import platform
from typing import Final

from tilefarm.errors import TargetError
from tilefarm.machine import VTA
from tilefarm.model import CPU
from tilefarm.processors import lacking_here, require_cores
from tilefarm.target import TARGETS, Target, load_target

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
    if target.model.kind not in (VTA, CPU):
        reasons.append(f"machine.kind: {target.model.kind!r}, and devices here are {VTA} or {CPU}")
    if target.lanes.block == 1 and target.model.kind == VTA:
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
            "`tilefarm targets --show sim`, or `--show cpu`, prints a target that can be used",
        )
    return target


def accelerated_target(name_or_path: str, *, on_processors: str = "") -> Target:
    """The target as `usable_target`, if it has an accelerator.

    Args:
        on_processors: the command that does the like for a processor, if there is one.

    Raises:
        TargetError: as `usable_target`, or it has none.
    """
    target = usable_target(name_or_path)
    if not target.has_accelerator:
        instead = f"for a processor `{on_processors}`; " if on_processors else ""
        raise TargetError(
            f"{target.name}: this target has no accelerator, and the command is about one",
            f"{instead}--target {', '.join(TARGETS)}, or a .json file of one",
        )
    return target


def playable_target(name_or_path: str) -> Target:
    """The target as `usable_target`, if this machine can run its programs.

    Raises:
        TargetError: as `usable_target` and `require_playable`.
    """
    target = usable_target(name_or_path)
    require_playable(target)
    return target


def simulated_target(name_or_path: str, *, on_processors: str = "") -> Target:
    """The target as `accelerated_target`, if this machine can simulate it.

    Raises:
        TargetError: as `accelerated_target` and `require_playable`.
    """
    target = accelerated_target(name_or_path, on_processors=on_processors)
    require_playable(target)
    return target


def require_playable(target: Target) -> None:
    """Refuse a target whose kernels this machine cannot run, alone or beside the simulator.

    Raises:
        TargetError: its host is another processor than this machine's, can do more, or computes
            with more threads than this process may have cores.
    """
    require_cores(target)
    theirs, ours = target.host.triple.partition("-")[0], platform.machine()
    if _family(theirs) == _family(ours):
        lacking = lacking_here(target.host)
        if not lacking:
            return
        raise TargetError(
            f"{target.name}: its host has {', '.join(lacking)}, which this machine lacks",
            "--target cpu, or --tracker with a device of that target",
        )
    twin = TARGETS.get(f"sim-{target.name}")
    instead = "what `tilefarm targets --show` prints of it, without the section host"
    if twin:
        instead = f"--target {twin.name}, the same accelerator beside an x86-64 host"
    elif not target.has_accelerator:
        instead = "--target cpu for the processor that is here"
    raise TargetError(
        f"{target.name}: its host is {theirs}, and devices of this run are here, on {ours}",
        f"{instead}, or --tracker with a device of that target",
    )


def _family(processor: str) -> str:
    """Processors that run one another's code have one name."""
    return "arm" if processor.startswith("armv7") else processor
