"""What the steps of a network take, in nanoseconds: as the program's profile tells, as the kernel's
best trial tells, or by a model where nothing was measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, Final

from tilefarm.digest import Digest
from tilefarm.documents import read_json
from tilefarm.errors import DataError
from tilefarm.measurement import DeviceClock, Trial
from tilefarm.target import Target

from compile_worker.space import lower_bound_cycles
from driver.network import Network, NetworkStep
from driver.report.profile import Profile
from driver.report.profile_rows import profile_document
from driver.report.step_times import Basis, StepTime
from tuner.trial_store import TrialStore

ASSUMED_MHZ: Final = 100
"""An accelerator's clock where its target names no board: that of the boards it is built for."""

_CALL_NANOSECONDS: Final = (1000.0, 50.0)
"""Of a call that does next to nothing, as a profile tells it: beside an accelerator it is timed by
itself, on a processor alone among many.
"""
_ELEMENT_NANOSECONDS: Final = (1.0, 0.1)
"""Of a step of the processor, by what it makes: without vectors beside an accelerator."""
_MACS_PER_NANOSECOND: Final = 100.0
"""Of a searched kernel on a processor: a fifth of what one core with dot products multiplies."""
_AGAIN: Final = "the same `tilefarm tune` once more writes it anew, and measures nothing twice"
_HINT: Final = "the folder that `tilefarm tune` of this network and target wrote"


def clock_mhz(target: Target) -> int:
    """The accelerator's clock: the board's, or an assumed one."""
    return target.board.clock_mhz or ASSUMED_MHZ


def modelled_times(network: Network) -> dict[str, StepTime]:
    """The least cycles of the accelerator's steps; of the processor's, by what they make."""
    return {step.name: _exact(Basis.MODEL, _modelled(step, network)) for step in network.steps}


def kernel_times(network: Network, folder: Path) -> dict[str, StepTime]:
    """Of all steps whose workload has a good trial in a run's folder.

    Raises:
        DataError: it is no such folder, or that of a run for another target.
    """
    folder = run_folder(folder)
    _require_target(folder, network.target)
    clock = DeviceClock.CYCLES if network.target.has_accelerator else DeviceClock.SECONDS
    with TrialStore(folder / "records.sqlite", read_only=True) as store:
        best = {work: store.best(work.digest, clock) for work, _ in network.workloads()}
    return {
        step.name: trial_time(trial, network.target)
        for step in network.steps
        if (trial := best.get(step.workload)) is not None
    }


def program_times(network: Network, folder: Path) -> dict[str, StepTime]:
    """Of all steps that the profile of a run's program tells; none where the run made none.

    Raises:
        DataError: it is no such folder, or that of a run for another target.
    """
    folder = run_folder(folder)
    _require_target(folder, network.target)
    file = folder / "summary.json"
    try:
        profile = read_json(file)["profile"] if file.exists() else None
        kernels = {step.name: step.workload.name for step in network.steps}
        return {
            row["layer"]: found
            for row in (profile["layers"] if profile else ())
            if kernels.get(row["layer"]) == row["kernel"]
            and (found := profiled_time(row, network.target)) is not None
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file}: damaged: {error}", _AGAIN) from None


def profile_times(profile: Profile, target: Target) -> dict[str, StepTime]:
    """Of all steps that a profile tells."""
    rows = profile_document(profile)["layers"]
    found = {row["layer"]: profiled_time(row, target) for row in rows}
    return {name: time for name, time in found.items() if time is not None}


def profiled_time(row: Mapping[str, Any], target: Target) -> StepTime | None:
    """The time in a row of a profile's document, see `driver.report.profile_rows`."""
    if row.get("cycles"):
        return _exact(Basis.PROGRAM, row["cycles"] * 1000 / clock_mhz(target))
    if not row.get("median_seconds"):
        return None
    return StepTime(
        basis=Basis.PROGRAM,
        median=1e9 * row["median_seconds"],
        p10=1e9 * row["p10_seconds"],
        p90=1e9 * row["p90_seconds"],
    )


def refitted(
    model: Mapping[str, StepTime], measured: Mapping[str, StepTime]
) -> dict[str, StepTime]:
    """Measured times, and those of a model for all other steps, scaled as it was off for these."""
    ratios = [
        measured[name].median / each.median
        for name, each in model.items()
        if name in measured and each.basis is Basis.MODEL
    ]
    scale = median(ratios) if ratios else 1.0
    return {
        name: measured.get(name) or (_scaled(each, scale) if each.basis is Basis.MODEL else each)
        for name, each in model.items()
    }


def run_folder(folder: Path) -> Path:
    """The folder of a run, given that or its program's.

    Raises:
        DataError: it is neither.
    """
    for each in (folder, folder.absolute().parent):
        if (each / "records.sqlite").is_file() and (each / "run.json").is_file():
            return each
    raise DataError(f"{folder}: no records of a run", _HINT)


def _require_target(folder: Path, target: Target) -> None:
    file = folder / "run.json"
    try:
        theirs = Digest(read_json(file)["target_digest"])
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"{file}: not a file that tilefarm wrote", _HINT) from None
    if theirs != target.digest:
        raise DataError(f"{folder}: records of another target than {target.name}", "--target")


def _modelled(step: NetworkStep, network: Network) -> float:
    if network.target.has_accelerator and step.place == "accelerator":
        cycles = lower_bound_cycles(step.workload, network.target)
        return cycles * 1000 / clock_mhz(network.target)
    made = sum(math.prod(network.tensors[name].shape) for name in step.outputs)
    alone = int(not network.target.has_accelerator)
    if network.is_searched(step):
        return _CALL_NANOSECONDS[alone] + step.macs / _MACS_PER_NANOSECOND
    return _CALL_NANOSECONDS[alone] + max(step.macs, made) * _ELEMENT_NANOSECONDS[alone]


def trial_time(trial: Trial, target: Target) -> StepTime:
    """What a good trial took, as a kernel alone."""
    if trial.cycles:
        return _exact(Basis.KERNEL, trial.cycles * 1000 / clock_mhz(target))
    time = trial.wall_time
    assert time is not None, "a best trial has a cost"
    return StepTime(
        basis=Basis.KERNEL,
        median=1e9 * time.median_seconds,
        p10=1e9 * time.p10_seconds,
        p90=1e9 * time.p90_seconds,
    )


def _exact(basis: Basis, nanoseconds: float) -> StepTime:
    return StepTime(basis=basis, median=nanoseconds, p10=nanoseconds, p90=nanoseconds)


def _scaled(each: StepTime, scale: float) -> StepTime:
    return replace(each, median=each.median * scale, p10=each.p10 * scale, p90=each.p90 * scale)
