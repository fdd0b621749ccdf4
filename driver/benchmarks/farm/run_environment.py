"""A search with compile places and devices as `tilefarm tune` has them, nothing in between."""

from __future__ import annotations

from pathlib import Path

from tilefarm.clock import Clock

from driver.benchmarks.farm.devices import TARGET
from driver.benchmarks.farm.searching import FarmSearch, SearchSetup, asleep, layer_tasks, search
from driver.farm.run_resources import Folders, RunResources
from driver.farm.settings import FarmSettings


def search_with(
    settings: FarmSettings,
    trials: int,
    *,
    records: Path,
    clock: Clock,
    farm: tuple[int, ...] = (),
    are_asleep: bool = False,
) -> FarmSearch:
    """Search for so many trials; logs and scratch files lie beside the records.

    The work of the processes `farm` counts as the farm's. Devices that `are_asleep` run nothing.

    Raises:
        NoDeviceError, FarmFault: see `searching.search`.
    """
    tasks = layer_tasks(TARGET)
    if are_asleep:
        tasks = {name: asleep(task) for name, task in tasks.items()}
    folders = Folders(scratch=records.parent, log=records.parent)
    with RunResources(settings, TARGET, folders, owner="bench", clock=clock) as resources:
        return search(
            tasks,
            resources.executor,
            resources.leases,
            SearchSetup(devices=settings.devices, workers=settings.workers, trials=trials),
            records=records,
            clock=clock,
            farm=lambda: farm,
        )
