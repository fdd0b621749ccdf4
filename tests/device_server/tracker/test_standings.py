"""Whose word takes a device out of service is in the state that a tracker starts again from."""

from __future__ import annotations

from pathlib import Path

from device_server.tracker.standings import Standings
from device_server.tracker.state_file import TrackerState
from device_server.tracker.table_state import TableChanges


def after_a_restart(standings: Standings, file: Path) -> Standings:
    kept = TrackerState(file, lambda event, **fields: None)
    kept.save(TableChanges(fence=1, standings=standings.changes()))
    kept.close()
    kept = TrackerState(file, lambda event, **fields: None)
    again = Standings(2)
    again.restore(dict(kept.load().standings))
    kept.close()
    return again


def test_a_restart_gives_nobody_a_second_word(tmp_path: Path) -> None:
    standings, file = Standings(2), tmp_path / "state.sqlite"
    for _ in range(4):
        standings.lost("sim0", user="ann", owner="tune", why="hangs")
        standings = after_a_restart(standings, file)
    assert (standings.of("sim0").losses, standings.of("sim0").lost_by) == (1, ("ann",))
    standings.lost("sim0", user="bob", owner="tune", why="hangs")
    standings.lost("sim0", user="eve", owner="tune", why="hangs")
    assert "eve: hangs" in after_a_restart(standings, file).of("sim0").quarantine
