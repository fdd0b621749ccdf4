"""Jobs in, artifacts or typed failures out."""

from __future__ import annotations

import errno
import pickle
from dataclasses import replace

import pytest
from kit.kernels.nests import SIM, conv2d
from kit.kernels.schedules import Tiling
from kit.manual_clock import ManualClock
from tilefarm.artifact import Artifact, BuildFailure, Call, CompileJob, ProgramJob
from tilefarm.measurement import Status
from tilefarm.target import Limits, Target, VtaConfig
from tilefarm.trace import Step, Trace
from tilefarm.workload import Workload

from compile_worker import compiler
from compile_worker.codegen.elf import undefined_symbols
from compile_worker.compiler import compile_kernel, compile_program
from compile_worker.lowering import step_names
from compile_worker.machines.known import MACHINES
from compile_worker.worker import compile_all

CONV = conv2d(ci=2, co=2, height=8, width=8)


def job(tiling: Tiling, target: Target = SIM, work: Workload = CONV) -> CompileJob:
    return CompileJob(workload=work, trace=tiling.trace(), target=target)


def failure(of: CompileJob | ProgramJob) -> BuildFailure:
    made = compile_program(of) if isinstance(of, ProgramJob) else compile_kernel(of)
    assert isinstance(made, BuildFailure), made
    assert made.job == of.digest
    return made


def artifact(of: CompileJob | ProgramJob) -> Artifact:
    made = compile_program(of) if isinstance(of, ProgramJob) else compile_kernel(of)
    assert isinstance(made, Artifact), made
    return made


def test_the_same_job_gives_the_same_bytes() -> None:
    one, other = artifact(job(Tiling(slots=2))), artifact(job(Tiling(slots=2)))
    assert (one.code, one.features, one.symbols) == (other.code, other.features, ("kernel",))
    assert one.job == job(Tiling(slots=2)).digest


def test_another_schedule_gives_other_bytes() -> None:
    assert artifact(job(Tiling())).digest != artifact(job(Tiling(h=2))).digest


def test_time_is_the_clocks() -> None:
    made = compile_kernel(job(Tiling()), clock=ManualClock())
    assert made.build_seconds == 0.0


def test_every_step_can_be_watched() -> None:
    seen: list[str] = []
    compile_kernel(job(Tiling()), watch=lambda name, _: seen.append(name))
    assert seen == ["nest", "scheduled", *(step.name for step in MACHINES["vta"].passes)]


SMALL = VtaConfig(log_inp_buff_size=9, log_wgt_buff_size=12, log_acc_buff_size=9)
"""32 input vectors, 16 weight tiles, 8 accumulator vectors."""

REFUSED = {
    "inp_sram": job(Tiling(h=2, w=8), replace(SIM, vta=SMALL)),
    "wgt_sram": job(Tiling(co=2, w=4), replace(SIM, vta=SMALL)),
    "acc_sram": job(Tiling(co=2, w=8, kw=1), replace(SIM, vta=SMALL)),
    "uop_sram": job(Tiling(h=8, w=8), replace(SIM, limits=Limits(kernel_uops=64))),
    "acc_distance": job(Tiling(w=2)),
    "dma_fields": job(Tiling(h=1, w=8, kh=1)),
    "insn_queue": job(Tiling(w=4), work=conv2d(ci=40, co=40, height=64, width=128)),
}


@pytest.mark.parametrize("constraint", REFUSED)
def test_a_limit_is_refused_by_its_name(constraint: str) -> None:
    found = failure(REFUSED[constraint])
    assert (found.status, found.constraint) == (Status.COMPILE_ERROR, constraint)
    assert found.why
    assert found.stage in step_names()
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_step_that_does_not_apply() -> None:
    bad = CompileJob(workload=CONV, trace=Trace((Step("split", ("conv_w", 3)),)), target=SIM)
    found = failure(bad)
    assert (found.status, found.stage) == (Status.COMPILE_ERROR, "ScheduleError")
    assert "conv_w" in found.why


def test_what_nobody_foresaw_is_a_crash_of_this_job_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **named: object) -> object:
        raise KeyError("slot")

    monkeypatch.setattr(compiler, "lower", broken)
    found = failure(job(Tiling()))
    assert found.status is Status.COMPILE_CRASH
    assert "KeyError: 'slot'" in found.why


def test_a_full_disk_is_not_the_jobs_fault() -> None:
    def full(*args: object) -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")

    disk = {kind: replace(machine, build=full) for kind, machine in MACHINES.items()}
    found = compile_kernel(job(Tiling()), machines=disk)
    assert isinstance(found, BuildFailure)
    assert found.status is Status.INFRA_ERROR
    assert "No space left on device" in found.why


def program(kernels: tuple[CompileJob, ...]) -> ProgramJob:
    places = tuple((0, 256 * i) for i in range(5))
    calls = tuple(Call(kernel=k.symbol, arguments=places) for k in kernels) * 2
    return ProgramJob(kernels=kernels, calls=calls, buffers=1, target=SIM)


def test_a_program_exports_its_entries_and_needs_the_runtime_only() -> None:
    first = replace(job(Tiling()), symbol="first")
    second = replace(job(Tiling(h=2)), symbol="second layer")
    made = artifact(program((first, second)))
    assert made.symbols == ("network", *(f"network_call{n}" for n in range(4)))
    assert made.code == artifact(program((first, second))).code
    assert dict(made.features)["calls"] == 4
    assert undefined_symbols(made.code) == frozenset()  # no full symbol table is left


def test_a_program_with_a_kernel_that_is_refused() -> None:
    found = failure(program((REFUSED["acc_distance"],)))
    assert found.constraint == "acc_distance"


def test_a_batch_has_one_result_for_every_job_in_order() -> None:
    kernel = job(Tiling())
    jobs: list[CompileJob | ProgramJob] = [kernel, REFUSED["acc_distance"], program((kernel,))]
    results = compile_all(jobs)
    assert [type(result) for result in results] == [Artifact, BuildFailure, Artifact]
    assert [result.job for result in results] == [each.digest for each in jobs]
