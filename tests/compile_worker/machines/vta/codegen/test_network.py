"""Where a network's entry waits for the accelerator, and where tokens are enough."""

from dataclasses import replace

from kit.kernels.nests import SIM
from tilefarm.target import Limits

from compile_worker.machines.vta.codegen.network import QueuedCall, endings
from compile_worker.machines.vta.limits import instruction_capacity
from compile_worker.machines.vta.passes.check_instructions import StreamSize

HOST = QueuedCall("host", None)
SMALL = QueuedCall("small", StreamSize(uops=10, instructions=100))
LARGE = QueuedCall("large", StreamSize(uops=10, instructions=instruction_capacity() - 50))
TARGET = replace(SIM, limits=Limits(kernel_uops=25))


def test_kernels_in_a_row_are_one_run() -> None:
    assert endings([SMALL, SMALL], TARGET) == ["barrier", "wait"]


def test_the_host_waits_before_its_own_work() -> None:
    assert endings([HOST, SMALL, HOST, HOST, SMALL], TARGET) == ["", "wait", "", "", "wait"]


def test_micro_ops_of_one_run_stay_resident() -> None:
    assert endings([SMALL] * 5, TARGET) == ["barrier", "wait", "barrier", "wait", "wait"]


def test_the_instruction_queue_does_not_overflow() -> None:
    assert endings([SMALL, LARGE, SMALL], SIM) == ["wait", "wait", "wait"]


def test_a_network_without_calls() -> None:
    assert endings([], SIM) == []
