"""Nothing of a tenant's kernels is left for the next: no process, no memory, no accelerator."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from kit.built import needs_c_kernels
from kit.farm.real_farm import RealFarm
from kit.objects.foreign import LINKING
from tilefarm.digest import Digest
from tilefarm.measurement import BufferSpec, Measurement, Role, RunJob

from device_server.device.client import DeviceClient

pytestmark = needs_c_kernels

_SOURCE: Final = """
    #include <stdint.h>
    enum { ACC = 3, OUT = 4, ADD = 2, COMPUTE = 2, STORE = 3, MARK = 0x5A, MORE = 1 << 20 };
    void* VTATLSCommandHandle(void);
    void* VTABufferAlloc(uint64_t);
    void* VTABufferCPUPtr(void*, void*);
    int VTAPushALUOp(void**, int (*)(void*), void*, int);
    void VTAUopPush(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, int32_t);
    void VTAStoreBuffer2D(void*, uint32_t, uint32_t, void*, uint32_t, uint32_t, uint32_t, uint32_t);
    int VTADepPush(void*, int, int);
    int VTADepPop(void*, int, int);
    void VTASynchronize(void*, uint32_t);

    static volatile uint8_t visits;
    static void* handle;
    static int count(void* unused) {
      (void)unused;
      VTAUopPush(1, 0, 0, 0, 0, ADD, 1, 7);
      return 0;
    }
    static uint8_t found(const uint8_t* bytes, long nbytes) {
      uint8_t some = 0;
      for (long at = 0; at < nbytes; ++at) some |= bytes[at];
      return some;
    }
    static void mark(uint8_t* bytes, long nbytes) {
      for (volatile long at = 0; at < nbytes; ++at) bytes[at] = MARK;
    }

    /* What it finds goes into y: its visits, and what was in its scratch, its output, memory that
       is new to it, and the accelerator's accumulator, which it adds 7 to. It marks all of that. */
    int32_t leave(void* const* buffers, const int64_t* offsets) {
      void* commands = VTATLSCommandHandle();
      uint8_t* s = (uint8_t*)VTABufferCPUPtr(commands, buffers[0]) + offsets[0];
      uint8_t* y = (uint8_t*)VTABufferCPUPtr(commands, buffers[1]) + offsets[1];
      uint8_t* more = (uint8_t*)VTABufferCPUPtr(commands, VTABufferAlloc(MORE));
      uint8_t seen[4] = {visits, found(s, 64), found(y, 64), found(more, MORE)};
      VTAPushALUOp(&handle, count, 0, 0);
      VTADepPush(commands, COMPUTE, STORE);
      VTADepPop(commands, COMPUTE, STORE);
      VTAStoreBuffer2D(commands, 0, OUT, buffers[1], (uint32_t)(offsets[1] / 16 + 1), 1, 1, 1);
      VTASynchronize(commands, 1u << 31);
      for (int at = 0; at < 4; ++at) y[at] = seen[at];
      mark(s, 64);
      mark(y + 32, 32);
      mark(more, MORE);
      visits = visits + 1;
      return 0;
    }
"""
_VISITS, _ACCUMULATOR = 0, 16


@pytest.fixture
def code(tmp_path: Path) -> bytes:
    (tmp_path / "leave.c").write_text(_SOURCE)
    command = ["cc", "-O1", "-shared", "-fPIC", *LINKING, "-ffreestanding", "-o", "leave.so"]
    subprocess.run([*command, "leave.c"], cwd=tmp_path, check=True)
    return (tmp_path / "leave.so").read_bytes()


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[RealFarm]:
    with ExitStack() as stack:
        farm = RealFarm(tmp_path)
        stack.callback(farm.close)
        yield farm


def seen(client: DeviceClient, code: bytes, request: str) -> bytes:
    """What a kernel finds, and leaves, in one run."""
    job = RunJob(
        artifact=Digest.of(code),
        entry="leave",
        buffers=(
            BufferSpec(name="s", role=Role.SCRATCH, nbytes=64),
            BufferSpec(name="y", role=Role.OUTPUT, nbytes=64, fetch=True),
        ),
    )
    outcome = client.run(job, request_id=request, blobs={Digest.of(code): code})
    assert isinstance(outcome, Measurement), outcome
    return dict(outcome.outputs)["y"]


def test_what_a_kernel_leaves_is_gone_with_its_lease(farm: RealFarm, code: bytes) -> None:
    """The next tenant runs the very same artifact."""
    tracker = farm.tracker()
    farm.device(tracker.address)
    asked = farm.ask(tracker.address)
    found = []
    for _ in range(2):
        lease = farm.lease(asked)
        client = farm.use(lease)
        first, second = seen(client, code, "r1"), seen(client, code, "r2")
        assert first[:4] == bytes(4), "visits, scratch, output, new memory"
        assert second[_VISITS] == 1, "within a lease the child is the same: there is what to find"
        found.append(first)
        asked.release(lease)
    assert found[0] == found[1]
    assert found[0][_ACCUMULATOR] == 7
