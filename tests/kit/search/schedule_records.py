"""Records of schedules that nobody measured, for stores of them."""

from __future__ import annotations

from typing import Final

from kit.search.stand_ins import SIM, toy_workload
from tilefarm.digest import Digest
from tilefarm.measurement import WallTime

from tuner.schedule_store import ScheduleRecord

TIME: Final = WallTime(
    minimum_seconds=1e-3,
    p10_seconds=1e-3,
    median_seconds=2e-3,
    p90_seconds=3e-3,
    calls=1,
    regions=9,
)


def schedule_record(
    point: int = 0,
    *,
    lanes: int = 1,
    cycles: int | None = 100,
    ended: float = 1.0,
    target_name: str = "sim",
) -> ScheduleRecord:
    """A schedule of a toy workload; without cycles it took TIME."""
    return ScheduleRecord(
        target=SIM.digest,
        target_name=target_name,
        workload=toy_workload(lanes),
        trace=Digest.of(b"%d" % point),
        point=(("x", point),),
        cycles=cycles,
        wall_time=None if cycles else TIME,
        device="sim0",
        version="0.1.0",
        ended=ended,
    )
