"""Where `tilefarm check` runs steps and programs: in the sandbox here, or on devices of a farm."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from numpy.typing import NDArray
from tilefarm.clock import Clock
from tilefarm.digest import Digest
from tilefarm.measurement import Measurement, RunFailure, RunJob
from tilefarm.names import RandomIds
from tilefarm.target import Target

from device_server.runner.runner import Runner
from driver.campaign.job_runner import JobRunner
from driver.farm.device_messages import Order
from driver.farm.run_resources import Folders, RunResources
from driver.farm.settings import FarmSettings
from driver.program.evaluate import ProgramRun, run_program
from driver.program.model import NetworkProgram
from driver.program.simulated import answers_of

Results: TypeAlias = Generator[Measurement | RunFailure, None, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepJob:
    """One step to run, with the kernel and the operands that its job names."""

    job: RunJob
    blobs: Mapping[Digest, bytes]


class StepExecutor(Protocol):
    """Runs what `check` compares with the reference."""

    def steps(self, jobs: Iterable[StepJob]) -> Results:
        """What becomes of each, in their order."""
        ...

    def answers(self, program: NetworkProgram, inputs: Mapping[str, NDArray[Any]]) -> ProgramRun:
        """The program's outputs for float32 inputs [samples, ...] in whole batches.

        Raises:
            TilefarmError: it does not run.
        """
        ...


class SandboxExecutor:
    """The sandbox of this machine, with the simulator: a step is run when it is asked for."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def steps(self, jobs: Iterable[StepJob]) -> Results:
        with (
            tempfile.TemporaryDirectory(prefix="tilefarm-check-") as folder,
            Runner(target=self._target) as runner,
        ):

            def lies(digest: Digest) -> Path:
                return Path(folder) / digest.hex

            for step in jobs:
                for digest, content in step.blobs.items():
                    lies(digest).write_bytes(content)
                yield runner.run(step.job, lies)
                for digest in step.blobs:
                    lies(digest).unlink()

    def answers(self, program: NetworkProgram, inputs: Mapping[str, NDArray[Any]]) -> ProgramRun:
        return answers_of(program, inputs)


class DeviceExecutor:
    """Devices that are leased; all steps that are there are asked for at once."""

    def __init__(self, runner: JobRunner, limit_seconds: float) -> None:
        self._runner = runner
        self._limit_seconds = limit_seconds
        self._run_id = RandomIds().fresh("check")
        self._asked = 0

    def steps(self, jobs: Iterable[StepJob]) -> Results:
        orders = []
        for step in jobs:
            self._asked += 1
            request = f"{self._run_id}-step-{self._asked}"
            orders.append(Order(number=0, job=step.job, blobs=step.blobs, request_id=request))
        for ended in self._runner.run(orders) if orders else ():
            yield ended.result

    def answers(self, program: NetworkProgram, inputs: Mapping[str, NDArray[Any]]) -> ProgramRun:
        return run_program(
            program, inputs, self._runner, limit_seconds=self._limit_seconds, run_id=self._run_id
        )


@contextmanager
def on_devices(
    settings: FarmSettings, target: Target, folder: Path, clock: Clock
) -> Iterator[DeviceExecutor]:
    """Devices as `settings` say, for as long as the block lasts; scratch and logs in the folder.

    Raises:
        TilefarmError: they cannot be had.
    """
    folders = Folders(scratch=folder, log=folder)
    with RunResources(
        settings, target, folders, owner="check", clock=clock, compile_workers=False
    ) as resources:
        runner = JobRunner(
            resources.leases,
            devices=settings.devices,
            wait_seconds=settings.device_wait_seconds,
            clock=clock,
        )
        yield DeviceExecutor(runner, settings.run_timeout_seconds)
