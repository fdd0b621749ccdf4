"""What a child said before it died is heard, however late the request comes."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest

from device_server.runner_child import ChildGone, RunnerChild, RunnerLimits
from device_server.runner_frames import Fault


def a_child(folder: Path, last_words: str) -> RunnerChild:
    """A child that sends a fault frame, or nothing, and is dead when this returns."""
    executable = folder / "child"
    executable.write_text(
        dedent(f"""\
            #!{sys.executable}
            import os, struct, sys
            fault = struct.pack("<BiiQQiB", 4, 31, 0, 0, 2**64 - 1, 9, 0)
            {last_words}
            """)
    )
    executable.chmod(0o700)
    child = RunnerChild(executable, folder / "no-library", RunnerLimits())
    deadline = time.monotonic() + 20
    while child.alive and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not child.alive
    return child


def test_a_fault_is_heard_after_a_request_to_the_dead(tmp_path: Path) -> None:
    said = 'os.write(int(sys.argv[1]), struct.pack("<I", len(fault)) + fault)'
    child = a_child(tmp_path, said)
    try:
        reply = child.load(tmp_path / "artifact.so", 5.0)
    finally:
        child.close()
    assert isinstance(reply, Fault)
    assert (reply.signal, reply.system_call) == (31, 9)


def test_a_child_that_said_nothing_is_gone(tmp_path: Path) -> None:
    child = a_child(tmp_path, "pass")
    try:
        with pytest.raises(ChildGone):
            child.load(tmp_path / "artifact.so", 5.0)
    finally:
        child.close()
