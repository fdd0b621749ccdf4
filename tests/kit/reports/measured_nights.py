"""Samples of nights that nobody measured, for histories of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kit.search.stand_ins import toy_workload
from tilefarm.digest import Digest
from tilefarm.measurement import DeviceClock
from tilefarm.trace import Step, Trace

from driver.jobs.nightly.records import (
    Answers,
    ChosenSchedule,
    LayerSample,
    Machine,
    Order,
    Pass,
    Row,
    Sample,
    SampleTime,
)

ROW: Final = Row("digits", "sim")
BEGAN: Final = 1.8e9
DAY: Final = 86400.0


def chosen(number: int) -> tuple[ChosenSchedule, ...]:
    """A set of two schedules, of which one is in every set."""
    return tuple(
        ChosenSchedule(
            workload=toy_workload(lanes),
            trace=Trace((Step("split", ("i", factor)),)),
            point=(("x", factor),),
        )
        for lanes, factor in ((1, 7), (2, number))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a sample is made from: the rest is the same in all of them."""

    cost: float = 1000.0
    clock: DeviceClock = DeviceClock.CYCLES
    row: Row = ROW
    part: Pass = Pass.KNOWN
    machine: str = "board0"
    code: str = "a"
    answer: str = "yes"
    again: float | None = None
    layers: bool = True

    def sample(self, night: str, schedules: Digest, ended: float = BEGAN) -> Sample:
        """The sample of that night."""
        noise = 0.01 * self.cost if self.clock is DeviceClock.SECONDS else 0.0
        layer = LayerSample(layer="conv", workload="w", schedule="abc", cost=self.cost / 2)
        host = LayerSample(layer="softmax", workload="", schedule="", cost=None)
        return Sample(
            night=night,
            row=self.row,
            part=self.part,
            order=Order(
                version="0.1.0",
                commit=self.code,
                code=Digest.of(self.code.encode()),
                model=Digest.of(self.row.model.encode()),
                data=Digest.of(b"data"),
            ),
            machine=Machine(
                name=self.machine,
                target=Digest.of(b"target"),
                configuration=Digest.of(b"configuration"),
                clock=self.clock,
            ),
            schedules=schedules,
            time=SampleTime(
                cost=self.cost,
                low=self.cost - noise,
                high=self.cost + noise,
                again=self.again,
                layers=(layer, host) if self.layers else (),
                ended=ended,
            ),
            answers=Answers(
                digest=Digest.of(self.answer.encode()), measure="top-1 of labels", score=0.5
            ),
        )
