"""The whole compile in one short function: a job in, an artifact or a typed failure out."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace

from tilefarm.artifact import Artifact, BuildFailure, CompileJob, ProgramJob
from tilefarm.clock import Clock, SystemClock
from tilefarm.digest import Digest
from tilefarm.errors import UserError
from tilefarm.measurement import Status
from tilefarm.trace import Trace

from compile_worker.errors import Refused
from compile_worker.ir.func import Func
from compile_worker.lowering import lower
from compile_worker.machine import Machines, machine_of, machine_on
from compile_worker.machines.cpu.space.scripts import script_trace
from compile_worker.machines.known import MACHINES
from compile_worker.pipeline import SCHEDULED, OverduePassError, PassError, Watcher, look_away
from compile_worker.plugins.passes import divided
from compile_worker.plugins.plugin import learn_passes
from compile_worker.schedule import replay
from compile_worker.schedule.cpu import cpu_trace
from compile_worker.schedule.cpu_threads import shared
from compile_worker.te import nest_of

Made = tuple[bytes, Sequence[str], dict[str, float]]
"""Shared object, exported symbols, features."""


def compile_kernel(
    job: CompileJob,
    *,
    clock: Clock | None = None,
    watch: Watcher = look_away,
    machines: Machines = MACHINES,
) -> Artifact | BuildFailure:
    """Schedule, lower, generate code and link one kernel.

    The same job gives the same bytes. What the accelerator cannot hold, or the schedule asks in
    vain, is a BuildFailure with the stage and, where a limit is to blame, the constraint's name.
    """

    def make() -> Made:
        func = lowered(job, watch=watch, machines=machines)
        machine = machine_of(func, job.target, machines)
        code = machine.build(func, job.symbol, job.target)
        return code, (job.symbol,), machine.features(func, job.target)

    return _built(job.digest, make, clock or SystemClock())


def compile_program(
    job: ProgramJob, *, clock: Clock | None = None, machines: Machines = MACHINES
) -> Artifact | BuildFailure:
    """One shared object that runs a whole network: its kernels, and an entry that calls them."""

    def make() -> Made:
        kernels = {each.symbol: lowered(each, machines=machines) for each in job.kernels}
        code = machine_on(job.target, machines).program(job, kernels)
        return code, (job.entry, *job.call_entries), {"calls": float(len(job.calls))}

    return _built(job.digest, make, clock or SystemClock())


def lowered(job: CompileJob, *, watch: Watcher = look_away, machines: Machines = MACHINES) -> Func:
    """The function of a job, scheduled and lowered: ready for code generation.

    `watch` sees it as "nest", as "scheduled", and after every pass. A trace that schedules nothing
    stands for the schedule that an operator has on the processor.

    Raises:
        ScheduleError: a primitive of the trace does not apply.
        SettingsError, PassError: a pass of a user's cannot be loaded, or fails.
        Refused: a limit of the accelerator is exceeded.
    """
    for plugin in job.plugins:
        learn_passes(plugin)
    nest = nest_of(job.workload, job.target)
    watch("nest", nest)
    trace, lowered_with = divided(job.trace)
    if not trace.steps:
        trace = shared(_usual(job), nest, job.target)
    scheduled = replay(lowered_with, replay(trace, nest, job.target), job.target)
    watch(SCHEDULED, scheduled)
    return lower(scheduled, job.target, machines=machines, watch=watch)


def _usual(job: CompileJob) -> Trace:
    """The schedule on the processor that nobody has chosen: of a script its space's default.

    Nothing but the rules that made the space knows it.
    """
    is_script = job.workload.operator == "script"
    return (script_trace if is_script else cpu_trace)(job.workload, job.target)


def _built(job: Digest, make: Callable[[], Made], clock: Clock) -> Artifact | BuildFailure:
    begin = clock.seconds()
    try:
        code, symbols, features = make()
    except Refused as refused:
        failure = _failure(job, refused.stage, refused.why, refused.constraint)
    except OverduePassError as late:
        failure = _failure(job, PassError.__name__, str(late))
        failure = replace(failure, status=Status.COMPILE_TIMEOUT)
    except UserError as error:
        failure = _failure(job, type(error).__name__, str(error))
    except OSError as trouble:  # a full disk, too many open files, a linker that is not there
        why = f"{type(trouble).__name__}: {trouble}"
        failure = replace(_failure(job, "compiler", why), status=Status.INFRA_ERROR)
    except Exception as surprise:
        # One candidate must not end a search: what the compiler did not foresee is its own status.
        why = f"{type(surprise).__name__}: {surprise}\n{traceback.format_exc(limit=-3)}"
        failure = replace(_failure(job, "compiler", why), status=Status.COMPILE_CRASH)
    else:
        return Artifact(
            job=job,
            code=code,
            symbols=tuple(symbols),
            features=tuple(sorted(features.items())),
            build_seconds=clock.seconds() - begin,
        )
    return replace(failure, build_seconds=clock.seconds() - begin)


def _failure(job: Digest, stage: str, why: str, constraint: str = "") -> BuildFailure:
    return BuildFailure(
        job=job, status=Status.COMPILE_ERROR, stage=stage, why=why, constraint=constraint
    )
