"""Kernels in a disposable child: good ones, bad ones, and what is told of each."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilefarm
from kit.children.blobs import Blobs
from tilefarm.digest import Digest
from tilefarm.errors import InfraError, TargetError
from tilefarm.measurement import BufferSpec, Measurement, Role, RunFailure, RunJob, Status
from tilefarm.target import TARGETS, Target, VtaConfig
from tilefarm.vta_runtime import FUNCTIONS, RARE

import device_server
from device_server.device.memory_file import MemoryFile
from device_server.runner.process import ChildProcess
from device_server.runner.runner import Runner
from device_server.tenancy import OWN, Tenancy
from device_server.vta.library.native import find_library

KERNELS = Path(__file__).with_name("kernels")
ROWS = 6
RNG_SEED = 20


def dense_job(
    blobs: Blobs,
    artifact: Digest,
    *,
    block: int = 16,
    batch: int = 1,
    samples: int = 3,
    **more: Any,
) -> RunJob:
    """The kernel `dense` on random data, with the answer of numpy."""
    rng = np.random.default_rng(RNG_SEED)
    x = rng.integers(-128, 128, (samples, ROWS * batch, block), dtype=np.int8)
    w = rng.integers(-128, 128, (block, block), dtype=np.int8)
    y = ((x.astype(np.int32) @ w.astype(np.int32).T) >> 4).astype(np.int8)
    tile = ROWS * batch * block
    return RunJob(
        artifact=artifact,
        entry="dense",
        buffers=(
            BufferSpec(name="x", role=Role.INPUT, nbytes=tile, content=blobs.put(x.tobytes())),
            BufferSpec(
                name="w", role=Role.CONSTANT, nbytes=block * block, content=blobs.put(w.tobytes())
            ),
            BufferSpec(
                name="y",
                role=Role.OUTPUT,
                nbytes=tile,
                expected=blobs.put(y.tobytes()),
                fetch=True,
            ),
        ),
        samples=samples,
        **more,
    )


def bad_job(artifact: Digest, entry: str, **more: Any) -> RunJob:
    output = BufferSpec(name="out", role=Role.OUTPUT, nbytes=64)
    return RunJob(artifact=artifact, entry=entry, buffers=(output,), **more)


def measured(outcome: Measurement | RunFailure) -> Measurement:
    assert isinstance(outcome, Measurement), outcome
    return outcome


def failed(outcome: Measurement | RunFailure) -> RunFailure:
    assert isinstance(outcome, RunFailure), outcome
    return outcome


def test_a_good_kernel_is_measured_and_its_outputs_come_back(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    job = dense_job(blobs, compiled["good"], repeats=4, timeline=True)
    result = measured(runner.run(job, blobs.path))
    assert result.device == "test"
    assert result.counted["gemm_uops"] == ROWS
    assert result.counted["alu_uops"] == ROWS
    assert result.counted["inp_load_nbytes"] == ROWS * 16
    assert result.counted["wgt_load_nbytes"] == 256
    assert result.counted["out_store_nbytes"] == ROWS * 16
    assert result.sample_cycles == (result.counted.cycles,) * 3
    assert len(result.seconds) == 4
    assert all(seconds > 0 for seconds in result.seconds)
    ((name, content),) = result.outputs
    assert (name, Digest.of(content)) == ("y", job.buffers[2].expected)
    assert {event.module for event in result.timeline} == {"load", "compute", "store"}
    assert result.timeline[-1].begin_cycle == result.counted.cycles


@pytest.mark.parametrize(("log_batch", "log_block"), [(0, 3), (0, 5), (1, 4), (2, 2)])
def test_other_geometries_compute_the_same(
    blobs: Blobs, compiled: dict[str, Digest], log_batch: int, log_block: int
) -> None:
    vta = VtaConfig(
        log_batch=log_batch,
        log_block=log_block,
        log_uop_buff_size=12,
        log_inp_buff_size=14,
        log_wgt_buff_size=14,
        log_acc_buff_size=15,
    )
    job = dense_job(blobs, compiled["good"], block=vta.block, batch=vta.batch)
    with Runner(target=Target(name="other", vta=vta)) as runner:
        measured(runner.run(job, blobs.path))


def test_equal_jobs_take_equal_cycles_in_new_and_in_old_children(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    job = dense_job(blobs, compiled["good"])
    first = measured(runner.run(job, blobs.path))
    again = measured(runner.run(job, blobs.path))
    runner.run(bad_job(compiled["bad"], "segfault"), blobs.path)
    fresh = measured(runner.run(job, blobs.path))
    assert first.counted == again.counted == fresh.counted
    assert again.load_seconds == 0
    assert fresh.load_seconds > 0


def test_another_artifact_gets_another_child(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    out = BufferSpec(name="out", role=Role.OUTPUT, nbytes=16)
    for name, entry in [("good", "no_work"), ("shared", "numbers"), ("good", "no_work")]:
        job = RunJob(artifact=compiled[name], entry=entry, buffers=(out,))
        assert measured(runner.run(job, blobs.path)).load_seconds > 0
        assert measured(runner.run(job, blobs.path)).load_seconds == 0


def test_outputs_are_told_apart(runner: Runner, blobs: Blobs, compiled: dict[str, Digest]) -> None:
    first = BufferSpec(name="first", role=Role.OUTPUT, nbytes=16, fetch=True)
    other = BufferSpec(name="other", role=Role.OUTPUT, nbytes=8, fetch=True)
    job = RunJob(artifact=compiled["shared"], entry="numbers", buffers=(first, other), samples=2)
    outputs = dict(measured(runner.run(job, blobs.path)).outputs)
    assert outputs["first"] == 2 * (b"\x01" + bytes(15))
    assert outputs["other"] == bytes(16)


def test_kernels_on_the_host_get_plain_pointers(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    content = bytes(range(200, 256)) + bytes(8)
    expected = bytes((value + 1) % 256 for value in content)
    buffers = (
        BufferSpec(name="a", role=Role.INPUT, nbytes=64, content=blobs.put(content)),
        BufferSpec(name="b", role=Role.OUTPUT, nbytes=64, expected=Digest.of(expected)),
    )
    job = RunJob(artifact=compiled["good"], entry="increment", buffers=buffers)
    assert measured(runner.run(job, blobs.path)).counted.cycles == 0


def test_an_empty_synchronization_takes_36_cycles(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    job = RunJob(artifact=compiled["good"], entry="no_work", buffers=())
    assert measured(runner.run(job, blobs.path)).counted.cycles == 36


def test_large_outputs_come_back(runner: Runner, blobs: Blobs, compiled: dict[str, Digest]) -> None:
    nbytes = 9 << 20
    output = BufferSpec(name="big", role=Role.OUTPUT, nbytes=nbytes, fetch=True)
    job = RunJob(artifact=compiled["good"], entry="no_work", buffers=(output,), samples=2)
    ((_, content),) = measured(runner.run(job, blobs.path)).outputs
    assert content == bytes(2 * nbytes)


@pytest.mark.parametrize(
    ("entry", "status", "number", "why"),
    [
        ("segfault", Status.RUN_CRASH, signal.SIGSEGV, "SIGSEGV at address 0x10 in the artifact"),
        ("aborts", Status.RUN_CRASH, signal.SIGABRT, "SIGABRT"),
        ("exits", Status.RUN_CRASH, 0, "ended its process with status 0"),
        ("returns_error", Status.RUN_CRASH, 0, "returns_error returned 7"),
        ("divides_by_zero", Status.RUN_CRASH, signal.SIGFPE, "SIGFPE"),
        ("writes_beyond_its_buffer", Status.RUN_CRASH, signal.SIGSEGV, "SIGSEGV"),
        ("exhausts_memory", Status.RESOURCE_EXCEEDED, signal.SIGSEGV, "memory"),
        ("opens_a_socket", Status.RUN_CRASH, signal.SIGSYS, "forbidden system call socket"),
        ("opens_a_file", Status.RUN_CRASH, signal.SIGSYS, "forbidden system call openat"),
        ("starts_a_process", Status.RESOURCE_EXCEEDED, signal.SIGSYS, "forbidden system call"),
        ("makes_code", Status.RUN_CRASH, signal.SIGSYS, "forbidden system call mmap"),
        ("signals_another_process", Status.RUN_CRASH, signal.SIGSYS, "forbidden system call kill"),
        ("writes_nonsense_everywhere", Status.RUN_CRASH, 0, "broke the connection"),
        ("claims_a_huge_reply", Status.RUN_CRASH, 0, "broke the connection"),
        ("exceeds_the_scratchpad", Status.RUN_CRASH, 0, "INP elements 2046..2049 exceed"),
        ("exceeds_its_buffer", Status.RUN_CRASH, 0, "do not lie in one buffer"),
        ("has_too_long_a_row", Status.RUN_CRASH, 0, "x_size = 70000 does not fit its 16 bits"),
        ("leaves_a_token", Status.RUN_CRASH, 0, "tokens left over: 1 compute->load"),
        ("does_not_synchronize", Status.RUN_CRASH, 0, "not synchronized"),
        ("waits_for_ever", Status.RUN_CRASH, 0, "compute waits for store->compute"),
        ("reuses_an_accumulator_at_once", Status.RUN_CRASH, 0, "dst 5 is written again"),
        ("stores_without_waiting", Status.RUN_CRASH, 0, "no token orders it against instruction"),
        ("not_there", Status.LOAD_ERROR, 0, "no entry not_there"),
    ],
)
def test_a_bad_kernel_costs_one_typed_record(
    runner: Runner,
    blobs: Blobs,
    compiled: dict[str, Digest],
    entry: str,
    status: Status,
    number: int,
    why: str,
) -> None:
    failure = failed(runner.run(bad_job(compiled["bad"], entry), blobs.path))
    assert (failure.status, failure.signal) == (status, number), failure.why
    assert why in failure.why
    measured(runner.run(dense_job(blobs, compiled["good"]), blobs.path))


def test_an_endless_loop_ends_at_the_timeout(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    job = bad_job(compiled["bad"], "endless", timeout_seconds=0.2)
    failure = failed(runner.run(job, blobs.path))
    assert failure.status is Status.RUN_TIMEOUT
    assert failure.run_seconds >= 0.2
    measured(runner.run(dense_job(blobs, compiled["good"]), blobs.path))


def test_a_wrong_result_says_which_byte(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    wrong = bytes(64 + 63) + b"\x02"
    output = BufferSpec(name="out", role=Role.OUTPUT, nbytes=64, expected=blobs.put(wrong))
    job = RunJob(artifact=compiled["good"], entry="no_work", buffers=(output,), samples=2)
    failure = failed(runner.run(job, blobs.path))
    assert failure.status is Status.WRONG_RESULT
    assert failure.mismatch == (
        "output out: 1 of 128 bytes differ, first in sample 1 at byte 63: 0, expected 2"
    )


def test_a_wrong_result_without_the_expected_bytes_has_digests(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    output = BufferSpec(name="out", role=Role.OUTPUT, nbytes=64, expected=Digest.of(b"elsewhere"))
    job = RunJob(artifact=compiled["good"], entry="no_work", buffers=(output,))
    failure = failed(runner.run(job, blobs.path))
    assert failure.status is Status.WRONG_RESULT
    assert Digest.of(b"elsewhere").short in failure.mismatch


def test_outputs_that_change_from_call_to_call_are_wrong(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    failure = failed(
        runner.run(bad_job(compiled["bad"], "counts_its_calls", repeats=2), blobs.path)
    )
    assert failure.status is Status.WRONG_RESULT
    assert "differs between two calls" in failure.why


def test_buffers_beyond_the_memory_limit_are_too_much(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    scratch = BufferSpec(name="scratch", role=Role.SCRATCH, nbytes=1 << 30)
    job = RunJob(artifact=compiled["good"], entry="no_work", buffers=(scratch,))
    assert failed(runner.run(job, blobs.path)).status is Status.RESOURCE_EXCEEDED


def test_content_that_is_too_short_is_refused_before_running(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    given = BufferSpec(name="x", role=Role.INPUT, nbytes=8, content=blobs.put(b"12345678"))
    job = RunJob(artifact=compiled["good"], entry="no_work", buffers=(given,), samples=2)
    failure = failed(runner.run(job, blobs.path))
    assert failure.status is Status.LOAD_ERROR
    assert failure.why == "buffer x: content has 8 bytes, 16 are needed"


@pytest.mark.parametrize(
    ("artifact", "status", "why"),
    [
        ("unresolved", Status.LOAD_ERROR, "VTANotThere"),
        ("hostile_load", Status.RUN_CRASH, "forbidden system call socket"),
    ],
)
def test_an_artifact_that_cannot_be_loaded(
    runner: Runner,
    blobs: Blobs,
    compiled: dict[str, Digest],
    artifact: str,
    status: Status,
    why: str,
) -> None:
    job = RunJob(artifact=compiled[artifact], entry="entry", buffers=())
    failure = failed(runner.run(job, blobs.path))
    assert failure.status is status
    assert why in failure.why


def test_an_artifact_may_lie_in_memory(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    job = RunJob(artifact=compiled["good"], entry="no_work", buffers=())
    with MemoryFile(blobs.path(job.artifact).read_bytes()) as file:
        assert measured(runner.run(job, lambda _: file.path)).load_seconds > 0


def test_a_file_that_is_no_object_is_a_load_error(runner: Runner, blobs: Blobs) -> None:
    job = RunJob(artifact=blobs.put(b"not ELF"), entry="entry", buffers=())
    assert failed(runner.run(job, blobs.path)).status is Status.LOAD_ERROR


def test_what_the_child_may_do_and_what_it_runs_on_is_told(runner: Runner) -> None:
    assert "no_new_privs" in runner.sandbox
    assert runner.runtime_id.startswith("tilefarm-vta ")


def test_a_child_outlives_the_thread_that_ran_the_job(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    job = dense_job(blobs, compiled["good"])
    thread = threading.Thread(target=runner.run, args=(job, blobs.path))
    thread.start()
    thread.join()
    assert measured(runner.run(job, blobs.path)).load_seconds == 0


def test_closing_leaves_no_process(blobs: Blobs, compiled: dict[str, Digest]) -> None:
    with Runner(target=TARGETS["sim"]) as runner:
        runner.run(dense_job(blobs, compiled["good"]), blobs.path)
        child = runner.child
        assert child is not None
        assert child.alive
        accelerator = accelerator_of(runner)
        assert accelerator.poll() is None
    assert not child.alive
    assert accelerator.poll() is not None


def test_an_accelerator_that_dies_costs_one_typed_record(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    measured(runner.run(dense_job(blobs, compiled["good"]), blobs.path))
    os.kill(accelerator_of(runner).pid, signal.SIGKILL)
    failure = failed(runner.run(dense_job(blobs, compiled["good"]), blobs.path))
    assert failure.status is Status.RUN_CRASH
    assert failure.why == "the process that plays the accelerator has ended"
    measured(runner.run(dense_job(blobs, compiled["good"]), blobs.path))


def accelerator_of(runner: Runner) -> ChildProcess:
    assert runner.child is not None
    assert runner.child.accelerator is not None
    return runner.child.accelerator.process


def test_children_of_one_tenancy_have_one_accelerator_which_begins_anew_for_each(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    tenancy = Tenancy(lease="one", fence=1)
    job = dense_job(blobs, compiled["good"])
    alone = measured(runner.run(job, blobs.path))
    first = accelerator_of(runner).pid
    idle = bad_job(compiled["bad"], "takes_a_tenth_of_a_second")
    seen = set()
    for _ in range(2):
        found = measured(runner.run(job, blobs.path, tenancy))
        assert found.load_seconds > 0, "another child"
        assert (found.counters, found.sample_cycles) == (alone.counters, alone.sample_cycles)
        seen.add(accelerator_of(runner).pid)
        assert measured(runner.run(idle, blobs.path, tenancy)).counted["instructions"] == 0
        seen.add(accelerator_of(runner).pid)
    assert len(seen) == 1
    assert first not in seen


def test_the_device_s_own_runs_between_those_of_a_lease_have_an_accelerator_of_their_own(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    tenancies = [OWN, Tenancy(lease="one", fence=1)]
    seen = []
    for _ in range(2):
        for tenancy in tenancies:
            measured(runner.run(dense_job(blobs, compiled["good"]), blobs.path, tenancy))
            seen.append(accelerator_of(runner).pid)
    assert seen == seen[:2] * 2
    assert seen[0] != seen[1]


@pytest.mark.parametrize("own_run_between", [False, True])
def test_an_accelerator_ends_with_its_tenancy(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest], *, own_run_between: bool
) -> None:
    tenancy = Tenancy(lease="one", fence=1)
    job = dense_job(blobs, compiled["good"])
    measured(runner.run(job, blobs.path, tenancy))
    accelerator = accelerator_of(runner)
    if own_run_between:
        measured(runner.run(job, blobs.path))
    tenancy.end("it was given back")
    assert accelerator.wait(60.0) is not None
    last = Tenancy(lease="two", fence=2)
    measured(runner.run(job, blobs.path, last))
    assert accelerator_of(runner).pid != accelerator.pid


@pytest.mark.parametrize("entry", ["segfault", "endless"])
def test_an_accelerator_of_a_kernel_that_fails_is_not_used_again(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest], entry: str
) -> None:
    job = dense_job(blobs, compiled["good"])
    measured(runner.run(job, blobs.path))
    before = accelerator_of(runner).pid
    failed(runner.run(bad_job(compiled["bad"], entry, timeout_seconds=0.2), blobs.path))
    measured(runner.run(job, blobs.path))
    assert accelerator_of(runner).pid != before


def test_an_accelerator_that_died_meanwhile_is_no_fault_of_the_next_kernel(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    measured(runner.run(dense_job(blobs, compiled["good"]), blobs.path))
    accelerator = accelerator_of(runner)
    os.kill(accelerator.pid, signal.SIGKILL)
    assert accelerator.wait(60.0) is not None
    idle = bad_job(compiled["bad"], "takes_a_tenth_of_a_second")
    measured(runner.run(idle, blobs.path))


def test_an_accelerator_that_dies_behind_a_kernel_on_the_host_is_noticed(
    runner: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    job = bad_job(compiled["bad"], "takes_a_tenth_of_a_second")
    measured(runner.run(job, blobs.path))
    os.kill(accelerator_of(runner).pid, signal.SIGKILL)
    assert failed(runner.run(job, blobs.path)).status is Status.RUN_CRASH


def test_an_impossible_target_is_the_users_error(blobs: Blobs) -> None:
    target = Target(name="big", vta=VtaConfig(log_uop_buff_size=16))
    with Runner(target=target) as runner, pytest.raises(TargetError, match="big: impossible"):
        assert runner.sandbox


ORPHAN_MAKER = """
import sys, threading, time
from pathlib import Path
from device_server.runner.process import ChildProcess
from device_server.runner.runner import Runner
from tilefarm.digest import Digest
from tilefarm.measurement import RunJob
from tilefarm.target import TARGETS

