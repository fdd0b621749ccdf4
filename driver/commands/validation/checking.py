"""A network's three executions compared: float, integer reference, and device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from numpy.typing import NDArray
from tilefarm.errors import InfraError
from tilefarm.plural import form, plural
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.compiler import compile_kernel
from driver.commands.validation.checked_steps import Compile, StepCheck, checked_steps
from driver.commands.validation.layer_noise import noise_of
from driver.commands.validation.step_executor import SandboxExecutor, StepExecutor
from driver.network import Dataset, Forms, Network, Noise, Origin, run_integer
from driver.program.evaluate import differing_samples
from driver.program.parts import filled
from driver.program.simulated import assembled
from driver.program.user_passes import require_passes_of_run
from driver.program.vta.schedules import Choice, trace_of

Watch: TypeAlias = Callable[[StepCheck, Noise | None], None]

EQUAL: Final = "bit for bit the reference's"
_NOT_RUN: Final = "not run, as a step is wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """All steps in order; noise and nodes of the file by tensor; what the program did, in words."""

    name: str
    samples: int
    steps: tuple[StepCheck, ...]
    noise: Mapping[str, Noise]
    made_from: Mapping[str, tuple[Origin, ...]]
    whole: str

    @property
    def first_wrong(self) -> StepCheck | None:
        """The first step that differs, or did not compile or run."""
        return next((step for step in self.steps if not step.is_right), None)

    @property
    def is_right(self) -> bool:
        return self.first_wrong is None and self.whole == EQUAL


def _look_away(*_: object) -> None:
    """Watches nothing."""


def checked(
    forms: Forms,
    data: Dataset,
    *,
    best_of: Path | None = None,
    executor: StepExecutor | None = None,
    compile_with: Compile = compile_kernel,
    watch: Watch = _look_away,
) -> Checked:
    """Compares all of `data`.

    Args:
        best_of: the output folder of a run, whose best schedules are taken; None: the plain ones.
        executor: where steps and program are run; None: in the sandbox, with the simulator.
        compile_with: what makes the kernels of single steps.
        watch: is told of every step as soon as it is checked, with the noise of its result.

    Raises:
        DataError: the folder has no schedule of a workload.
    """
    network = forms.network
    executor = executor or SandboxExecutor(network.target)
    inputs = {name: filled(values, network.batch) for name, values in data.inputs.items()}
    traces = schedules(network, best_of)
    noise = noise_of(forms.graph, forms.quantized, data.inputs)
    steps = []
    for step in checked_steps(
        network, traces, inputs, executor=executor, compile_with=compile_with
    ):
        watch(step, noise.get(step.result))
        steps.append(step)
    right = all(step.is_right for step in steps)
    return Checked(
        name=network.name,
        samples=data.samples,
        steps=tuple(steps),
        noise=noise,
        made_from=forms.made_from,
        whole=_whole(forms, traces, inputs, executor) if right else _NOT_RUN,
    )


def schedules(network: Network, best_of: Path | None) -> dict[Workload, Trace]:
    """The schedule of every workload of the accelerator: a run's best, or the plain one.

    Raises:
        DataError: the folder is no run's, has none for a workload, or its kernels were lowered with
            other passes of users than those that are loaded.
    """
    if best_of is not None:
        require_passes_of_run(best_of)
    choice = Choice(best_of=best_of)
    return {
        workload: trace_of(choice, workload, network.target) for workload, _ in network.workloads()
    }


def _whole(
    forms: Forms,
    traces: Mapping[Workload, Trace],
    inputs: Mapping[str, NDArray[Any]],
    executor: StepExecutor,
) -> str:
    """All samples through the network as one program, in words."""
    try:
        answers = executor.answers(assembled(forms.network, traces), inputs).outputs
    except InfraError as error:
        return error.what
    differing = differing_samples(answers, run_integer(forms.quantized, inputs))
    verb = form(differing, "differs", "differ")
    return f"{plural(differing, 'sample')} {verb} from the reference" if differing else EQUAL
