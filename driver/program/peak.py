"""What a processor multiplies at most, measured on the device that runs the program."""

from __future__ import annotations

from typing import Final

from tilefarm.digest import Digest
from tilefarm.measurement import BufferSpec, DeviceClock, Measurement, Precision, Role, RunJob
from tilefarm.model import CPU
from tilefarm.target import Target

from compile_worker.codegen.peak import ENTRY, peak_object
from driver.farm.device_messages import Order, RunEnded

_PRECISION: Final = Precision(error=0.002, seconds=0.5)
"""It is the same loop over and over: what differs is what else the machine does."""


def peak_order(
    target: Target, run_id: str, number: int, precision: Precision = _PRECISION
) -> tuple[Order, int] | None:
    """A run of the dot-product instruction, and how many products a call makes on one core.

    None where the target is no processor, or one whose best instruction is not known.
    """
    if target.model.kind != CPU:
        return None
    made = peak_object(target.host)
    if made is None:
        return None
    operands = bytes(range(made.operands_nbytes))
    code, given = Digest.of(made.code), Digest.of(operands)
    job = RunJob(
        artifact=code,
        entry=ENTRY,
        buffers=(
            BufferSpec(name="operands", role=Role.INPUT, nbytes=len(operands), content=given),
            BufferSpec(name="sums", role=Role.OUTPUT, nbytes=made.sums_nbytes),
        ),
        precision=precision,
    )
    order = Order(
        number=number,
        job=job,
        blobs={code: made.code, given: operands},
        request_id=f"{run_id}-peak",
        clock=DeviceClock.SECONDS,
    )
    return order, made.products


def peak_macs_per_second(done: RunEnded, products: int, threads: int) -> float | None:
    """What the threads multiply at most, each as fast as one did; None if the run failed."""
    found = done.result
    if not isinstance(found, Measurement) or found.wall_time is None:
        return None
    return threads * products / found.wall_time.minimum_seconds
