"""The distribution on a board's processor, emulated: its self-test, and kernels made for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from kit.emulated import Board, board, missing_tool
from tilefarm.artifact import Artifact
from tilefarm.digest import Digest
from tilefarm.measurement import Measurement
from tilefarm.target import TARGETS, Host, Target

from compile_worker.compiler import compile_kernel
from device_server.device import elf
from device_server.device.canary import Canary
from device_server.device.known_kernel import KNOWN_CYCLES, known_kernel
from device_server.runner.runner import Runner
from driver.bench.farm.searching import layer_tasks
from driver.search.measuring import Task

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
        proof = Canary(known_kernel(TARGETS[name], code), runner, tmp_path, device="d").prove()
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


def native(target: Target) -> elf.Machine:
    return elf.Machine.of_triple(target.host.triple)


def run(task: Task, runner: Runner, folder: Path, machine: elf.Machine) -> Measurement:
    """One checked run of a task's default schedule."""
    made = compile_kernel(task.compile_job(task.trace(dict(task.space.default))))
    assert isinstance(made, Artifact), made
    assert elf.rejection(made.code, machine) is None
    blobs = {made.digest: made.code, **task.blobs}
    for digest, content in blobs.items():
        (folder / digest.hex).write_bytes(content)

    def blob(digest: Digest) -> Path:
        return folder / digest.hex

    result = runner.run(task.run_job(made, timeout_seconds=60.0), blob)
    assert isinstance(result, Measurement), result
    return result
