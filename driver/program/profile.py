"""Runs a program layer by layer on a device, and compares what the layers take with predictions.

An accelerator counts its own cycles alone: what its host does between them is timed by a second
run, of these layers without the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from numpy.typing import NDArray
from tilefarm.errors import InfraError, ModelError
from tilefarm.measurement import CallTime, DeviceClock, Measurement, Precision, Role, RunJob

from driver.campaign.job_runner import JobRunner
from driver.farm.device_messages import Order
from driver.program.evaluate import good_answer
from driver.program.model import LayerCall, NetworkProgram
from driver.program.parts import whole_batches
from driver.program.peak import peak_macs_per_second, peak_order
from driver.report.profile import LayerTime, Profile, cost_of

PRECISION: Final = Precision(error=0.005, seconds=2.0)
"""By a host's clock: some thousand calls of most layers."""
_HOST_PRECISION: Final = Precision(error=0.02, seconds=0.25)
"""Of the host's layers beside an accelerator, which take microseconds each."""


def require_entries(program: NetworkProgram) -> None:
    """Raises ModelError if the program was assembled before programs had entries for layers."""
    if not program.calls:
        raise ModelError(
            f"program {program.name} is of an older version: it has no entries for its layers",
            "the `tilefarm tune` that made it assembles it anew, and measures nothing twice",
        )


def profiled(
    program: NetworkProgram,
    inputs: Mapping[str, NDArray[Any]],
    runner: JobRunner,
    *,
    by_clock: bool,
    limit_seconds: float,
    run_id: str,
) -> Profile:
    """The profile of the first batch of `inputs` [samples, ...], on one device; where that is a
    processor, beside the most that it multiplies.

    Args:
        by_clock: the devices count no cycles.
        limit_seconds: that a device may take for one batch.

    Raises:
        ModelError: the program has no entries for its layers.
        SettingsError, InfraError, DeviceLostError, NoDeviceError: see `evaluate.run_program`.
    """
    require_entries(program)
    batch = next(whole_batches(inputs, program.batch, program.batch))
    order = Order(
        number=0,
        job=layers_job(
            program,
            batch,
            timeout_seconds=limit_seconds,
            precision=PRECISION if by_clock else None,
        ),
        blobs=program.blobs(batch),
        request_id=f"{run_id}-network-profile",
        clock=DeviceClock.SECONDS if by_clock else DeviceClock.CYCLES,
        bounds=program.bounds,
    )
    peak = peak_order(program.target, run_id, 1) if by_clock else None
    # One after the other on one device: beside each other they would share what is measured.
    done, *others = runner.run([order] if peak is None else [order, peak[0]], at_most=1)
    profile = profile_of(program, good_answer(done))
    if not by_clock:
        return _with_host_layers(program, batch, runner, profile, limit_seconds, run_id)
    if peak is None or others[0].device != done.device:
        return profile
    threads = program.target.model.threads
    return replace(profile, peak=peak_macs_per_second(others[0], peak[1], threads))


def layers_job(
    program: NetworkProgram,
    batch: Mapping[str, NDArray[Any]],
    *,
    timeout_seconds: float,
    precision: Precision | None = None,
) -> RunJob:
    """Run a batch, then all layers one after the other, each timed by itself."""
    return replace(
        program.run_job(batch, timeout_seconds=timeout_seconds, precision=precision),
        profile=tuple(call.entry for call in program.calls),
    )


def host_layers_job(
    program: NetworkProgram,
    batch: Mapping[str, NDArray[Any]],
    calls: Sequence[LayerCall],
    *,
    timeout_seconds: float,
) -> RunJob:
    """Time layers of the host by the clock. Nothing looks at what they make: without the layers
    between them that are integers of no meaning, over which a kernel takes as long as over others.
    """
    job = program.run_job(batch, timeout_seconds=timeout_seconds, precision=_HOST_PRECISION)
    buffers = tuple(
        replace(each, role=Role.SCRATCH, fetch=False) if each.role is Role.OUTPUT else each
        for each in job.buffers
    )
    entries = tuple(call.entry for call in calls)
    return replace(job, entry=entries[0], buffers=buffers, profile=entries)


def with_host_layers(profile: Profile, measured: Measurement) -> Profile:
    """A profile in cycles with the times of the layers without any, in their order."""
    times = iter(measured.profile)
    layers = tuple(
        replace(layer, took=replace(layer.took, wall_time=next(times).wall_time))
        if layer.cost is None
        else layer
        for layer in profile.layers
    )
    return replace(profile, layers=layers)


def host_calls(program: NetworkProgram, profile: Profile) -> list[LayerCall]:
    """The calls for which the accelerator counts nothing: they are its host's."""
    rows = zip(program.calls, profile.layers, strict=True)
    return [call for call, layer in rows if layer.cost is None]


def _with_host_layers(
    program: NetworkProgram,
    batch: Mapping[str, NDArray[Any]],
    runner: JobRunner,
    profile: Profile,
    limit_seconds: float,
    run_id: str,
) -> Profile:
    """With what the layers of the host take; without, where the host was too busy to time them."""
    calls = host_calls(program, profile)
    if not calls:
        return profile
    order = Order(
        number=0,
        job=host_layers_job(program, batch, calls, timeout_seconds=limit_seconds),
        blobs=program.blobs(batch),
        request_id=f"{run_id}-network-host-profile",
    )
    (done,) = runner.run([order])
    found = done.result
    if not isinstance(found, Measurement) or len(found.profile) != len(calls):
        return profile
    return with_host_layers(profile, found)


def profile_of(program: NetworkProgram, measured: Measurement) -> Profile:
    """The profile in a measurement of all of the program's call entries.

    Raises:
        InfraError: the device times no layers.
    """
    if len(measured.profile) != len(program.calls):
        raise InfraError(
            f"device {measured.device} is of an older version: it does not time layers",
            "a newer device, or `tilefarm run` without --tracker",
        )
    rows = list(zip(program.calls, measured.profile, strict=True))
    known = [
        (cost, call.predicted_cycles)
        for call, took in rows
        if call.predicted_cycles and (cost := cost_of(took))
    ]
    network = CallTime(cycles=measured.cycles, wall_time=measured.wall_time)
    total = sum(cost_of(took) or 0.0 for _, took in rows)
    if measured.cycles is not None:
        mhz, costs_a_cycle = None, 1.0
    elif program.target.board.clock_mhz:
        mhz = float(program.target.board.clock_mhz)
        costs_a_cycle = 1e-6 / mhz
    elif known:
        costs_a_cycle = sum(cost for cost, _ in known) / sum(cycles for _, cycles in known)
        mhz = 1e-6 / costs_a_cycle
    else:
        mhz, costs_a_cycle = None, 0.0
    layers = tuple(
        LayerTime(
            layer=call.layer,
            kernel=call.kernel,
            entry=call.entry,
            predicted_cycles=call.predicted_cycles,
            macs=call.macs,
            took=took,
            share=cost / total if (cost := cost_of(took)) else None,
            ratio=cost / (call.predicted_cycles * costs_a_cycle)
            if cost and call.predicted_cycles
            else None,
        )
        for call, took in rows
    )
    return Profile(layers=layers, network=network, mhz=mhz, device=measured.device)
