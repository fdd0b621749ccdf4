"""Row 22: Ctrl-C once ends what runs and keeps it, twice ends at once; the search can go on."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

from kit.farm.real_farm import RealFarm, gone

from driver.processes import descendants
from tuner.trial_store import TrialStore

from .fault_rows import Stopwatch
from .tuning import tuning


def test_once(real_farm: RealFarm, tmp_path: Path, stopwatch: Stopwatch) -> None:
    out, tracker = tmp_path / "out", real_farm.tracker()
    real_farm.device(tracker.address)
    with tuning(real_farm, tracker.address, out, 500) as driver:
        driver.wait_for("trial", 5)
        children = descendants(driver.process.pid)
        with stopwatch.running():
            driver.process.send_signal(signal.SIGINT)
            driver.wait_for("step_ended")
        code, errors = driver.end()
    assert code == 75
    assert "Traceback" not in errors
    assert gone(children)
    assert json.loads((out / "summary.json").read_text())["interrupted"]
    assert (out / "report.html").exists()
    assert resumes(real_farm, tracker.address, out)


def test_twice(real_farm: RealFarm, tmp_path: Path, stopwatch: Stopwatch) -> None:
    out, tracker = tmp_path / "out", real_farm.tracker()
    real_farm.device(tracker.address)
    with tuning(real_farm, tracker.address, out, 500) as driver:
        driver.wait_for("trial", 5)
        children = descendants(driver.process.pid)
        with stopwatch.running():
            os.kill(driver.process.pid, signal.SIGINT)
            time.sleep(0.1)
            if driver.process.poll() is None:
                os.kill(driver.process.pid, signal.SIGINT)
            code, errors = driver.end()
    assert code in (75, 130), "75 if the first one was done already"
    assert "Traceback" not in errors
    assert gone(children)
    assert resumes(real_farm, tracker.address, out)


def resumes(farm: RealFarm, tracker: str, out: Path) -> bool:
    """Whether the same command goes on with the trial after the last one that was kept."""
    with TrialStore(out / "records.sqlite", read_only=True) as store:
        kept = store.count()
    with tuning(farm, tracker, out, 500) as driver:
        return bool(driver.wait_for("trial")["number"] == kept + 1)
