"""The section `machine` of a target's JSON: a machine of another kind than VTA.

{"kind": "toy", "engines": [{"name": "mover"}, {"name": "adder", "instances": 2}],
"memories": [{"name": "left", "nbytes": 4096, "readers": ["adder"], "writers": ["mover"],
"dtypes": ["int8"]}], "lanes": {"batch": 1, "block": 16}}
"""

from __future__ import annotations

from dataclasses import MISSING, asdict, fields
from typing import Any, Final

from tilefarm.dtype import DType
from tilefarm.machine import VTA, VtaConfig
from tilefarm.model import Engine, Lanes, MachineModel, Memory

_LARGEST: Final = 1 << 40
"""Of numbers that anybody means."""
_LOG_LANES_MOST: Final = 8


def machine_from_document(document: object, reasons: list[str]) -> MachineModel | None:
    """The machine that a decoded JSON object describes; what is wrong with it goes to `reasons`."""
    before = len(reasons)
    if not isinstance(document, dict):
        reasons.append("machine: not a JSON object")
        return None
    kind = document.get("kind")
    if not isinstance(kind, str) or not kind:
        reasons.append("machine.kind: missing, or not a text")
    elif kind == VTA:
        reasons.append(f"machine.kind: {VTA} is described by the section vta alone")
    for key in sorted(document.keys() - {field.name for field in fields(MachineModel)}):
        reasons.append(f"machine.{key}: unknown key")
    engines = _rows(Engine, document.get("engines", []), "machine.engines", reasons)
    memories = _rows(Memory, document.get("memories", []), "machine.memories", reasons)
    lanes = _rows(Lanes, [document.get("lanes", {})], "machine.lanes", reasons)
    counters = document.get("counters", [])
    if not isinstance(counters, list) or not all(_is_name(each) for each in counters):
        reasons.append(f"machine.counters: {counters!r} is no list of names")
    threads = document.get("threads", 1)
    if (why := _wrong("int", threads)) is not None:
        reasons.append(f"machine.threads: {threads!r} is {why}")
    if len(reasons) > before:
        return None
    return MachineModel(
        kind=str(kind),
        threads=int(threads),
        engines=tuple(Engine(**row) for row in engines),
        memories=tuple(Memory(**row) for row in memories),
        lanes=Lanes(**lanes[0]),
        counters=tuple(counters),
    )


def lanes_from_vta(document: object, reasons: list[str]) -> Lanes:
    """Blocks as they were said before machines had `lanes`: in the section `vta`, as logarithms."""
    usual = asdict(VtaConfig())
    logs = {"log_batch": usual["log_batch"], "log_block": usual["log_block"]}
    if not isinstance(document, dict):
        reasons.append("vta: not a JSON object")
        return Lanes()
    for key, value in document.items():
        if key not in logs:
            if value != usual.get(key, object()):
                reasons.append(
                    f"vta.{key}: this machine is no VTA, and has the batch and block alone"
                )
        elif type(value) is not int or not 0 <= value <= _LOG_LANES_MOST:
            reasons.append(f"vta.{key}: {value} is not within 0..{_LOG_LANES_MOST}")
        else:
            logs[key] = value
    return Lanes(batch=1 << logs["log_batch"], block=1 << logs["log_block"])


def _rows(kind: type, document: object, where: str, reasons: list[str]) -> list[dict[str, Any]]:
    """The fields of each object of a list, of the types that the record has."""
    if not isinstance(document, list) or not all(isinstance(row, dict) for row in document):
        reasons.append(f"{where}: not a list of JSON objects")
        return []
    return [_row(kind, row, f"{where}[{at}]", reasons) for at, row in enumerate(document)]


def _row(kind: type, row: dict[str, Any], where: str, reasons: list[str]) -> dict[str, Any]:
    known = {field.name: field for field in fields(kind)}
    reasons += [f"{where}.{key}: unknown key" for key in sorted(row.keys() - known.keys())]
    made: dict[str, Any] = {}
    for name, field in known.items():
        if name not in row:
            if field.default is MISSING:
                reasons.append(f"{where}.{name}: missing")
            continue
        value = row[name]
        made[name] = tuple(value) if isinstance(value, list) else value
        if (why := _wrong(str(field.type), value)) is not None:
            reasons.append(f"{where}.{name}: {value!r} is {why}")
        elif name == "dtypes":
            made[name] = tuple(DType(each) for each in value)
    return made


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.isidentifier()


def _wrong(kind: str, value: object) -> str | None:
    """What a value is that a field of this type cannot be; None where it can."""
    if kind == "int":
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return None if is_number and 0 <= int(str(value)) <= _LARGEST else "no sensible number"
    if kind == "str":
        return None if _is_name(value) else "no name"
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return "no list of names"
    known = {each.value for each in DType}
    is_dtypes = kind == "tuple[DType, ...]"
    return "not all types of elements" if is_dtypes and not known.issuperset(value) else None
