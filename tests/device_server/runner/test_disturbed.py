"""What a host did to a process while it was timed, on files that a test writes."""

from __future__ import annotations

import os
from pathlib import Path

from kit.search.toy_spaces import timed

from device_server.runner.disturbed import Disturbed, HostCounters, core_of, host_counters

PID = 7
TICKS = os.sysconf("SC_CLK_TCK")


def host(root: Path, *, preempted: int, stolen_seconds: int, khz: int) -> HostCounters:
    """One whose process, of a name with a parenthesis, runs on core 2."""
    files = {
        f"proc/{PID}/stat": f"{PID} (a) b) R " + " ".join(["0"] * 35) + " 2 0 0",
        f"proc/{PID}/status": f"Name:\ta) b\nnonvoluntary_ctxt_switches:\t{preempted}\n",
        "proc/stat": f"cpu  9 9\ncpu2 1 2 3 4 5 6 7 {stolen_seconds * TICKS} 9 10\nintr 3\n",
        "sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq": f"{khz}\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return host_counters(PID, root)


def test_what_the_host_counters_of_a_process_and_its_core(tmp_path: Path) -> None:
    counts = host(tmp_path, preempted=5, stolen_seconds=3, khz=3400000)
    assert counts == HostCounters(preemptions=5, stolen_seconds=3.0, mhz=3400.0)
    assert core_of(PID, tmp_path) == 2


def test_a_host_that_tells_nothing_disturbs_nothing(tmp_path: Path) -> None:
    silent = host_counters(PID, tmp_path)
    assert (silent, core_of(PID, tmp_path)) == (HostCounters(), None)
    time = timed(1e-5)
    assert Disturbed(silent, silent).told_in(time) == time


def test_a_time_says_what_disturbed_it(tmp_path: Path) -> None:
    before = host(tmp_path, preempted=5, stolen_seconds=3, khz=3400000)
    after = host(tmp_path, preempted=6, stolen_seconds=5, khz=2100000)
    time = Disturbed(before, after).told_in(timed(1e-5))
    assert (time.preemptions, time.stolen_seconds) == (1, 2.0)
    assert (time.begin_mhz, time.end_mhz) == (3400, 2100)
    assert Disturbed(before, after).words == (
        "its core was taken from it 1 time, a hypervisor took 2.00 s,"
        " its frequency went from 3400 to 2100 MHz"
    )


def test_a_frequency_that_hardly_moves_disturbs_nothing() -> None:
    moves = Disturbed(HostCounters(mhz=3400.0), HostCounters(mhz=3350.0))
    assert not moves.words
