"""What a host did to a process while its kernels were timed, as Linux counts it.

preempted   `nonvoluntary_ctxt_switches` of /proc/PID/status, see proc(5)
stolen      the eighth number of the core's line in /proc/stat, in clock ticks
frequency   scaling_cur_freq of the core, in kHz; few virtual machines have it
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tilefarm.measurement import WallTime, disturbances_in_words
from tilefarm.process_state import process_state

_STOLEN: Final = 8
_ROOT: Final = Path("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCounters:
    """At one moment; zeros where the host tells nothing."""

    preemptions: int = 0
    stolen_seconds: float = 0.0
    mhz: float = 0.0


@dataclass(frozen=True, slots=True)
class Disturbed:
    """Between two moments."""

    before: HostCounters
    after: HostCounters

    @property
    def words(self) -> str:
        """For people; empty if nothing is known."""
        return disturbances_in_words(
            self._preemptions, self._stolen_seconds, self.before.mhz, self.after.mhz
        )

    def told_in(self, time: WallTime) -> WallTime:
        """The time that was taken between them, with what disturbed it."""
        return replace(
            time,
            preemptions=self._preemptions,
            stolen_seconds=self._stolen_seconds,
            begin_mhz=self.before.mhz,
            end_mhz=self.after.mhz,
        )

    @property
    def _preemptions(self) -> int:
        return max(0, self.after.preemptions - self.before.preemptions)

    @property
    def _stolen_seconds(self) -> float:
        return max(0.0, self.after.stolen_seconds - self.before.stolen_seconds)


def host_counters(pid: int, root: Path = _ROOT) -> HostCounters:
    """Now: of a process, and of the core on which it runs, or ran last."""
    core = core_of(pid, root)
    khz = _text_of(root / f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq")
    return HostCounters(
        preemptions=_number_after(
            "nonvoluntary_ctxt_switches:", _text_of(root / f"proc/{pid}/status"), 1
        ),
        stolen_seconds=_number_after(f"cpu{core}", _text_of(root / "proc/stat"), _STOLEN)
        / os.sysconf("SC_CLK_TCK"),
        mhz=int(khz) / 1000 if khz.strip().isdigit() else 0.0,
    )


def core_of(pid: int, root: Path = _ROOT) -> int | None:
    """The core on which a process runs, or ran last; None where nobody tells it."""
    try:
        return process_state(pid, root / "proc").core
    except OSError:
        return None


def _number_after(key: str, text: str, place: int) -> int:
    """The number at a place of the line that begins with a key; 0 if there is none."""
    for line in text.splitlines():
        words = line.split()
        if words and words[0] == key:
            return int(words[place]) if len(words) > place and words[place].isdigit() else 0
    return 0


def _text_of(file: Path) -> str:
    """Nothing where it cannot be read: the process may have ended."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
