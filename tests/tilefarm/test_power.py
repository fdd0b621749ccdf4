"""Power supplies and frequency governors, from folders that look like sysfs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tilefarm.power import PowerState, power_state


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


def governor(core: int) -> str:
    return f"devices__system__cpu__cpu{core}__cpufreq__scaling_governor"


def test_a_machine_that_tells_nothing_is_not_blamed(tmp_path: Path) -> None:
    state = power_state(tmp_path)
    assert state == PowerState()
    assert state.is_steady
    assert state.words == "not on battery, frequency governor not told"


@pytest.mark.parametrize(("status", "drains"), [("Discharging", True), ("Full", False)])
def test_a_battery_counts_where_it_drains(tmp_path: Path, status: str, drains: bool) -> None:
    write(
        tmp_path,
        class__power_supply__BAT0__type="Battery",
        class__power_supply__BAT0__status=status,
        class__power_supply__AC__type="Mains",
    )
    state = power_state(tmp_path)
    assert (state.on_battery, state.is_steady) == (drains, not drains)


def test_a_governor_that_follows_the_load_is_named(tmp_path: Path) -> None:
    write(tmp_path, **{governor(0): "performance", governor(1): "powersave"})
    state = power_state(tmp_path)
    assert state.words == "not on battery, frequency governor performance and powersave"
    assert not state.is_steady
    write(tmp_path, **{governor(1): "performance"})
    assert power_state(tmp_path).is_steady
