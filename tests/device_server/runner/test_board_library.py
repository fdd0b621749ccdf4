"""A board's own library goes on calling the driver whose device it has opened; nothing else may."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.children.blobs import Blobs
from tilefarm.digest import Digest
from tilefarm.measurement import BufferSpec, Measurement, Role, RunFailure, RunJob, Status
from tilefarm.target import TARGETS

from device_server.runner.runner import Runner

SOURCE = Path(__file__).with_name("board.c")
STDIN, STDERR = 0, 2


@pytest.fixture
def on_board(tmp_path: Path) -> Iterator[Runner]:
    library = tmp_path / "libvta.so"
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *flags, "-o", library, SOURCE], check=True)
    with Runner(target=TARGETS["sim"], library=library) as runner:
        yield runner


def test_a_buffer_that_a_driver_must_give_is_given(
    on_board: Runner, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    out = BufferSpec(name="out", role=Role.OUTPUT, nbytes=64, fetch=True)
    job = RunJob(artifact=compiled["good"], entry="no_work", buffers=(out,), samples=2)
    outcome = on_board.run(job, blobs.path)
    assert isinstance(outcome, Measurement), outcome
    assert outcome.outputs == (("out", bytes(128)),)


@pytest.mark.parametrize("descriptor", [STDIN, STDERR, -1])
def test_what_the_library_did_not_open_is_not_called(
    on_board: Runner, blobs: Blobs, compiled: dict[str, Digest], descriptor: int
) -> None:
    content = blobs.put(struct.pack("<q", descriptor))
    given = BufferSpec(name="descriptor", role=Role.CONSTANT, nbytes=8, content=content)
    job = RunJob(artifact=compiled["asks"], entry="asks", buffers=(given,))
    outcome = on_board.run(job, blobs.path)
    assert isinstance(outcome, RunFailure)
    assert outcome.status is Status.RUN_CRASH
    assert outcome.why == "asks returned 1"
