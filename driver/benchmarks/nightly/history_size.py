"""What a history takes: ten years of 50 models on 10 devices, and how soon it can be read.

Some nights are written as a night writes them, row by row; what they add to the file is scaled to
ten years. All devices have a clock: counted cycles repeat, and take less. Then a file of ten years
is made by repeating the rows of those nights, and opened.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from numpy.random import Generator, default_rng
from tilefarm.digest import Digest
from tilefarm.target import TARGETS
from tilefarm.workload import Workload

from compile_worker.space import generate
from driver.benchmarks.figures import Figure
from driver.benchmarks.nightly.simulated_nights import SAMPLE
from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.records import (
    ChosenSchedule,
    Judged,
    LayerSample,
    Row,
    Sample,
    SampleTime,
    Verdict,
)
from driver.program.vta.layers import RESNET18
from tuner.sampler import Sampler

MODELS: Final = 50
DEVICES: Final = 10
_YEARS: Final = 10
_LAYERS: Final = 50
_ADOPTED: Final = 0.05
"""Of row-nights that find better schedules, one of which is another than before."""
_STOCK: Final = 100
"""Schedules of each layer that are ever found."""
_SIM: Final = TARGETS["sim"]
_BEGAN: Final = 1.8e9
_DAY: Final = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much is written: nights, and how often they are there in the end."""

    nights: int
    repeats: int


def history_figures(scale: Scale, folder: Path, seed: int) -> Iterator[Figure]:
    """Writes into `folder`, which needs a gigabyte with the repeats of ten years.

    Args:
        scale: how much is written.
        folder: an empty one.
        seed: of what is made up.
    """
    path = folder / "history.sqlite"
    zoo = _Zoo(default_rng(seed))
    zoo.write(path, 1)
    first = path.stat().st_size
    began = time.perf_counter()
    zoo.write(path, scale.nights - 1)
    later = (scale.nights - 1) * MODELS * DEVICES
    seconds = (time.perf_counter() - began) / later
    each = (path.stat().st_size - first) / later
    yield Figure(name="history: a row of a night", value=each, unit="bytes")
    yield Figure(name="history: to add it", value=1000 * seconds, unit="ms")
    ten_years = (first + each * 365 * _YEARS * MODELS * DEVICES) / 1e9
    name = f"history: {_YEARS} years of {MODELS} models on {DEVICES} devices"
    yield Figure(name=name, value=ten_years, unit="GB", goal=1.0)
    _repeat(path, scale)
    nbytes = path.stat().st_size
    what = f"history of {nbytes / 1e9:.2f} GB"
    began = time.perf_counter()
    with History(path, read_only=True) as history:
        verdicts = history.verdicts(night=history.nights()[-1].name)
        opened = time.perf_counter() - began
        history.samples(row=verdicts[0].row, last=365)
        read = time.perf_counter() - began - opened
    name = f"{what}: to open it and read the last night's verdicts"
    yield Figure(name=name, value=opened, unit="s", goal=1.0)
    yield Figure(name=f"{what}: a row's last year", value=read, unit="s", goal=1.0)


def write_history(path: Path, scale: Scale, seed: int) -> None:
    """A history of that many nights, the repeats of the first ones among them.

    Args:
        path: the file, which is not there yet.
        scale: how much is written.
        seed: of what is made up.
    """
    _Zoo(default_rng(seed)).write(path, scale.nights)
    _repeat(path, scale)


class _Zoo:
    """What changes from night to night: times of all layers, as every device has a clock."""

    def __init__(self, chance: Generator) -> None:
        self._chance = chance
        self._layers = list(_layers(chance))
        self._rows = [
            Row(f"model{m:02}", f"device{d}") for m in range(MODELS) for d in range(DEVICES)
        ]
        self._sets = {row: [each.chosen(chance) for each in self._layers] for row in self._rows}
        self._nights = 0

    def write(self, path: Path, nights: int) -> None:
        """So many nights more, as they are written."""
        with History(path, "zoo") as history:
            for _ in range(nights):
                night = history.begin(_BEGAN + _DAY * self._nights)
                for row in self._rows:
                    schedules = history.keep(self._sets[row])
                    costs = self._chance.uniform(1e-6, 1e-2, _LAYERS)
                    sample = _sample(night.name, row, schedules, list(map(float, costs)))
                    history.add(sample)
                    history.judge(_verdict(sample, self._chance))
                    self._search(row)
                history.end(night.name, night.began + 3600)
                self._nights += 1

    def _search(self, row: Row) -> None:
        """What the night after this one finds otherwise."""
        if self._chance.random() < _ADOPTED:
            which = int(self._chance.integers(len(self._layers)))
            self._sets[row][which] = self._layers[which].chosen(self._chance)


