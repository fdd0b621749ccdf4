"""The main job is interrupted, killed, or loses a part: what was measured is kept."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest
from kit.reports.observed import assert_sound_trace

from driver.processes import descendants

from .foreground import Command, demo, summary_of

pytestmark = pytest.mark.whole


def test_ctrl_c_once_keeps_what_was_measured(run: type[Command], tmp_path: Path) -> None:
    # One worker and one device: of two the other one may have run all that there was.
    few = ["--workers", "1", "--devices", "1"]
    command = run(demo(tmp_path / "o", "--no-ray", "--trials", "12", *few))
    command.wait_for("trial", 3)
    command.ctrl_c()
    code, out, err = command.end()
    assert code == 75
    assert "Traceback" not in err
    stopped = summary_of(next(line for line in out.splitlines() if '"summary"' in line))
    assert stopped["interrupted"]
    assert stopped["trials_this_session"] >= 3
    assert (tmp_path / "o" / "report.html").exists()
    assert_sound_trace((tmp_path / "o" / "trace.json").read_text(), ("driver", "sim0"))
    assert command.survivors() == set()

    # another number of trials would begin in another order, and lack some of what was measured
    code, out, _ = run(demo(tmp_path / "o", "--no-ray", "--trials", "12", *few)).end()
    assert code == 0
    assert summary_of(out)["trials_this_session"] == 12 - stopped["trials_this_session"]


@pytest.mark.parametrize(
    "ray", [["--no-ray"], pytest.param([], marks=pytest.mark.slow)], ids=["no-ray", "ray"]
)
def test_ctrl_c_twice_ends_at_once(run: type[Command], tmp_path: Path, ray: list[str]) -> None:
    command = run(demo(tmp_path / "o", *ray, "--trials", "500"))
    command.wait_for("trial", 2)
    command.ctrl_c()
    time.sleep(0.3)
    if command.process.poll() is None:
        command.ctrl_c()
    code, _, err = command.end()
    assert code in (130, 75), "75 when the first one was done already"
    assert "Traceback" not in err
    assert command.survivors() == set()


@pytest.mark.slow
def test_a_killed_driver_leaves_no_process_and_loses_no_trial(
    run: type[Command], tmp_path: Path
) -> None:
    command = run(demo(tmp_path / "o", "--no-ray", "--trials", "20"))
    number = command.wait_for("trial", 6)["number"]
    command.kill()
    command.end()
    assert command.survivors() == set()
    code, out, _ = run(demo(tmp_path / "o", "--no-ray", "--trials", "20")).end()
    assert code == 0
    assert summary_of(out)["trials_this_session"] <= 20 - number


def below(command: Command, words: str) -> list[int]:
    """Processes below a command whose command line has these words."""
    found = []
    for pid in descendants(command.process.pid):
        with contextlib.suppress(OSError):
            line = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
            if words in line:
                found.append(pid)
    return found


@pytest.mark.parametrize(
    ("words", "ray"),
    [
        pytest.param("--name sim0", False, marks=pytest.mark.slow),
        pytest.param("vta-runner", False, marks=pytest.mark.slow),
        pytest.param("driver.farm.compiling.worker", False, marks=pytest.mark.slow),
        pytest.param("raylet", True, marks=pytest.mark.slow),
    ],
)
def test_a_killed_part_costs_nothing_but_time(
    words: str, ray: bool, run: type[Command], tmp_path: Path
) -> None:
    command = run(demo(tmp_path / "o", *["--no-ray"] * (not ray), "--trials", "25"))
    command.wait_for("trial", 6)
    deadline = time.monotonic() + 60
    while not (pids := below(command, words)) and time.monotonic() < deadline:
        time.sleep(0.1)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # a runner that has just been replaced
            os.kill(pid, signal.SIGKILL)
    code, out, err = command.end()
    assert (code, err) == (0, "")
    summary = summary_of(out)
    assert summary["accuracy"]["differing"] == 0
    failed = [s for w in summary["workloads"] for s, _ in w["failures"]]
    # Only a killed runner looks like its kernel's fault; the kernel that takes a process's memory
    # is ended by the same signal.
    assert set(failed) <= {"run_crash", "resource_exceeded"}
