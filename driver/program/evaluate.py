"""Run the assembled program over data on the leased devices, and compare with the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.errors import InfraError
from tilefarm.measurement import Measurement, RunFailure

from driver.farm.device_messages import Done, Order
from driver.farm.errands import Errands
from driver.program.model import NetworkProgram
from driver.program.parts import whole_batches

_CHUNK_SAMPLES: Final = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRun:
    """What the devices answered: outputs [samples, ...] by name, and accelerator cycles a run."""

    outputs: Mapping[str, NDArray[Any]]
    cycles: tuple[int, ...]


def run_program(
    program: NetworkProgram,
    inputs: Mapping[str, NDArray[Any]],
    errands: Errands,
    *,
    seconds_per_sample: float,
    run_id: str,
) -> ProgramRun:
    """Run all samples of `inputs` [samples, ...]; a last part that fills no batch is padded.

    Raises:
        InfraError: the program itself failed on a device.
        DeviceLostError, NoDeviceError: see `Errands.run`.
    """
    orders = [
        Order(
            number=0,
            job=program.run_job(chunk, seconds_per_sample=seconds_per_sample),
            blobs=program.blobs(chunk),
            request_id=f"{run_id}-network-{index}",
        )
        for index, chunk in enumerate(whole_batches(inputs, program.batch, _CHUNK_SAMPLES))
    ]
    answers = [_good(done) for done in errands.run(orders)]
    return _joined(program, answers, len(next(iter(inputs.values()))))


def _good(done: Done) -> Measurement:
    if isinstance(done.result, RunFailure):
        failure = done.result
        raise InfraError(
            f"the assembled program failed on {done.device}: {failure.status.value}: {failure.why}"
        )
    return done.result


def _joined(program: NetworkProgram, answers: Sequence[Measurement], samples: int) -> ProgramRun:
    parts: dict[str, list[bytes]] = {o.name: [] for o in program.outputs}
    for answer in answers:
        for name, content in answer.outputs:
            parts[name].append(content)
    outputs = {
        o.name: np.frombuffer(b"".join(parts[o.name]), np.float32).reshape(-1, *o.shape[1:])
        for o in program.outputs
    }
    return ProgramRun(
        outputs={name: values[:samples] for name, values in outputs.items()},
        cycles=tuple(c for answer in answers for c in answer.sample_cycles),
    )


def differing_samples(
    ours: Mapping[str, NDArray[Any]], reference: Mapping[str, NDArray[Any]]
) -> int:
    """How many samples have an output that is not bit for bit the reference's."""
    samples = len(next(iter(reference.values())))
    wrong = np.zeros(samples, bool)
    for name, wanted in reference.items():
        mine = np.ascontiguousarray(ours[name], np.float32).view(np.int32).reshape(samples, -1)
        theirs = np.ascontiguousarray(wanted, np.float32).view(np.int32).reshape(samples, -1)
        wrong |= (mine != theirs).any(axis=1)
    return int(wrong.sum())
