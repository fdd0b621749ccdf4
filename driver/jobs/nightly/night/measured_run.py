"""What a run has left in its folder, as a night keeps it: times, answers, machine, schedules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from tilefarm.digest import Digest
from tilefarm.documents import read_json
from tilefarm.errors import InfraError
from tilefarm.measurement import DeviceClock

from driver.jobs.nightly.records import (
    Answers,
    ChosenSchedule,
    LayerSample,
    Machine,
    SampleTime,
)
from driver.report.rounds import RoundsTime, again_seconds
from driver.tune.chosen_schedules import read_schedules

_SUMMARY: Final = "summary.json"
_CHANGING: Final = frozenset({"clock", "sandbox"})
"""Labels that every device has, and that say nothing of its speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """One program, as a run has built and measured it.

    Attributes:
        code: the digest of the code that did, and of the libraries that it has used.
        model: of the model's file.
    """

    code: Digest
    model: Digest
    machine: Machine
    time: SampleTime
    answers: Answers
    schedules: tuple[ChosenSchedule, ...]


def is_whole(folder: Path) -> bool:
    """Whether the run has ended: nothing of it is left to do."""
    return _summary(folder).get("interrupted") is False


def measured_run(folder: Path) -> MeasuredRun | None:
    """What is there; None where no program was measured.

    Raises:
        InfraError: what is there cannot be understood: a fault of ours, or of the disk.
    """
    summary = _summary(folder)
    if summary.get("interrupted") is not False or not summary.get("accuracy"):
        return None
    try:
        schedules = read_schedules(folder / "schedules.json")
        versions = read_json(folder / "run.json").get("versions", {})
        return _measured(summary, versions, schedules)
    except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        raise InfraError(f"{folder}: not what a run leaves: {error!r}") from None


def _summary(folder: Path) -> Mapping[str, Any]:
    try:
        document = read_json(folder / _SUMMARY)
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _measured(
    summary: Mapping[str, Any], versions: Mapping[str, str], schedules: tuple[ChosenSchedule, ...]
) -> MeasuredRun | None:
    device = summary["device"]
    if not device:
        return None  # Its layers could not be timed, and nobody knows what has measured it.
    machine = _machine(summary, device)
    return MeasuredRun(
        code=Digest.of_json([summary["code"], versions]),
        model=Digest(summary["model_digest"]),
        machine=machine,
        time=_time(summary, machine.clock, schedules),
        answers=_answers(summary["accuracy"]),
        schedules=schedules,
    )


def _machine(summary: Mapping[str, Any], device: Mapping[str, str]) -> Machine:
    """Who counts cycles counts the same on every device of a target; a clock's seconds are those
    of one device, with its processor, its library, and how steady that runs.
    """
    clock, target = DeviceClock(device["clock"]), Digest(summary["target_digest"])
    labels = [
        label for label in device["labels"].split() if label.partition("=")[0] not in _CHANGING
    ]
    name, parts = f"{summary['target']}, in cycles", [" ".join(labels)]
    if clock is DeviceClock.SECONDS:
        here = device["processor"]
        name = ", ".join(filter(None, (device["name"], here)))
        # With another control times are others, as on another device.
        controls = [rounds["control_code"] for rounds in summary["network_rounds"][:1]]
        parts += [device["power"], here or device["runtime"], *controls]
    return Machine(name=name, target=target, configuration=Digest.of_json(parts), clock=clock)


def _time(
    summary: Mapping[str, Any], clock: DeviceClock, schedules: Iterable[ChosenSchedule]
) -> SampleTime:
    digests = {each.workload.name: each.trace.digest.short for each in schedules}
    layers = tuple(
        LayerSample(
            layer=layer["layer"],
            workload=layer["kernel"] if layer["kernel"] in digests else "",
            schedule=digests.get(layer["kernel"], ""),
            cost=_cost(layer, clock),
        )
        for layer in summary["profile"]["layers"]
    )
    began = datetime.fromisoformat(summary["began"]).timestamp()
    ended = began + summary["total_seconds"]
    if clock is DeviceClock.CYCLES:
        cycles = float(summary["network_cycles"])
        return SampleTime(cost=cycles, low=cycles, high=cycles, layers=layers, ended=ended)
    if not summary["network_rounds"]:
        took = summary["profile"]["network"]
        cost, low, high = (took[f"{name}_seconds"] for name in ("median", "p10", "p90"))
        return SampleTime(cost=cost, low=low, high=high, layers=layers, ended=ended)
    first, again = (RoundsTime(**rounds) for rounds in summary["network_rounds"])
    return SampleTime(
        cost=first.seconds,
        low=first.low,
        high=first.high,
        again=again_seconds(first, again),
        control=first.control,
        layers=layers,
        ended=ended,
    )


def _cost(layer: Mapping[str, Any], clock: DeviceClock) -> float | None:
    if clock is DeviceClock.CYCLES:
        return float(layer["cycles"]) if layer.get("cycles") else None
    return layer.get("median_seconds")


def _answers(accuracy: Mapping[str, Any]) -> Answers:
    first = next(iter(accuracy["compared"]), None)
    score = None if first is None else first["device"]
    known = score is not None and math.isfinite(score)
    return Answers(
        digest=Digest(accuracy["answers"]),
        differing=accuracy["differing"],
        measure=f"{first['name']} of {first['against']}" if first and known else "",
        score=score if known else None,
    )