def _sample(night: str, row: Row, schedules: Digest, costs: Sequence[float]) -> Sample:
    cost = sum(costs)
    layers = tuple(
        LayerSample(layer=f"layer_{n}", workload=f"w{n}", schedule=schedules.short, cost=each)
        for n, each in enumerate(costs)
    )
    time = SampleTime(
        cost=cost,
        low=0.99 * cost,
        high=1.01 * cost,
        again=1.001 * cost,
        control=0.1 * cost,
        layers=layers,
        ended=_BEGAN,
    )
    return replace(
        SAMPLE,
        night=night,
        row=row,
        machine=replace(SAMPLE.machine, name=row.target),
        order=replace(SAMPLE.order, commit=night, code=Digest.of(night.encode())),
        schedules=schedules,
        time=time,
        answers=replace(SAMPLE.answers, digest=Digest.of(row.model.encode())),
    )


def _verdict(sample: Sample, chance: Generator) -> Judged:
    """Most rows did not change; one of fifty has something to say."""
    verdict, why = Verdict.UNCHANGED, ""
    if chance.random() < 0.02:
        verdict = Verdict.UNSTABLE
        why = "3.0 % slower than the median of 10 nights; noise here is within 1.9 %"
    change = float(chance.normal(0, 0.01))
    return Judged(
        night=sample.night,
        row=sample.row,
        verdict=verdict,
        change=change,
        against=sample.night,
        why=why,
    )


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer of ResNet-18, and schedules of it among which a search finds better ones."""

    workload: Workload
    schedules: Sequence[ChosenSchedule]

    def chosen(self, chance: Generator) -> ChosenSchedule:
        """Any of them."""
        return self.schedules[int(chance.integers(len(self.schedules)))]


def _layers(chance: Generator) -> Iterator[_Layer]:
    for convolution in RESNET18.values():
        workload = convolution.workload(_SIM)
        made = generate(workload, _SIM)
        names = [variable.name for variable in made.space.tunables]
        points = Sampler(made.space).sample(_STOCK, chance)
        yield _Layer(
            workload,
            [
                ChosenSchedule(
                    workload=workload,
                    trace=made.trace(point),
                    point=tuple(sorted((name, point[name]) for name in names)),
                )
                for point in points
            ],
        )


def _repeat(path: Path, scale: Scale) -> None:
    """The same nights again and again, with times of layers that are new each time."""
    with History(path) as history:
        file = history.file
        (contents,) = file.query("SELECT max(id) FROM contents")[0]
        for number in range(1, scale.repeats):
            with file.writing():
                for sql in _REPEAT:
                    values = {
                        "nights": number * scale.nights,
                        "contents": number * contents,
                        "seconds": number * scale.nights * _DAY,
                        "last": scale.nights,
                    }
                    file.db.execute(sql, values)


_REPEAT: Final = (
    "INSERT INTO nights (id, name, began, ended, why_ended, after, place)"
    " SELECT id + :nights, name || :nights, began + :seconds, ended + :seconds, '', after,"
    " place + :nights FROM nights WHERE id <= :last",
    "INSERT INTO contents (id, digest, content) SELECT id + :contents, randomblob(16), content"
    " FROM contents WHERE id IN (SELECT costs FROM samples WHERE night <= :last)",
    "INSERT INTO samples SELECT night + :nights, row, part, machine, code, schedules, answers,"
    " layers, costs + :contents, cost, low, high, again, control, ended FROM samples"
    " WHERE night <= :last",
    "INSERT INTO verdicts SELECT night + :nights, row, verdict, change, against, why"
    " FROM verdicts WHERE night <= :last",
)
