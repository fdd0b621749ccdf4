"""Times a program in rounds on a device, with a control; see `driver/report/rounds.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from numpy.typing import NDArray
from tilefarm.errors import InfraError
from tilefarm.measurement import DeviceClock, Precision

from driver.campaign.job_runner import JobRunner
from driver.farm.device_messages import Order, RunEnded
from driver.program.evaluate import good_answer
from driver.program.model import NetworkProgram
from driver.program.parts import whole_batches
from driver.program.peak import peak_order
from driver.report.rounds import Round, RoundsTime, rounds_time

ROUNDS: Final = 20
"""The noise of a ratio falls with their square root; so many take a few seconds."""
ROUND: Final = Precision(error=0.005, seconds=0.25)
"""Of one time of a round: a machine is not the same for longer."""


def timed_in_rounds(
    program: NetworkProgram,
    inputs: Mapping[str, NDArray[Any]],
    runner: JobRunner,
    *,
    limit_seconds: float,
    run_id: str,
) -> tuple[RoundsTime, RoundsTime] | None:
    """The first batch of `inputs` [samples, ...] through a program, on one device, twice.

    None where the device was another one in the end. The control is the loop of dot products that
    tells a processor's peak; beside an accelerator there is none.

    Raises:
        SettingsError, InfraError, DeviceLostError, NoDeviceError: see `evaluate.run_program`.
    """
    batch = next(whole_batches(inputs, program.batch, program.batch))
    timed = Order(
        number=0,
        job=program.run_job(batch, timeout_seconds=limit_seconds, precision=ROUND),
        blobs=program.blobs(batch),
        request_id=f"{run_id}-program",
        clock=DeviceClock.SECONDS,
        bounds=program.bounds,
    )
    control = peak_order(program.target, run_id, 0, ROUND)
    each = [timed] if control is None else [control[0], timed]
    orders = [
        replace(order, number=number, request_id=f"{order.request_id}-round-{number}")
        for number, order in enumerate(each * (2 * ROUNDS))
    ]
    code = "" if control is None else control[0].job.artifact.hex
    # One after the other on one device: beside each other they would share what is measured.
    ended = runner.run(orders, at_most=1)
    if len({each.device for each in ended}) > 1:
        return None
    rounds = list(_rounds(list(map(_seconds, ended)), has_control=bool(code)))
    return rounds_time(rounds[:ROUNDS], code), rounds_time(rounds[ROUNDS:], code)


def _rounds(seconds: Sequence[float], *, has_control: bool) -> Iterator[Round]:
    if not has_control:
        yield from map(Round, seconds)
        return
    for control, program in zip(seconds[::2], seconds[1::2], strict=True):
        yield Round(program, control)


def _seconds(ended: RunEnded) -> float:
    time = good_answer(ended).wall_time
    if time is None:
        raise InfraError(f"device {ended.device} times nothing")
    return time.median_seconds