runner = Runner(target=TARGETS["sim"])
job = RunJob(artifact=Digest(sys.argv[2]), entry="endless", buffers=(), timeout_seconds=60)
where = lambda digest: Path(sys.argv[1]) / digest.hex
threading.Thread(target=runner.run, args=(job, where), daemon=True).start()
while runner.child is None:
    time.sleep(0.01)
child = runner.child
pids = child.process.pid, child.accelerator.process.pid, runner.children.zygote.process.pid
print(*pids, flush=True)
time.sleep(60)
"""


def test_a_killed_server_leaves_no_child(blobs: Blobs, compiled: dict[str, Digest]) -> None:
    folder = blobs.path(compiled["bad"]).parent
    roots = [str(Path(tilefarm.__file__).parents[1]), str(Path(device_server.__file__).parents[1])]
    with subprocess.Popen(
        [sys.executable, "-c", ORPHAN_MAKER, str(folder), compiled["bad"].hex],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(roots)},
    ) as server:
        assert server.stdout is not None
        with ExitStack() as files:
            alive = [
                files.enter_context(os.fdopen(os.pidfd_open(int(pid))))
                for pid in server.stdout.readline().split()
            ]
            assert len(alive) == 3
            server.kill()
            for process in alive:
                ended, _, _ = select.select([process], [], [], 60)
                assert ended


def test_an_executable_that_is_not_there_is_an_infra_error(blobs: Blobs, tmp_path: Path) -> None:
    missing = tmp_path / "vta-runner"
    job = RunJob(artifact=blobs.put(b""), entry="entry", buffers=())
    with (
        Runner(target=TARGETS["sim"], executable=missing) as runner,
        pytest.raises(InfraError, match="cannot start"),
    ):
        runner.run(job, blobs.path)


def failure_with(library: Path, blobs: Blobs) -> RunFailure:
    """How a job ends on that library; asking what the device is must fail as well."""
    job = RunJob(artifact=blobs.put(b""), entry="entry", buffers=())
    with Runner(target=TARGETS["sim"], library=library) as runner:
        failure = failed(runner.run(job, blobs.path))
        with pytest.raises(InfraError) as caught:
            assert runner.sandbox
        assert caught.value.what == failure.why
    assert failure.status is Status.LOAD_ERROR
    return failure


def test_a_library_that_lacks_functions_is_a_load_error_that_names_them(
    blobs: Blobs, tmp_path: Path
) -> None:
    present = FUNCTIONS.keys() - RARE.keys() - {"VTADepPop", "VTAPushALUOp"}
    source = tmp_path / "board.c"
    source.write_text("".join(f"void {name}(void) {{}}\n" for name in present))
    board = tmp_path / "libvta.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", board, source], check=True)
    why = failure_with(board, blobs).why
    assert why == f"the VTA library {board} lacks VTAPushALUOp, VTADepPop"


def test_a_library_for_another_machine_is_a_load_error(blobs: Blobs, tmp_path: Path) -> None:
    other = tmp_path / "libvta.so"
    content = bytearray(find_library().read_bytes())
    sparc = 43
    content[18:20] = sparc.to_bytes(2, "little")
    other.write_bytes(content)
    assert f"the VTA library {other} is for machine 43, this machine is" in (
        failure_with(other, blobs).why
    )


@pytest.mark.parametrize("content", [b"", b"not ELF", b"\x7fELF" + bytes(60)])
def test_a_library_that_is_none_is_a_load_error(
    blobs: Blobs, tmp_path: Path, content: bytes
) -> None:
    broken = tmp_path / "libvta.so"
    broken.write_bytes(content)
    assert str(broken) in failure_with(broken, blobs).why
