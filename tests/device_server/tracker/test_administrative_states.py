"""Whose word takes a device out of service is in the state that a tracker starts again from."""

from __future__ import annotations

from pathlib import Path

import pytest

from device_server.tracker.administrative_states import AdministrativeStates
from device_server.tracker.state_file import TrackerState
from device_server.tracker.table_state import TableChanges


def after_a_restart(standings: AdministrativeStates, file: Path) -> AdministrativeStates:
    kept = TrackerState(file, lambda event, **fields: None)
    kept.save(TableChanges(fence=1, standings=standings.changes()))
    kept.close()
    kept = TrackerState(file, lambda event, **fields: None)
    again = AdministrativeStates(2)
    again.restore(dict(kept.load().standings))
    kept.close()
    return again


def test_a_restart_gives_nobody_a_second_word(tmp_path: Path) -> None:
    standings, file = AdministrativeStates(2), tmp_path / "state.sqlite"
    for _ in range(4):
        standings.lost("sim0", user="ann", owner="tune", why="hangs")
        standings = after_a_restart(standings, file)
    assert (standings.of("sim0").losses, standings.of("sim0").lost_by) == (1, ("ann",))
    standings.lost("sim0", user="bob", owner="tune", why="hangs")
    standings.lost("sim0", user="eve", owner="tune", why="hangs")
    assert "eve: hangs" in after_a_restart(standings, file).of("sim0").quarantine


def test_a_readmission_is_told_until_the_device_beats_again() -> None:
    standings = AdministrativeStates(2)
    standings.quarantine("sim0", "it burns")
    standings.readmit("sim0")
    assert standings.of("sim0").serves
    assert [standings.tell_readmissions("sim0") for _ in range(4)] == [1, 1, 0, 0]
    standings.readmit("sim0")
    assert standings.tell_readmissions("sim0") == 2
    standings.readmit("sim0")
    assert [standings.tell_readmissions("sim0") for _ in range(3)] == [3, 3, 0]
    assert standings.tell_readmissions("sim1") == 0


@pytest.mark.parametrize("beats", [0, 1])
def test_one_that_registers_in_between_may_not_have_heard(beats: int) -> None:
    standings = AdministrativeStates(2)
    standings.readmit("sim0")
    for _ in range(beats):
        standings.tell_readmissions("sim0")
    standings.registered("sim0")
    assert [standings.tell_readmissions("sim0") for _ in range(3)] == [1, 1, 0]


def test_a_restart_forgets_no_readmission_that_nobody_heard_of(tmp_path: Path) -> None:
    standings, file = AdministrativeStates(2), tmp_path / "state.sqlite"
    standings.readmit("sim0")
    for _ in range(3):  # none of these answers may have arrived
        standings = after_a_restart(standings, file)
        assert standings.tell_readmissions("sim0") == 1
    assert standings.tell_readmissions("sim0") == 1
    standings = after_a_restart(standings, file)
    assert standings.tell_readmissions("sim0") == 0, "it beat twice: it has heard"
    standings.readmit("sim0")
    assert standings.tell_readmissions("sim0") == 2, "above what it heard before the restart"
