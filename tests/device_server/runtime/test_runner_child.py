"""The connection to a child that dies faster than it is spoken to."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tilefarm.digest import Digest
from tilefarm.measurement import RunJob

from device_server.runner.child import ChildGone, RunnerChild, RunnerLimits
from device_server.runner.frames import Fault

LAST_WORDS = """
    import os, struct, sys
    words = struct.pack("<BiiQQiB", 4, 11, 1, 16, 2**64 - 1, -1, 0)
    os.write(int(sys.argv[1]), struct.pack("<I", len(words)) + words)
"""


@contextmanager
def dead_child(folder: Path, script: str) -> Iterator[RunnerChild]:
    executable = folder / "runner"
    lines = "\n".join(line.strip() for line in script.splitlines())
    executable.write_text(f"#!{sys.executable} -I\n{lines}\n")
    executable.chmod(0o755)
    with closing(RunnerChild(executable, folder, RunnerLimits())) as child:
        child.wait()
        yield child


def test_the_last_words_of_a_child_that_is_dead_already_are_heard(tmp_path: Path) -> None:
    job = RunJob(artifact=Digest.of(b""), entry="entry", buffers=())
    with dead_child(tmp_path, LAST_WORDS) as child, (tmp_path / "runner").open() as file:
        reply = child.run(job, [file.fileno()], 5.0)
        assert isinstance(reply, Fault)
        assert reply.signal == signal.SIGSEGV
        with pytest.raises(ChildGone):
            child.load(tmp_path, 5.0)


def test_a_child_that_died_without_a_word_is_gone(tmp_path: Path) -> None:
    with dead_child(tmp_path, "") as child, pytest.raises(ChildGone):
        child.load(tmp_path, 5.0)
