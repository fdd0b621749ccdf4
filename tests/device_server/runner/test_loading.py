"""Code that runs while its artifact is loaded, should the verifier ever let some pass."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import tilefarm
from kit.children.blobs import Blobs
from kit.farm.computing import computing
from kit.farm.in_process import eventually
from kit.kernels.c_kernels import SYSTEM_CALL
from kit.objects.foreign import LINKING
from tilefarm.digest import Digest
from tilefarm.measurement import Measurement, RunFailure, RunJob
from tilefarm.target import TARGETS

import device_server
from device_server.runner.children import Children
from device_server.runner.frames import load_request
from device_server.runner.runner import Runner
from device_server.runner.zygote import RunnerLimits
from device_server.vta.library.native import find_executable, find_library

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the calls below are those of x86-64"
)

SOURCE = (
    SYSTEM_CALL
    + """
__attribute__((constructor)) static void on_load(void) { CALLS; }
int entry(void) { return 0; }
"""
)

CALLS = {
    "thread": "call(56, 0x10f00, 0, 0, 0, 0, 0)",
    "process": "call(57, 0, 0, 0, 0, 0, 0)",
    "shared memory": "call(29, 0, 4096, 0600, 0, 0, 0)",
    "messages": "call(68, 0, 0600, 0, 0, 0, 0)",
    "semaphores": "call(64, 0, 1, 0600, 0, 0, 0)",
    "rights of files": 'call(452, -100, (long)"/nowhere", 0777, 0, 0, 0)',
    "signals to another": "call(234, 1, 1, 0, 0, 0, 0)",
    "signals by descriptors": "call(72, 0, 8, 1, 0, 0, 0)",
    "priorities": "call(141, 0, 0, 19, 0, 0, 0)",
    "processors": 'call(203, 0, 8, (long)"\\1\\0\\0\\0\\0\\0\\0", 0, 0, 0)',
    "files in memory": 'call(319, (long)"code", 0, 0, 0, 0, 0)',
    "code in memory": "call(9, 0, 4096, 5, 0x22, -1, 0)",
    "code that is written": "call(9, 0, 4096, 7, 0x22, -1, 0)",
    "memory made code": "call(10, (long)on_load & -4096, 4096, 5, 0, 0, 0)",
}
"""What a constructor may try: any of it ends the child."""

NAMES = {
    "thread": "clone",
    "process": "fork",
    "shared memory": "shmget",
    "messages": "msgget",
    "semaphores": "semget",
    "rights of files": "number 452",
    "signals to another": "tgkill",
    "signals by descriptors": "fcntl",
    "priorities": "setpriority",
    "processors": "sched_setaffinity",
    "files in memory": "memfd_create",
    "code in memory": "mmap",
    "code that is written": "mmap",
    "memory made code": "mprotect",
}

SERVER = """
import sys
from pathlib import Path
from tilefarm.target import TARGETS
from device_server.vta.library.native import find_executable, find_library
from device_server.runner.children import Children
from device_server.runner.frames import load_request
from device_server.runner.zygote import RunnerLimits
children = Children(TARGETS["sim"], library=find_library(), executable=find_executable(),
                    limits=RunnerLimits(), environment={})
with open(sys.argv[1], "rb") as artifact:
    child = children.child([load_request(artifact.fileno())])
    print(child.process.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def loading(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], bytes]:
    """An artifact whose constructor makes some calls."""
    folder = tmp_path_factory.mktemp("loading")

    def made(calls: str) -> bytes:
        (folder / "k.c").write_text(SOURCE.replace("CALLS", calls))
        command = ["cc", "-O1", "-shared", "-fPIC", *LINKING, "-o", "k.so", "k.c"]
        subprocess.run(command, cwd=folder, check=True)
        return (folder / "k.so").read_bytes()

    return made


@pytest.mark.parametrize("name", CALLS)
def test_what_loading_does_not_take_ends_the_child(
    name: str, loading: Callable[[str], bytes], blobs: Blobs, runner: Runner
) -> None:
    job = RunJob(artifact=blobs.put(loading(CALLS[name])), entry="entry", buffers=())
    outcome = runner.run(job, blobs.path)
    assert isinstance(outcome, RunFailure)
    assert outcome.signal == signal.SIGSYS
    assert f"forbidden system call {NAMES[name]}" in outcome.why


def test_the_limit_of_processor_time_is_there_before_the_artifact(
    loading: Callable[[str], bytes], blobs: Blobs
) -> None:
    limits = RunnerLimits(start_seconds=7.5, computing_seconds=60, threads=2)
    with Children(
        TARGETS["sim"],
        library=find_library(),
        executable=find_executable(),
        limits=limits,
        environment={},
    ) as children:
        path = blobs.path(blobs.put(loading("for (;;)")))
        with path.open("rb") as file, children.child([load_request(file.fileno())]) as child:
            pid = child.process.pid
            eventually(lambda: computing(pid))
            said = Path(f"/proc/{pid}/limits").read_text()
            assert child.has_time_for(50)  # with two threads, of 120
            assert not child.has_time_for(60)
    (line,) = (line for line in said.splitlines() if line.startswith("Max cpu time"))
    assert line.split()[3:5] == ["8", "120"]


def test_a_child_that_has_little_time_left_is_not_used_again(
    blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    job = RunJob(artifact=compiled["good"], entry="no_work", buffers=(), timeout_seconds=3.0)
    for seconds, again in ((60, True), (4, False)):
        limits = RunnerLimits(start_seconds=2.0, computing_seconds=seconds)
        with Runner(target=TARGETS["sim"], limits=limits) as runner:
            runner.run(job, blobs.path)
            outcome = runner.run(job, blobs.path)
            assert isinstance(outcome, Measurement)
            assert (outcome.load_seconds == 0) is again


@pytest.mark.parametrize(
    "calls",
    [
        "call(157, 1, 0, 0, 0, 0, 0); for (;;)",
        "call(13, 15, 0, 0, 8, 0, 0); for (;;)",
    ],
    ids=["asks not to die", "waits"],
)
def test_a_child_dies_with_its_server_whatever_it_does(
    calls: str, loading: Callable[[str], bytes], tmp_path: Path
) -> None:
    artifact = tmp_path / "k.so"
    artifact.write_bytes(loading(calls))
    folders = (Path(tilefarm.__file__).parents[1], Path(device_server.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(artifact)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        pid = int(server.stdout.readline())
        eventually(lambda: computing(pid))
        server.kill()
    eventually(lambda: not Path(f"/proc/{pid}").exists())
