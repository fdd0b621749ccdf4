"""Runs a program layer by layer on a device, and compares what the layers take with predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from numpy.typing import NDArray
from tilefarm.errors import InfraError, ModelError
from tilefarm.measurement import CallTime, DeviceClock, Measurement, Precision

from driver.campaign.job_runner import JobRunner
from driver.farm.device_messages import Order
from driver.program.evaluate import good_answer
from driver.program.model import NetworkProgram
from driver.program.parts import whole_batches
from driver.program.peak import peak_macs_per_second, peak_order
from driver.report.profile import LayerTime, Profile, cost_of

_PRECISION: Final = Precision(error=0.005, seconds=2.0)
"""By a host's clock: some thousand calls of most layers."""


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
    job = replace(
        program.run_job(
            batch,
            timeout_seconds=limit_seconds,
            precision=_PRECISION if by_clock else None,
        ),
        profile=tuple(call.entry for call in program.calls),
    )
    order = Order(
        number=0,
        job=job,
        blobs=program.blobs(batch),
        request_id=f"{run_id}-network-profile",
        clock=DeviceClock.SECONDS if by_clock else DeviceClock.CYCLES,
        bounds=program.bounds,
    )
    peak = peak_order(program.target, run_id, 1) if by_clock else None
    # One after the other on one device: beside each other they would share what is measured.
    done, *others = runner.run([order] if peak is None else [order, peak[0]], at_most=1)
    profile = profile_of(program, good_answer(done))
    if peak is None or others[0].device != done.device:
        return profile
    threads = program.target.model.threads
    return replace(profile, peak=peak_macs_per_second(others[0], peak[1], threads))


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
    return Profile(layers=layers, network=network, mhz=mhz)
