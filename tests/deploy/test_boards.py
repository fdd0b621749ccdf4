"""The distribution on a board's processor, emulated: self-test, kernels, the calls they make."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from kit.networks.demo_program import demo_program
from kit.objects.call_numbers import call_numbers
from tilefarm.artifact import Artifact
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.measurement import BufferSpec, Measurement, Role, RunFailure, RunJob
from tilefarm.target import TARGETS, Host, Target

from compile_worker.compiler import compile_kernel
from device_server.device import elf
from device_server.device.canary import Canary
from device_server.device.known_kernel import KNOWN_CYCLES, known_kernel
from device_server.runner.runner import Runner, RunnerLimits
from driver.benchmarks.farm.searching import layer_tasks
from driver.campaign.measuring import Task
from driver.program.simulated import on_simulator

from .emulated import Board, board, compile_shared, missing_tool
from .traced_calls import Verdict, build, children, judged

KERNELS = Path(__file__).parents[1] / "device_server" / "runner" / "kernels"
ALLOW, TRAP, REFUSE = 0x7FFF0000, 0x00030000, 0x00050001
TRACING = RunnerLimits(threads=3, log_nbytes=1 << 30)
HARMLESS = {
    "everyday": ["everyday"],
    "shared": ["numbers", "stray", "deep"],
    "bad": [
        "leaves_a_token",
        "exceeds_its_buffer",
        "segfault",
        "aborts",
        "divides_by_zero",
        "writes_beyond_its_buffer",
        "exhausts_memory",
        "exits",
        "endless",
    ],
}
"""What may go wrong, but calls for nothing that is forbidden: entries by file."""

FORBIDDEN = {
    "hostile_load": ["entry"],
    "bad": ["opens_a_socket", "opens_a_file", "makes_code", "signals_another_process"],
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", params=["aarch64", "armv7l"])
def emulated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Board:
    name: str = request.param
    if missing := missing_tool(name):
        pytest.skip(f"no {missing} on this machine")
    return board(name, tmp_path_factory.mktemp(name))


@pytest.mark.parametrize("name", KNOWN_CYCLES)
def test_it_passes_its_self_test(emulated: Board, tmp_path: Path, name: str) -> None:
    code = emulated.known_kernel.read_bytes()
    assert elf.rejection(code, emulated.machine) is None
    with emulated.runner(TARGETS[name]) as runner:
        known = known_kernel(TARGETS[name], code)
        proof = Canary(known, runner, tmp_path, clock=SystemClock(), device="d").prove()
        assert runner.sandbox == "rlimits, no_new_privs, no capabilities"
    assert proof.cycles == KNOWN_CYCLES[name]


def test_compiled_kernels_are_right_and_take_the_cycles_that_they_take_here(
    emulated: Board, tmp_path: Path
) -> None:
    there = replace(TARGETS["sim"], host=emulated.host)
    here = replace(TARGETS["sim"], host=Host())
    with emulated.runner(there) as far, Runner(target=here) as near:
        for task, twin in zip(layer_tasks(there).values(), layer_tasks(here).values(), strict=True):
            measured = run(task, far, tmp_path, emulated.machine)
            assert measured.counters == run(twin, near, tmp_path, native(here)).counters


def test_the_demo_for_a_board_is_right_there_and_takes_what_its_twin_predicts(
    emulated: Board, tmp_path: Path
) -> None:
    boards = [n for n, t in TARGETS.items() if f"sim-{n}" in TARGETS and t.host == emulated.host]
    assert boards
    for name in boards:
        program, batch = demo_program(TARGETS[name])
        twin, _ = demo_program(TARGETS[f"sim-{name}"])
        blobs = program.blobs(batch)
        for digest, content in blobs.items():
            (tmp_path / digest.hex).write_bytes(content)
        with emulated.runner(program.target) as runner:
            done = runner.run(
                program.run_job(batch, timeout_seconds=120.0), lambda d: tmp_path / d.hex
            )
        assert isinstance(done, Measurement), done
        here = on_simulator(twin, batch)
        assert (done.counters, done.outputs) == (here.counters, here.outputs)


def test_the_rules_judge_its_calls_as_they_should(emulated: Board, tmp_path: Path) -> None:
    subprocess.run(build(emulated, "test_call_rules.cc", tmp_path), check=True)


def test_children_call_what_the_filters_allow(emulated: Board, tmp_path: Path) -> None:
    target = replace(TARGETS["sim"], host=emulated.host)
    trace = tmp_path / "trace"
    with emulated.runner(target, TRACING, trace) as runner:
        code = emulated.known_kernel.read_bytes()
        known = known_kernel(target, code)
        Canary(known, runner, tmp_path, clock=SystemClock(), device="d").prove()
        for task in layer_tasks(target).values():
            run(task, runner, tmp_path, emulated.machine)
        outcomes = run_entries(HARMLESS, emulated, runner, tmp_path)
    assert isinstance(outcomes["everyday"], Measurement), outcomes["everyday"]
    for entry in ("segfault", "stray", "writes_beyond_its_buffer"):
        failure = outcomes[entry]
        assert isinstance(failure, RunFailure)
        assert "SIGSEGV at address" in failure.why
    assert "in the artifact at +" in str(outcomes["segfault"])
    verdicts = verdicts_on(trace, emulated, tmp_path)
    assert not [verdict for verdict in verdicts if verdict.first not in (ALLOW, REFUSE)]
    refused = {verdict.call.name for verdict in verdicts if verdict.second == REFUSE}
    assert refused & {"statx", "fstatat64", "newfstatat"}
    assert refused <= {"statx", "fstatat64", "newfstatat", "ioctl"}
    assert {verdict.second for verdict in verdicts} == {ALLOW, REFUSE}
    assert {"futex", "clock_gettime", "rt_sigreturn"} <= names(verdicts)


def test_what_children_may_not_call_is_trapped(emulated: Board, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with emulated.runner(TARGETS["sim"], TRACING, trace) as runner:
        run_entries(FORBIDDEN, emulated, runner, tmp_path)
    trapped = {
        verdict.call.name
        for verdict in verdicts_on(trace, emulated, tmp_path)
        if TRAP in (verdict.first, verdict.second)
    }
    assert trapped - {"mmap", "mmap2"} == {"socket", "openat", "kill"}
    assert trapped & {"mmap", "mmap2"}


def names(verdicts: list[Verdict]) -> set[str]:
    """Of what was called, be it with times of 64 bits or without."""
    return {re.sub(r"(_time)?64$", "", verdict.call.name) for verdict in verdicts}


def verdicts_on(trace: Path, emulated: Board, folder: Path) -> list[Verdict]:
    """On the calls of all children; a call while loading is judged by the first stage alone."""
    judge = build(emulated, "judge_calls.cc", folder)
    traced = children(trace, call_numbers(emulated.c_compiler))
    assert traced
    verdicts = []
    for child in traced:
        verdicts += [
            replace(verdict, second=verdict.first)
            for verdict in judged(judge, child.process, child.loading)
        ]
        verdicts += judged(judge, child.process, child.computing)
    return verdicts


def run_entries(
    entries: Mapping[str, Sequence[str]], emulated: Board, runner: Runner, folder: Path
) -> dict[str, Measurement | RunFailure]:
    """The outcomes of entries of the runtime tests' kernels, by name."""
    outcomes = {}
    out = BufferSpec(name="out", role=Role.OUTPUT, nbytes=64)
    for file, names in entries.items():
        made = folder / f"{file}.so"
        compile_shared(emulated, KERNELS / f"{file}.c", made)
        for entry in names:
            job = RunJob(
                artifact=Digest.of(made.read_bytes()),
                entry=entry,
                buffers=(out,),
                timeout_seconds=1.0 if entry == "endless" else 60.0,
            )
            outcomes[entry] = runner.run(job, {job.artifact: made}.__getitem__)
    return outcomes


def native(target: Target) -> elf.Machine:
    return elf.Machine.of_triple(target.host.triple)


def run(task: Task, runner: Runner, folder: Path, machine: elf.Machine) -> Measurement:
    """One checked run of a task's default schedule."""
    made = compile_kernel(task.compile_job(task.trace(dict(task.space.default))))
    assert isinstance(made, Artifact), made
    assert elf.rejection(made.code, machine) is None
    blobs = {made.digest: made.code, **task.arguments.blobs}
    for digest, content in blobs.items():
        (folder / digest.hex).write_bytes(content)

    def blob(digest: Digest) -> Path:
        return folder / digest.hex

    result = runner.run(task.order(made, "r", timeout_seconds=60.0).job, blob)
    assert isinstance(result, Measurement), result
    return result
