"""Run the assembled program over data on the leased devices, and compare with the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.digest import Digest
from tilefarm.errors import InfraError, NoDeviceError, SettingsError
from tilefarm.measurement import Measurement, Status

from driver.campaign.job_runner import JobRunner
from driver.farm.device_messages import Order, RunEnded
from driver.program.model import NetworkProgram
from driver.program.parts import whole_batches

_RUN_SECONDS: Final = 10.0
"""About so long a run of several samples lasts: who watches sees it go on, and what a lost device
takes with it is soon done again."""
_MOST_SAMPLES: Final = 25
MOST_NBYTES: Final = 64 << 20
"""Of the inputs, and of the outputs, of one run; far below what a device takes as one blob."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRun:
    """What the devices answered: outputs [samples, ...] by name, and accelerator cycles a run."""

    outputs: Mapping[str, NDArray[Any]]
    cycles: tuple[int, ...]


def run_program(
    program: NetworkProgram,
    inputs: Mapping[str, NDArray[Any]],
    runner: JobRunner,
    *,
    limit_seconds: float,
    run_id: str,
    watch: Callable[[RunEnded, int], None] = lambda _done, _samples: None,
) -> ProgramRun:
    """Run all samples of `inputs` [samples, ...]; a last part that fills no batch is padded.

    Every device begins with one batch. What that takes says how many samples the runs behind it
    have.

    Args:
        limit_seconds: that a device may take for one batch.
        watch: sees every answer, with the number of its samples.

    Raises:
        SettingsError: a device refuses the program, or a batch takes longer than its limit.
        InfraError: the program itself failed on a device.
        NoDeviceError: no device says anything of it that can be; or see `JobRunner.run`.
        DeviceLostError: see `JobRunner.run`.
    """
    parts = _Parts(program, runner, limit_seconds, run_id, watch)
    samples = len(next(iter(inputs.values())))
    first = min(samples, runner.devices * program.batch)
    answers = parts.run(_between(inputs, 0, first), program.batch)
    if first < samples:
        seconds = max(answer.run_seconds for answer in answers)
        batches = max(1, int(_RUN_SECONDS / max(seconds, 1e-9)))
        most = min(batches * program.batch, _MOST_SAMPLES, _most_samples(program))
        answers += parts.run(_between(inputs, first, samples), most)
    return _joined(program, answers, samples)


@dataclass(slots=True)
class _Parts:
    """Parts of the samples as runs of a program."""

    program: NetworkProgram
    runner: JobRunner
    limit_seconds: float
    run_id: str
    watch: Callable[[RunEnded, int], None]
    runs: int = 0

    def run(self, inputs: Mapping[str, NDArray[Any]], most: int) -> list[Measurement]:
        """The answers for these samples, at most so many a run."""
        chunks = list(whole_batches(inputs, self.program.batch, most))
        sizes = [len(next(iter(chunk.values()))) for chunk in chunks]
        orders = [
            Order(
                number=0,
                job=self.program.run_job(
                    chunk, timeout_seconds=self.limit_seconds * size / self.program.batch
                ),
                blobs=self.program.blobs(chunk),
                request_id=f"{self.run_id}-network-{self.runs + index}",
                bounds=self.program.bounds,
            )
            for index, (chunk, size) in enumerate(zip(chunks, sizes, strict=True))
        ]
        self.runs += len(orders)
        answers = self.runner.run(orders, lambda done: self.watch(done, sizes[done.number - 1]))
        return [good_answer(done) for done in answers]


def _between(inputs: Mapping[str, NDArray[Any]], begin: int, end: int) -> dict[str, NDArray[Any]]:
    return {name: values[begin:end] for name, values in inputs.items()}


def _most_samples(program: NetworkProgram) -> int:
    """So many samples that inputs and outputs of a run stay small."""
    largest = max(p.nbytes for p in (*program.inputs, *program.outputs))
    return max(1, MOST_NBYTES // largest) * program.batch


def good_answer(done: RunEnded) -> Measurement:
    """What a device measured.

    Raises:
        SettingsError, InfraError, NoDeviceError: it failed, see `run_program`.
    """
    failure = done.result
    if isinstance(failure, Measurement):
        return failure
    if done.is_implausible:
        raise NoDeviceError(f"no device that can be believed: {failure.why}", _IMPLAUSIBLE)
    what = f"the program failed on {done.device}: {failure.status.value}: {failure.why}"
    if hint := _REMEDIES.get(failure.status):
        raise SettingsError(what, hint)
    raise InfraError(what)


_IMPLAUSIBLE: Final = "another device; have its owner look at what counts there"
_REMEDIES: Final[Mapping[Status, str]] = {
    Status.RESOURCE_EXCEEDED: "a device with more room, a smaller network, or a smaller batch:"
    " --shape",
    Status.RUN_TIMEOUT: "more time for a sample: --run-timeout; a faster device, or fewer at a"
    " time on this machine: --devices",
}
"""What a user can do about it, where that is not a fault of the program."""


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


def answers_digest(outputs: Mapping[str, NDArray[Any]]) -> Digest:
    """The digest of all answers, bit for bit."""
    return Digest.of_json(
        [
            [name, list(values.shape), Digest.of(np.ascontiguousarray(values).tobytes()).hex]
            for name, values in sorted(outputs.items())
        ]
    )


def differing_samples(
    ours: Mapping[str, NDArray[Any]], reference: Mapping[str, NDArray[Any]]
) -> int:
    """How many samples have an output that is not bit for bit the reference's; NaN is NaN.

    Which of its bits a NaN has is for each processor to say.
    """
    samples = len(next(iter(reference.values())))
    wrong = np.zeros(samples, bool)
    for name, wanted in reference.items():
        mine, theirs = (
            np.ascontiguousarray(values, np.float32).reshape(samples, -1)
            for values in (ours[name], wanted)
        )
        are_nan = np.isnan(mine) & np.isnan(theirs)
        differs = mine.view(np.int32) != theirs.view(np.int32)
        wrong |= (differs & ~are_nan).any(axis=1)
    return int(wrong.sum())
