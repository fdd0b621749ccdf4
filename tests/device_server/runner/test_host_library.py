"""Devices of a processor alone: they prove themselves, count nothing, and refuse an accelerator's
kernels.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.built import needs_simulator
from tilefarm.measurement import RunFailure, Status
from tilefarm.target import TARGETS, load_target

from device_server.device.known_kernel import known_kernel
from device_server.device.self_test import known_kernel_for, self_test
from device_server.runner.runner import Runner
from device_server.vta.library.native import find_known_kernel, find_library_for

pytestmark = needs_simulator
CPU = load_target("cpu")


def test_a_processor_proves_itself_by_the_clock() -> None:
    proof = self_test(CPU, runtime=None, device="d")
    assert proof.cycles is None
    assert "by the host's clock" in str(proof)


def test_the_answer_is_the_accelerator_s_on_the_same_lanes() -> None:
    expected = [
        [buffer.expected for buffer in known_kernel_for(target).job.buffers if buffer.expected]
        for target in (CPU, TARGETS["sim"])
    ]
    assert expected[0] == expected[1]


def test_a_processor_has_a_library_of_its_own() -> None:
    assert find_library_for(CPU).name == "libtilefarm_host.so"
    assert find_library_for(TARGETS["sim"]).name == "libtilefarm_vta.so"
    assert find_known_kernel(CPU).name == "host-known.so"


def test_a_kernel_that_calls_for_an_accelerator_ends_with_the_reason(tmp_path: Path) -> None:
    known = known_kernel(CPU, find_known_kernel(TARGETS["sim"]).read_bytes())
    known.keep_in(tmp_path)
    with Runner(target=CPU) as runner:
        found = runner.run(known.job, lambda digest: tmp_path / digest.hex)
    assert isinstance(found, RunFailure)
    assert found.status is Status.RUN_CRASH
    assert "this target has no accelerator" in found.why


@pytest.mark.parametrize(("name", "library"), [("cpu", "tilefarm-host "), ("sim", "tilefarm-vta ")])
def test_a_device_says_which_runtime_it_has(name: str, library: str) -> None:
    with Runner(target=load_target(name)) as runner:
        assert runner.runtime_id.startswith(library)
