"""What repeats from night to night, as bytes that a history keeps once, by their digest.

Orders, machines, answers, schedules, and the layers of devices that count cycles are the same for
weeks. A clock's times of layers are not; they are kept in single precision, far below their noise.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final, TypeVar

from tilefarm.digest import Digest, canonical_json
from tilefarm.documents import decoded
from tilefarm.measurement import DeviceClock
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from driver.jobs.nightly.records import Answers, ChosenSchedule, LayerSample, Machine, Order

Value = TypeVar("Value")

_PLAIN, _DEFLATED = b"=", b"z"
_EXACT, _SINGLE = b"d", b"f"
_NBYTES: Final = {_EXACT: 8, _SINGLE: 4}
_LEVEL: Final = 9


def packed(content: bytes) -> bytes:
    """As it is kept: deflated where that is shorter."""
    deflated = zlib.compress(content, _LEVEL)
    return _DEFLATED + deflated if len(deflated) < len(content) else _PLAIN + content


def unpacked(kept: bytes) -> bytes:
    """What `packed` was given.

    Raises:
        ValueError: it is nothing of the kind.
    """
    if kept[:1] not in (_PLAIN, _DEFLATED):
        raise ValueError("a content of no known form")
    try:
        return kept[1:] if kept[:1] == _PLAIN else zlib.decompress(kept[1:])
    except zlib.error as error:
        raise ValueError(str(error)) from None


def order_content(order: Order) -> bytes:
    """Canonical JSON."""
    digests = {"code": order.code.hex, "model": order.model.hex, "data": order.data.hex}
    return _text(asdict(order) | digests)


def read_order(content: bytes) -> Order:
    """What `order_content` made."""
    return _read(content, lambda d: Order(**_with_digests(d, "code", "model", "data")))


def machine_content(machine: Machine) -> bytes:
    """Canonical JSON."""
    digests = {"target": machine.target.hex, "configuration": machine.configuration.hex}
    return _text(asdict(machine) | digests)


def read_machine(content: bytes) -> Machine:
    """What `machine_content` made."""

    def made(document: dict[str, Any]) -> Machine:
        fields = _with_digests(document, "target", "configuration")
        return Machine(**fields | {"clock": DeviceClock(fields["clock"])})

    return _read(content, made)


def answers_content(answers: Answers) -> bytes:
    """Canonical JSON."""
    return _text(asdict(answers) | {"digest": answers.digest.hex})


def read_answers(content: bytes) -> Answers:
    """What `answers_content` made."""
    return _read(content, lambda d: Answers(**_with_digests(d, "digest")))


def schedule_content(chosen: ChosenSchedule) -> bytes:
    """Canonical JSON."""
    return _text(
        {
            "workload": json.loads(chosen.workload.to_json()),
            "trace": json.loads(chosen.trace.to_json()),
            "point": dict(chosen.point),
        }
    )


def read_schedule(content: bytes) -> ChosenSchedule:
    """What `schedule_content` made."""
    return _read(
        content,
        lambda document: ChosenSchedule(
            workload=Workload.from_json(json.dumps(document["workload"])),
            trace=Trace.from_json(json.dumps(document["trace"])),
            point=tuple(sorted(document["point"].items())),
        ),
    )


def set_content(schedules: Iterable[Digest]) -> bytes:
    """A set of schedules, by the digests of their contents."""
    return _text(sorted({each.hex for each in schedules}))


def read_set(content: bytes) -> list[Digest]:
    """The digests that `set_content` was given, sorted."""
    return _read(content, lambda document: [Digest(each) for each in document])


def layers_contents(layers: Sequence[LayerSample], clock: DeviceClock) -> tuple[bytes, bytes]:
    """Their names, and what they took: the names of a program stay when its times change."""
    names = _text([(each.layer, each.workload, each.schedule) for each in layers])
    kind = _EXACT if clock is DeviceClock.CYCLES else _SINGLE
    costs = [math.nan if each.cost is None else each.cost for each in layers]
    return names, kind + struct.pack(f"<{len(costs)}{kind.decode()}", *costs)


def read_layers(names: bytes, costs: bytes) -> tuple[LayerSample, ...]:
    """Raises ValueError where they are not what `layers_contents` made."""
    kind = costs[:1]
    if kind not in _NBYTES or (len(costs) - 1) % _NBYTES[kind]:
        raise ValueError("times of layers of no known form")
    numbers = struct.unpack(f"<{(len(costs) - 1) // _NBYTES[kind]}{kind.decode()}", costs[1:])

    def made(rows: list[tuple[str, str, str]]) -> tuple[LayerSample, ...]:
        return tuple(
            LayerSample(
                layer=layer,
                workload=workload,
                schedule=schedule,
                cost=None if math.isnan(cost) else cost,
            )
            for (layer, workload, schedule), cost in zip(rows, numbers, strict=True)
        )

    return _read(names, made)


def _text(document: object) -> bytes:
    return canonical_json(document).encode()


def _read(content: bytes, made: Callable[[Any], Value]) -> Value:
    """What JSON says.

    Raises:
        ValueError: it says something else; why.
    """
    try:
        return made(decoded(content))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a whole record: {error}") from None


def _with_digests(document: dict[str, Any], *names: str) -> dict[str, Any]:
    return document | {name: Digest(document[name]) for name in names}
