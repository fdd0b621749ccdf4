"""Two runs that want all devices of a farm: both go on, on half of them each."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kit.farm.in_process import eventually
from kit.farm.real_farm import CLI, RealFarm

DEVICES = ("sim0", "sim1")
TRIALS = 60
"""That the second run is let measure before it is looked who measured how many."""


class Run:
    """`tilefarm demo`, whose events go to a file."""

    def __init__(self, farm: RealFarm, tracker: str, out: Path) -> None:
        self._said = out.with_suffix(".json")
        shown = ["--tracker", tracker, "--token-file", str(farm.token_file), "--out", str(out)]
        words = ["--json", "--no-ray", "--workers", "1", "--devices", "2", "--trials", "100000"]
        with self._said.open("wb") as stdout:
            self.process = subprocess.Popen(
                [*CLI, "demo", *shown, *words],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def told(self, event: str) -> int:
        """How many events of a kind there were."""
        assert self.process.poll() is None, "it has ended"
        return self._said.read_text().count(f'"event": "{event}"')


@contextmanager
def running(farm: RealFarm, tracker: str, out: Path) -> Iterator[Run]:
    run = Run(farm, tracker, out)
    try:
        yield run
    finally:
        run.process.kill()
        run.process.wait()


def ran(farm: RealFarm) -> list[tuple[str, str, str]]:
    """When, where and for which run: all that ran on the devices, in order."""
    found = re.compile(r"at=(\S+) .*event=ran .*run=(\S+) .*device=(\S+) ")
    return sorted(
        (match[1], match[3], match[2])
        for name in DEVICES
        for line in (farm.folder / f"{name}.log").read_text().splitlines()
        if (match := found.search(line))
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_runs_go_on_at_the_same_time_on_a_device_each(
    real_farm: RealFarm, tmp_path: Path
) -> None:
    tracker = real_farm.tracker()
    for name in DEVICES:
        real_farm.device(tracker.address, name=name)
    with running(real_farm, tracker.address, tmp_path / "first") as first:
        eventually(lambda: first.told("device_joined") == 2, seconds=120.0)
        with running(real_farm, tracker.address, tmp_path / "second") as second:
            eventually(lambda: second.told("device_joined") >= 1, seconds=120.0)
            before = first.told("trial"), second.told("trial")
            eventually(lambda: second.told("trial") >= before[1] + TRIALS, seconds=240.0)
            both = first.told("trial") - before[0], second.told("trial") - before[1]
            assert first.told("device_left") == 1, "one device moved, once"
            assert second.told("device_left") == 0
        eventually(lambda: first.told("device_joined") == 3, seconds=120.0)
    share = both[1] / sum(both)
    assert 0.3 <= share <= 0.7, f"the second run measured {both[1]} of {sum(both)} trials"
    places: dict[str, set[str]] = {}
    for _, device, run in ran(real_farm):
        places.setdefault(run, set()).add(device)
    assert list(map(len, places.values())) == [2, 1], "the second had one device, and kept it"
