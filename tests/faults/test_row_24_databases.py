"""Row 24: a database that is locked or damaged is told before anything is started, and kept.

Records come back from their copy; a tracker's state does from its devices.
"""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.farm.real_farm import CLI, RealFarm

from tuner.trial_store import TrialStore

from .tuning import tuning


def flip_a_page(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 2048)


def truncate(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def overwrite(path: Path) -> None:
    path.write_bytes(b"not a database" * 1000)


DAMAGES = pytest.mark.parametrize("damage", [flip_a_page, truncate, overwrite])


def settled(path: Path) -> None:
    """Bring what the write-ahead log holds into the file."""
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


@DAMAGES
def test_damaged_records_come_back_from_their_copy(
    real_farm: RealFarm, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    out, tracker = tmp_path / "out", real_farm.tracker()
    real_farm.device(tracker.address)
    with tuning(real_farm, tracker.address, out, 16) as first:
        assert first.end() == (0, "")
    settled(out / "records.sqlite")
    with TrialStore(out / "records.sqlite", read_only=True) as store:
        before = store.trials()
    damage(out / "records.sqlite")
    damaged = (out / "records.sqlite").read_bytes()
    with tuning(real_farm, tracker.address, out, 18) as second:
        assert "is back from its copy" in second.wait_for("notice")["text"]
        assert second.wait_for("trial")["number"] == len(before) + 1, "nothing is measured again"
        assert second.end() == (0, "")
    with TrialStore(out / "records.sqlite", read_only=True) as store:
        assert store.trials()[: len(before)] == before
    assert (out / "records.sqlite.damaged").read_bytes() == damaged


def test_damaged_records_without_a_copy(real_farm: RealFarm, tmp_path: Path) -> None:
    out, tracker = tmp_path / "out", real_farm.tracker()
    real_farm.device(tracker.address)
    with tuning(real_farm, tracker.address, out, 16) as first:
        assert first.end() == (0, "")
    settled(out / "records.sqlite")
    flip_a_page(out / "records.sqlite")
    (out / "records.sqlite.copy").unlink()
    damaged = (out / "records.sqlite").read_bytes()
    with tuning(real_farm, tracker.address, out, 16) as second:
        code, errors = second.end()
    assert code == 2
    assert "records.sqlite" in errors
    assert "move it away to begin anew" in errors
    assert "Traceback" not in errors
    assert (out / "records.sqlite").read_bytes() == damaged, "what can be saved is not touched"


@DAMAGES
def test_a_damaged_state_of_a_tracker(real_farm: RealFarm, damage: Callable[[Path], None]) -> None:
    tracker = real_farm.tracker()
    real_farm.device(tracker.address)
    real_farm.lease(real_farm.ask(tracker.address))
    assert tracker.end() == 0
    state = real_farm.folder / "tracker.sqlite"
    settled(state)
    damage(state)
    errors = refused(real_farm)
    assert "cannot keep the tracker's state" in errors
    assert "move the file away; devices then register anew" in errors
    state.unlink()
    again = real_farm.tracker(listen=tracker.address)
    assert real_farm.lease(real_farm.ask(again.address)).device.name == "sim0"


def test_a_state_that_somebody_else_holds(real_farm: RealFarm) -> None:
    real_farm.tracker()
    assert "database is locked" in refused(real_farm)


def test_records_that_another_run_writes(real_farm: RealFarm, tmp_path: Path) -> None:
    out, tracker = tmp_path / "out", real_farm.tracker()
    real_farm.device(tracker.address)
    with tuning(real_farm, tracker.address, out, 500) as first:
        first.wait_for("trial")
        with tuning(real_farm, tracker.address, out, 500) as second:
            code, errors = second.end()
        assert code == 2
        assert "another run is writing to" in errors
        first.wait_for("trial")


def refused(farm: RealFarm) -> str:
    """What a tracker says that cannot use the farm's state."""
    words = ["tracker", "--state", str(farm.folder / "tracker.sqlite")]
    ended = subprocess.run(
        [*CLI, *words, "--token-file", str(farm.token_file)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    return ended.stderr
