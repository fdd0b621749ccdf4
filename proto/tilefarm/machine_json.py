"""The section `machine` of a target's JSON: a machine of another kind than VTA.

{"kind": "toy", "engines": [{"name": "mover"}, {"name": "adder", "instances": 2}],
"memories": [{"name": "left", "nbytes": 4096, "readers": ["adder"], "writers": ["mover"],
"dtypes": ["int8"]}]}
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, Final

from tilefarm.dtype import DType
from tilefarm.machine import VTA
from tilefarm.model import Engine, MachineModel, Memory

_LARGEST: Final = 1 << 40
"""Of numbers that anybody means."""


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
    for key in sorted(document.keys() - {"kind", "engines", "memories"}):
        reasons.append(f"machine.{key}: unknown key")
    engines = _rows(Engine, document.get("engines", []), "machine.engines", reasons)
    memories = _rows(Memory, document.get("memories", []), "machine.memories", reasons)
    if len(reasons) > before:
        return None
    return MachineModel(
        kind=str(kind),
        engines=tuple(Engine(**row) for row in engines),
        memories=tuple(Memory(**row) for row in memories),
    )


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


def _wrong(kind: str, value: object) -> str | None:
    """What a value is that a field of this type cannot be; None where it can."""
    if kind == "int":
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return None if is_number and 0 <= int(str(value)) <= _LARGEST else "no sensible number"
    if kind == "str":
        return None if isinstance(value, str) and value.isidentifier() else "no name"
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return "no list of names"
    known = {each.value for each in DType}
    is_dtypes = kind == "tuple[DType, ...]"
    return "not all types of elements" if is_dtypes and not known.issuperset(value) else None
