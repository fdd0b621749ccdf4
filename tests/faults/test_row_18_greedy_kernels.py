"""Row 18: kernels that take memory, processes or files get none, and harm nobody."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest
from kit.c_kernels import SYSTEM_CALL, blobs, job
from kit.foreign import LINKING
from kit.real_farm import RealFarm
from tilefarm.digest import Digest
from tilefarm.measurement import BufferSpec, Measurement, Role, RunFailure, RunJob, Status

_SOURCE: Final = (
    SYSTEM_CALL
    + """
    #include <stdint.h>
    /* mmap(0, 4 MiB, READ | WRITE, PRIVATE | ANONYMOUS): touched page by page, for ever. */
    int32_t memory(void* const* buffers, const int64_t* offsets) {
      for (;;) {
        volatile char* got = (volatile char*)call(9, 0, 4 << 20, 3, 0x22, -1, 0);
        for (long at = 0; at < 4 << 20; at += 4096) got[at] = 1;
      }
      return buffers && offsets;
    }
    int32_t processes(void* const* buffers, const int64_t* offsets) {
      for (;;) call(57, 0, 0, 0, 0, 0, 0);
      return buffers && offsets;
    }
    int32_t files(void* const* buffers, const int64_t* offsets) {
      for (;;) call(32, 0, 0, 0, 0, 0, 0);
      return buffers && offsets;
    }
"""
)
"""They ask for more by mmap, fork and dup."""


def greedy(folder: Path) -> bytes:
    (folder / "greedy.c").write_text(_SOURCE)
    command = ["cc", "-O1", "-shared", "-fPIC", *LINKING, "-ffreestanding", "-o", "greedy.so"]
    subprocess.run([*command, "greedy.c"], cwd=folder, check=True)
    return (folder / "greedy.so").read_bytes()


@pytest.mark.parametrize(
    ("entry", "status", "why"),
    [
        ("memory", Status.RESOURCE_EXCEEDED, "memory"),
        ("processes", Status.RESOURCE_EXCEEDED, "forbidden system call fork"),
        ("files", Status.RESOURCE_EXCEEDED, "forbidden system call dup"),
    ],
)
def test_a_greedy_kernel_harms_nobody(
    real_farm: RealFarm, tmp_path: Path, entry: str, status: Status, why: str
) -> None:
    code = greedy(tmp_path)
    tracker = real_farm.tracker()
    device = real_farm.device(tracker.address)
    client = real_farm.use(real_farm.lease(real_farm.ask(tracker.address)))
    client.ensure({**blobs(), Digest.of(code): code})
    taker = RunJob(
        artifact=Digest.of(code),
        entry=entry,
        buffers=(BufferSpec(name="y", role=Role.OUTPUT, nbytes=64),),
        timeout_seconds=10.0,
    )
    outcome = client.run(taker, request_id="greedy")
    assert isinstance(outcome, RunFailure)
    assert outcome.status is status
    assert why in outcome.why
    assert isinstance(client.run(job("increment"), request_id="after"), Measurement)
    assert device.alive
