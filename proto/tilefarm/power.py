"""What Linux says of how steady this machine's clock frequency is: its power supply and governors.

A processor on battery, or with a governor that follows the load, runs at one speed now and at
another one a second later: times of kernels then tell more about that than about the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SYSFS: Final = Path("/sys")
_STEADY: Final = "performance"
"""The governor that does not follow the load, see Linux's admin-guide/pm/cpufreq."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerState:
    """As sysfs has it.

    Attributes:
        on_battery: a battery discharges.
        governors: of all cores, each once, sorted; empty where none is told, as in most virtual
            machines.
    """

    on_battery: bool = False
    governors: tuple[str, ...] = ()

    @property
    def is_steady(self) -> bool:
        """Whether nothing is known that lets the frequency drift."""
        return not self.on_battery and set(self.governors) <= {_STEADY}

    @property
    def words(self) -> str:
        """For people."""
        supply = "on battery" if self.on_battery else "not on battery"
        governors = " and ".join(self.governors) or "not told"
        return f"{supply}, frequency governor {governors}"


def power_state(sysfs: Path = _SYSFS) -> PowerState:
    """Of this machine."""
    governors = {
        text
        for file in sysfs.glob("devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
        if (text := _text_of(file))
    }
    supplies = sysfs.glob("class/power_supply/*")
    return PowerState(
        on_battery=any(
            _text_of(supply / "type") == "Battery" and _text_of(supply / "status") == "Discharging"
            for supply in supplies
        ),
        governors=tuple(sorted(governors)),
    )


def _text_of(file: Path) -> str:
    """Nothing where it cannot be read: sysfs need not be there."""
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""
