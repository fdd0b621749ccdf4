"""A zoo's history that nobody measured: two models on a simulator and a processor, for pages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tilefarm.digest import Digest
from tilefarm.measurement import DeviceClock

from driver.jobs.nightly.records import (
    Answers,
    Judged,
    LayerSample,
    Machine,
    Night,
    Order,
    Pass,
    Row,
    Sample,
    SampleTime,
    Verdict,
)
from driver.jobs.nightly.why import Explanation
from driver.jobs.nightly.zoo_history import RowHistory, ZooHistory

_BEGAN = datetime(2026, 1, 1, 21, tzinfo=UTC)
_STEP = 0.7
"""Where in the history a row gets three percent slower, as a share of its nights."""


def zoo_history(nights: int, models: int = 2, hostile: str = "") -> ZooHistory:
    """So many nights; every tenth has other code. `hostile` is a part of every name."""
    made = [_night(at) for at in range(nights)]
    rows = [
        _row(f"model{number}{hostile}", clock, made, hostile)
        for number in range(models)
        for clock in DeviceClock
    ]
    return ZooHistory(zoo=f"zoo{hostile}", nights=tuple(made), rows=tuple(rows))


def _night(at: int) -> Night:
    began = _BEGAN + timedelta(days=at)
    name = began.strftime("%Y-%m-%dT%H:%M:%SZ")
    return Night(name=name, zoo="zoo", began=began.timestamp(), ended=began.timestamp() + 700)


def _row(model: str, clock: DeviceClock, nights: list[Night], hostile: str) -> RowHistory:
    target = {DeviceClock.CYCLES: "sim", DeviceClock.SECONDS: "cpu"}[clock]
    row = Row(model, f"{target}{hostile}")
    step = nights[int(_STEP * len(nights))].name if nights else ""
    samples = [
        sample(row, clock, night, at, is_slow=night.name >= step) for at, night in enumerate(nights)
    ]
    if samples:
        last = samples[-1]
        time = replace(last.time, cost=last.time.low, high=last.time.low)
        samples.append(replace(last, part=Pass.FOUND, time=time))
    return RowHistory(
        row=row,
        samples=tuple(samples),
        judged=tuple(_judged(row, nights, step, hostile)),
        steps=(step,) if step else (),
        reasons={step: Explanation(lines=(f"1 commit{hostile}",), details=(("code", hostile),))},
    )


def sample(row: Row, clock: DeviceClock, night: Night, at: int, *, is_slow: bool = False) -> Sample:
    """One of the known schedules; a clock's has a spread, and swings a little."""
    unit = 1_234_567.0 if clock is DeviceClock.CYCLES else 8.7e-3
    swing = 0.004 * math.sin(at) if clock is DeviceClock.SECONDS else 0.0
    cost = unit * (1 + swing + 0.03 * is_slow)
    noise = 0.006 * cost if clock is DeviceClock.SECONDS else 0.0
    layers = tuple(
        LayerSample(layer=f"conv{n}", workload=f"conv2d_{n}", schedule=f"{n:012x}", cost=cost / 4)
        for n in range(3)
    )
    order = Order(
        version="0.1.0",
        commit=f"{at // 10:040x}",
        code=Digest.of(str(at // 10).encode()),
        model=Digest.of(row.model.encode()),
        data=Digest.of(b""),
    )
    machine = Machine(
        name=f"{row.target}-0", target=Digest.of(b"t"), configuration=Digest.of(b"c"), clock=clock
    )
    time = SampleTime(
        cost=cost, low=cost - noise, high=cost + noise, layers=layers, ended=night.began + 60
    )
    answers = Answers(digest=Digest.of(b"answers"), measure="top-1 of labels", score=0.8471)
    return Sample(
        night=night.name,
        row=row,
        part=Pass.KNOWN,
        order=order,
        machine=machine,
        schedules=Digest.of(b"s"),
        time=time,
        answers=answers,
    )


def _judged(row: Row, nights: list[Night], step: str, hostile: str) -> Iterator[Judged]:
    for at, night in enumerate(nights):
        verdict = Verdict.UNCHANGED
        if night.name == step:
            verdict = Verdict.SLOWER
        elif at == len(nights) - 1:
            every = list(Verdict)
            verdict = every[int(Digest.of(str(row).encode()).hex[:4], 16) % len(every)]
        yield Judged(
            night=night.name,
            row=row,
            verdict=verdict,
            change=0.03 if verdict is Verdict.SLOWER else 0.0,
            against=nights[max(0, at - 1)].name,
            why=f"conv1 takes 12.0 % more{hostile}" if verdict is Verdict.SLOWER else "",
        )
