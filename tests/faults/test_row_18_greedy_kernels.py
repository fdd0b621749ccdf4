"""Row 18: kernels that take memory, processes, files or credit get none, and harm nobody."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from typing import Final

import pytest
from kit.farm.real_farm import RealFarm
from kit.kernels.c_kernels import SYSTEM_CALL, blobs, job
from kit.objects.foreign import LINKING
from tilefarm.digest import Digest
from tilefarm.measurement import BufferSpec, Measurement, Role, RunFailure, RunJob, Status

_SOURCE: Final = (
    SYSTEM_CALL
    + """
    #include <stdint.h>
    void* VTATLSCommandHandle(void);
    void* VTABufferCPUPtr(void*, void*);
    void VTASynchronize(void*, uint32_t);
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
    /* What the first buffer holds is said to whoever hears it, as if the child had. */
    int32_t credit(void* const* buffers, const int64_t* offsets) {
      void* commands = VTATLSCommandHandle();
      VTASynchronize(commands, 1u << 31);
      const char* frame = (const char*)VTABufferCPUPtr(commands, buffers[0]) + offsets[0];
      for (long fd = 3; fd < 16; ++fd) call(1, fd, (long)frame, NBYTES, 0, 0, 0);
      for (volatile int forever = 1; forever;) {}
      return 0;
    }
    int32_t files(void* const* buffers, const int64_t* offsets) {
      for (;;) call(32, 0, 0, 0, 0, 0, 0);
      return buffers && offsets;
    }
"""
)
"""They ask for more by mmap, fork and dup, and for credit by write."""

_ONE_CYCLE: Final = struct.pack("<BdB21QIQIBII", 2, 1e-6, 1, 1, *[0] * 20, 1, 1, 0, 0, 0, 0)
_FRAME: Final = struct.pack("<I", len(_ONE_CYCLE)) + _ONE_CYCLE
"""What a child says of a run that took one cycle: see `device_server.runner.frames`."""


def greedy(folder: Path) -> bytes:
    (folder / "greedy.c").write_text(_SOURCE)
    flags = ["-O1", "-shared", "-fPIC", *LINKING, "-ffreestanding", f"-DNBYTES={len(_FRAME)}"]
    subprocess.run(["cc", *flags, "-o", "greedy.so", "greedy.c"], cwd=folder, check=True)
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
        timeout_seconds=60.0,
    )
    outcome = client.run(taker, request_id="greedy")
    assert isinstance(outcome, RunFailure)
    assert outcome.status is status
    assert why in outcome.why
    assert isinstance(client.run(job("increment"), request_id="after"), Measurement)
    assert device.alive


def test_a_kernel_that_claims_one_cycle_gets_those_that_it_took(
    real_farm: RealFarm, tmp_path: Path
) -> None:
    code = greedy(tmp_path)
    tracker = real_farm.tracker()
    real_farm.device(tracker.address)
    client = real_farm.use(real_farm.lease(real_farm.ask(tracker.address)))
    client.ensure({**blobs(), Digest.of(code): code, Digest.of(_FRAME): _FRAME})
    claim = RunJob(
        artifact=Digest.of(code),
        entry="credit",
        buffers=(
            BufferSpec(name="x", role=Role.CONSTANT, nbytes=len(_FRAME), content=Digest.of(_FRAME)),
        ),
        timeout_seconds=60.0,
    )
    outcome = client.run(claim, request_id="claim")
    honest = client.run(job("increment"), request_id="honest")
    assert isinstance(outcome, Measurement)
    assert isinstance(honest, Measurement)
    assert outcome.counters == honest.counters, "both synchronize once, with nothing to do"
    assert outcome.counted.cycles > 1
