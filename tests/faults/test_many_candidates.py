"""A long search takes no more memory, files or processes than its records explain."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kit.built import needs_c_kernels
from kit.farm.real_farm import RealFarm, Served, gone

from driver.processes import descendants

from .tuning import tuning

CANDIDATES = int(os.environ.get("SOAK_CANDIDATES", "1000"))
WARM = 300
"""Candidates after which everything is loaded that will be."""
PER_CANDIDATE_NBYTES = 50e6 / 10_000
ROUNDING_NBYTES = 8 << 20
"""What an allocator keeps or gives back as it likes."""


def resident_nbytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_files(pid: int) -> int:
    return len([*Path(f"/proc/{pid}/fd").iterdir()])


@pytest.mark.slow
@pytest.mark.timeout(300 + CANDIDATES)
@needs_c_kernels
def test_many_candidates_leave_nothing_but_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with RealFarm(tmp_path, tls=True) as farm:
        tune_many(farm, tmp_path, capsys)


def tune_many(real_farm: RealFarm, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tracker = real_farm.tracker()
    servers: dict[str, Served] = {"tracker": tracker}
    for name in ("sim0", "sim1"):
        servers[name] = real_farm.device(tracker.address, name=name)
    pids = {name: server.pid for name, server in servers.items()}
    words = ("--devices", "2", "--proposer", "random", "--seed", "1")
    with tuning(real_farm, tracker.address, tmp_path / "out", CANDIDATES, *words) as driver:
        pids["driver"] = driver.process.pid
        driver.wait_for("trial", WARM)
        before = {name: (resident_nbytes(pid), open_files(pid)) for name, pid in pids.items()}
        children = {name: len(descendants(pid)) for name, pid in pids.items()}
        driver.wait_for("trial", CANDIDATES - WARM - 10)
        left = descendants(driver.process.pid)
        after = {name: (resident_nbytes(pid), open_files(pid)) for name, pid in pids.items()}
        many = {name: len(descendants(pid)) for name, pid in pids.items()}
        assert driver.end() == (0, "")
    with capsys.disabled():
        for name in pids:
            grown = (after[name][0] - before[name][0]) / 1e6
            print(f"\n{name} grew by {grown:.1f} MB over {CANDIDATES - WARM} candidates", end="")
    bound = PER_CANDIDATE_NBYTES * CANDIDATES + ROUNDING_NBYTES
    for name in pids:
        assert after[name][0] - before[name][0] <= bound, name
        assert after[name][1] <= before[name][1] + 8, f"files of {name}"
        assert many[name] <= children[name] + 2, f"children of {name}"
    assert gone(left)
    blobs = [*(real_farm.folder / "sim0").glob("incoming/*")]
    assert not blobs
