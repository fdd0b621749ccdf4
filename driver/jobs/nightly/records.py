"""What a history of nights is made of: what was measured with which code where, and the verdicts.

As in LNT (https://llvm.org/docs/lnt/concepts.html) an order says which code and which model, a
machine which device in which configuration, and a sample belongs to one of each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tilefarm.digest import Digest
from tilefarm.measurement import DeviceClock

from driver.tune.chosen_schedules import ChosenSchedule as ChosenSchedule


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """A row of the zoo: a model on a target, by their names in the zoo's file."""

    model: str
    target: str

    def __str__(self) -> str:
        return f"{self.model} on {self.target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What was compiled, by which code.

    Attributes:
        version: of tilefarm, as it is installed.
        commit: of its checkout, with "+" behind it where files differ from it; "" without one.
        code: the digest of its sources: two nights of one code cannot differ because of it.
        model, data: digests of the model's file and of what it is calibrated and scored with.
    """

    version: str
    commit: str
    code: Digest
    model: Digest
    data: Digest

    @property
    def digest(self) -> Digest:
        """What tells it from other orders."""
        parts = self.version, self.commit, self.code.hex, self.model.hex, self.data.hex
        return Digest.of_json(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The device that measured.

    Attributes:
        name: in words: of the device, and of the processor that it is or has.
        target: the digest of what it was compiled for.
        configuration: the digest of everything else that times there depend on.
        clock: what its times are told in.
    """

    name: str
    target: Digest
    configuration: Digest
    clock: DeviceClock

    @property
    def digest(self) -> Digest:
        """What tells it from other machines."""
        parts = self.name, self.target.hex, self.configuration.hex, self.clock.value
        return Digest.of_json(parts)


class Pass(StrEnum):
    """Which of a night's two measurements of a row."""

    KNOWN = "known"
    """The schedules that an earlier night has adopted, compiled by tonight's code."""
    FOUND = "found"
    """The best schedules that tonight's search knows, where they are better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSample:
    """What one layer of a program took, by itself.

    Attributes:
        workload: its name; "" for a layer of the processor beside an accelerator.
        schedule: the first digits of its trace's digest; "" without one.
        cost: cycles or seconds, by the machine's clock; None where nothing tells it.
    """

    layer: str
    workload: str
    schedule: str
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleTime:
    """What one batch of the whole network took, by the machine's clock.

    Attributes:
        cost: cycles, or the median's seconds.
        low, high: the tenth and the ninetieth percentile; `cost` where cycles are counted.
        again: what a second measurement gave, right after the first one; None without one. With a
            control it is in the first one's units: times of its control over the first one's.
        control: what a program that never changes took in the same rounds, so that what the machine
            did meanwhile is told from what the code does; None without one. See
            `driver.report.rounds`.
        layers: each by itself, in the order of execution.
        ended: wall seconds.
    """

    cost: float
    low: float
    high: float
    again: float | None = None
    control: float | None = None
    layers: tuple[LayerSample, ...] = ()
    ended: float

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.cost <= self.high < math.inf:
            raise ValueError(f"times of {self.low:g}, {self.cost:g}, {self.high:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What the network answered to the data of its row.

    Attributes:
        digest: of all of it.
        differing: samples whose answer is not bit for bit that of the integer reference.
        measure, score: how good it is, by the first measure; "" and None without one.
    """

    digest: Digest
    differing: int = 0
    measure: str = ""
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One measurement of a row: the whole network, assembled from given schedules.

    Attributes:
        night: its name, see `Night`.
        schedules: the digest of what each workload was compiled with.
    """

    night: str
    row: Row
    part: Pass
    order: Order
    machine: Machine
    schedules: Digest
    time: SampleTime
    answers: Answers


class Verdict(StrEnum):
    """What a night says of a row."""

    UNCHANGED = "UNCHANGED"
    FASTER = "FASTER"
    SLOWER = "SLOWER"
    CHANGED_ANSWER = "CHANGED_ANSWER"
    """The same network answers the same data otherwise, or worse than its gate."""
    UNSTABLE = "UNSTABLE"
    """It looks slower, or faster, and what was measured again or tomorrow's night decides."""
    INSUFFICIENT_HISTORY = "INSUFFICIENT_HISTORY"
    DEVICE_CHANGED = "DEVICE_CHANGED"
    NOT_MEASURED = "NOT_MEASURED"

    @property
    def fails(self) -> bool:
        """Whether somebody has to look."""
        return self in _FAILING


_FAILING: Final = frozenset({Verdict.SLOWER, Verdict.CHANGED_ANSWER, Verdict.NOT_MEASURED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The verdict of a row in a night.

    Attributes:
        change: of the cost against what it is compared with: 0.03 is three percent slower; None
            where nothing can be compared.
        against: the night it is compared with, the last one where there are several; "" for none.
        why: in words, for people: what moved, or why nothing was measured.
    """

    night: str
    row: Row
    verdict: Verdict
    change: float | None = None
    against: str = ""
    why: str = ""

    @property
    def is_quiet(self) -> bool:
        """Whether nobody has to hear of it; a change that its gate lets pass is told."""
        is_same = self.verdict is Verdict.UNCHANGED and not self.why
        return is_same or self.verdict is Verdict.INSUFFICIENT_HISTORY


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """One night.

    Attributes:
        name: when it began, in UTC: 2026-11-26T21:00:00Z.
        zoo: the name of the zoo.
        began, ended: wall seconds; `ended` is None as long as rows are left to do.
        why_ended: empty if everything was done; else what stopped it, in words.
        after: the night before it in the history that it was begun in; "" for the first. Clocks
            are set back: this says which night was later, whatever they told.
    """

    name: str
    zoo: str
    began: float
    ended: float | None = None
    why_ended: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Adoption:
    """The schedules that the nights after this one compile for a row.

    Attributes:
        night: in which they were measured beside those that they replace.
        schedules: their digest, see `Sample`.
        who: the search that found them, or a user.
        when: wall seconds.
    """

    row: Row
    night: str
    schedules: Digest
    who: str
    when: float


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Acceptance:
    """Somebody takes what a night measured as what a row costs from then on.

    Attributes:
        night: its name; later nights are compared with this one, and no longer with earlier ones.
        who: the user.
        when: wall seconds.
        why: in their words.
    """

    row: Row
    night: str
    who: str
    when: float
    why: str = ""
