"""A row's process is stopped in its time, does not outlive the night, and says why it failed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tilefarm.errors import OutputError
from tilefarm.interpreter import python_command

from driver.jobs.nightly.night.row_process import RowEnd, RowProcesses, keep_end, kept_end

SLEEP = "import time; time.sleep(60)"


def test_the_last_words_are_those_of_the_command(tmp_path: Path) -> None:
    code = (
        "import sys; print('done'); print('a warning', file=sys.stderr);"
        "print('tilefarm tune: no device: none is left', file=sys.stderr);"
        "print('  try: another', file=sys.stderr); sys.exit(3)"
    )
    end = RowProcesses().run(python_command("-c", code), tmp_path / "tune.log", 60.0)
    assert end == RowEnd(code=3, said="no device: none is left")
    assert (tmp_path / "tune.log").read_text() == "done\n"


def test_a_process_whose_time_is_over_is_stopped(tmp_path: Path) -> None:
    end = RowProcesses().run(python_command("-c", SLEEP), tmp_path / "tune.log", 0.2)
    assert end.is_stopped
    assert end.code != 0


def test_after_a_stop_nothing_begins(tmp_path: Path) -> None:
    runner = RowProcesses()
    runner.stop()
    end = runner.run(python_command("-c", "print(1)"), tmp_path / "tune.log", 60.0)
    assert end.is_stopped
    assert not (tmp_path / "tune.log").exists()


def test_a_log_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written"):
        RowProcesses().run(python_command("-c", ""), tmp_path / "no" / "tune.log", 60.0)


def test_it_does_not_outlive_a_night_that_is_killed(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    child = f"import os, time; os.write({writing}, str(os.getpid()).encode()); time.sleep(60)"
    night = (
        "from pathlib import Path\n"
        "from driver.jobs.nightly.night import row_process\n"
        "import subprocess\n"
        "started = subprocess.Popen\n"
        f"subprocess.Popen = lambda *a, **k: started(*a, **k, pass_fds=({writing},))\n"
        "row_process.RowProcesses().run(\n"
        f"    {python_command('-c', child)!r}, Path({str(tmp_path / 'tune.log')!r}), 60.0\n"
        ")\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", night], pass_fds=(writing,))
    os.close(writing)
    assert os.read(reading, 32)  # the child runs
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert os.read(reading, 1) == b""  # the child has let go of it
    os.close(reading)


def test_an_end_is_kept(tmp_path: Path) -> None:
    assert kept_end(tmp_path) is None
    end = RowEnd(code=70, said="why", is_stopped=True)
    keep_end(tmp_path, end)
    assert kept_end(tmp_path) == end
