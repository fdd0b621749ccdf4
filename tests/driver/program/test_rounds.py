"""A program is timed in rounds on one device, each right after its control."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import pytest
from kit.reports.profiles import a_program
from kit.search.schedule_records import TIME
from tilefarm.errors import InfraError
from tilefarm.measurement import Measurement, WallTime
from tilefarm.target import load_target

from driver.campaign.job_runner import JobRunner
from driver.farm.device_messages import Order, RunEnded
from driver.program.model import NetworkProgram
from driver.program.rounds import ROUNDS, timed_in_rounds
from driver.report.rounds import RoundsTime


@dataclass
class Machine:
    """Answers every order, slower each time; the control takes half as long as the program."""

    program: NetworkProgram
    devices: Sequence[str] = ("d0",)
    is_timed: bool = True
    at_most: int | None = None
    orders: list[Order] = field(default_factory=list)

    def run(self, orders: Sequence[Order], *, at_most: int | None) -> list[RunEnded]:
        self.at_most = at_most
        self.orders += orders
        return [self._ended(order) for order in orders]

    def _ended(self, order: Order) -> RunEnded:
        is_program = order.job.entry == self.program.entry
        round_number = 0 if self.program.target.has_accelerator else order.number // 2
        seconds = (1e-3 if is_program else 5e-4) * 1.01**round_number
        device = self.devices[order.number % len(self.devices)]
        found = Measurement(
            artifact=order.job.artifact,
            device=device,
            counters=None,
            wall_time=_time(seconds) if self.is_timed else None,
        )
        return RunEnded(number=order.number, device=device, result=found)

    def timed(self) -> tuple[RoundsTime, RoundsTime] | None:
        return timed_in_rounds(
            self.program,
            {"x": np.zeros((1, 4), np.float32)},
            cast(JobRunner, self),
            limit_seconds=1.0,
            run_id="run",
        )


def _time(seconds: float) -> WallTime:
    return replace(
        TIME,
        minimum_seconds=seconds,
        p10_seconds=seconds,
        median_seconds=seconds,
        p90_seconds=seconds,
    )


def test_a_processor_s_program_is_timed_beside_its_control() -> None:
    machine = Machine(replace(a_program(), target=load_target("cpu:x86-64-v4")))
    timed = machine.timed()
    assert timed is not None
    first, again = timed
    assert again.seconds > 1.1 * first.seconds, "the machine got slower"
    assert first.relative == pytest.approx(2.0)
    assert again.relative == pytest.approx(2.0)
    assert machine.at_most == 1
    assert len(machine.orders) == 4 * ROUNDS
    assert [order.number for order in machine.orders] == list(range(4 * ROUNDS))
    assert len({order.request_id for order in machine.orders}) == 4 * ROUNDS
    assert first.control_code == machine.orders[0].job.artifact.hex


def test_beside_an_accelerator_there_is_no_control() -> None:
    machine = Machine(a_program())
    timed = machine.timed()
    assert timed is not None
    assert timed[0] == RoundsTime(seconds=1e-3, low=1e-3, high=1e-3)
    assert len(machine.orders) == 2 * ROUNDS


def test_times_of_two_devices_are_none() -> None:
    assert Machine(a_program(), devices=("d0", "d1")).timed() is None


def test_a_device_that_times_nothing_is_said() -> None:
    with pytest.raises(InfraError, match="device d0 times nothing"):
        Machine(a_program(), is_timed=False).timed()
