"""How much a kernel's times differ on this machine, measured in rounds as a night measures.

Every time is taken in a fresh process, as every night has its own: memory lies elsewhere, the core
has another temperature. Right before it runs the control: the loop of dot products that tells a
processor's peak.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilefarm.artifact import CompileJob
from tilefarm.digest import Digest
from tilefarm.errors import InfraError
from tilefarm.measurement import BufferSpec, Measurement, Role, RunJob
from tilefarm.target import Target
from tilefarm.trace import Trace

from compile_worker.codegen.peak import ENTRY, peak_object
from compile_worker.compiler import lowered
from compile_worker.emit import kernel_object
from compile_worker.machines.cpu.space import cpu_space
from device_server.runner.runner import Runner
from driver.benchmarks.cpu_operators import OPERATORS
from driver.network import sample_inputs
from driver.program.rounds import ROUND, ROUNDS
from driver.report.rounds import Round, rounds_time

_TIMEOUT_SECONDS: Final = 60.0
_OPERATOR: Final = "conv2d"
"""What networks spend their time with."""

_Kept = Callable[[bytes], Digest]


@dataclass(frozen=True, slots=True)
class MeasuredNoise:
    """Rounds one after the other; what a night measures is any run of them.

    Attributes:
        with_control: ln of the ratio that a night's rounds give, from each round on.
        without: ln of their median's seconds.
    """

    with_control: Sequence[float]
    without: Sequence[float]

    @classmethod
    def of(cls, rounds: Sequence[Round]) -> MeasuredNoise:
        """Every run of a night's rounds that these hold."""
        nights = [
            rounds_time(rounds[begin : begin + ROUNDS]) for begin in range(len(rounds) - ROUNDS + 1)
        ]
        return cls(
            with_control=[math.log(each.relative) for each in nights],
            without=[math.log(each.seconds) for each in nights],
        )


def measured_rounds(target: Target, count: int) -> Iterator[Round]:
    """So many rounds of a convolution on this machine.

    Raises:
        InfraError: it cannot be timed here.
    """
    with tempfile.TemporaryDirectory(prefix="tilefarm-bench-") as name:
        folder = Path(name)

        def kept(content: bytes) -> Digest:
            digest = Digest.of(content)
            Path(folder, digest.hex).write_bytes(content)
            return digest

        control, kernel = _control(target, kept), _kernel(target, kept)
        for _ in range(count):
            before = _seconds(control, target, folder)
            yield Round(seconds=_seconds(kernel, target, folder), control=before)


def _control(target: Target, kept: _Kept) -> RunJob:
    made = peak_object(target.host)
    if made is None:
        raise InfraError("no dot product is known for this processor, which could be the control")
    operands = bytes(range(made.operands_nbytes))
    operand = BufferSpec(
        name="operands", role=Role.INPUT, nbytes=len(operands), content=kept(operands)
    )
    sums = BufferSpec(name="sums", role=Role.OUTPUT, nbytes=made.sums_nbytes)
    return _job(kept(made.code), ENTRY, operand, sums)


def _kernel(target: Target, kept: _Kept) -> RunJob:
    workload = OPERATORS[_OPERATOR]()
    space = cpu_space(workload, target)
    trace = Trace() if space is None else space.trace(space.default)
    job = CompileJob(workload=workload, trace=trace, target=target)
    inputs = [
        BufferSpec(
            name=name,
            role=Role.INPUT,
            nbytes=values.nbytes,
            content=kept(values.tobytes()),
        )
        for name, values in sample_inputs(workload, seed=0).items()
    ]
    outputs = [
        BufferSpec(name=spec.name, role=Role.OUTPUT, nbytes=spec.nbytes)
        for spec in workload.outputs
    ]
    code = kernel_object(lowered(job), job.symbol, target)
    return _job(kept(code), job.symbol, *inputs, *outputs)


def _job(code: Digest, entry: str, *buffers: BufferSpec) -> RunJob:
    return RunJob(
        artifact=code,
        entry=entry,
        buffers=buffers,
        precision=ROUND,
        timeout_seconds=_TIMEOUT_SECONDS,
    )


def _seconds(job: RunJob, target: Target, folder: Path) -> float:
    with Runner(target=target) as runner:
        result = runner.run(job, lambda digest: folder / digest.hex)
    if not isinstance(result, Measurement) or result.wall_time is None:
        raise InfraError(f"nothing can be timed here: {getattr(result, 'why', 'no time')}")
    return result.wall_time.median_seconds
