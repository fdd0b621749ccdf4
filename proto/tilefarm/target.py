"""Targets by name and from files: an accelerator and its host, declared.

What a target is made of is in `tilefarm.machine`, what it cannot be in `tilefarm.impossible`; the
built-in ones with a board are in `tilefarm.boards`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from tilefarm.boards import BOARDS
from tilefarm.documents import read_json
from tilefarm.errors import TargetError
from tilefarm.impossible import impossibilities
from tilefarm.machine import HLS_MAX_SHIFT, Board, BusTiming, Host, Limits, Target, VtaConfig
from tilefarm.machine_json import lanes_from_vta, machine_from_document
from tilefarm.processors import PROCESSORS, THREADS, this_processor, with_threads
from tilefarm.vta_config import is_vta_config, vta_config_target

__all__ = [
    "TARGETS",
    "Board",
    "BusTiming",
    "Host",
    "Limits",
    "Target",
    "VtaConfig",
    "built_in_targets",
    "impossibilities",
    "load_target",
    "target_from_document",
]

_HINT: Final = (
    "`tilefarm targets --show sim`, or `--show cpu`, prints a complete target to start from"
)

TARGETS: Final[Mapping[str, Target]] = {
    target.name: target
    for target in (
        Target(name="sim"),
        Target(name="sim-de10", timing=BusTiming(log_burst_beats=4)),
        Target(name="sim-mul", limits=Limits(alu_mul=True)),
        *BOARDS,
    )
}
"""Built-in accelerators by name: VTA's default geometry with the bursts of the Pynq and De10
shells, and the former with MUL in its ALU; then boards, each followed by its simulated twin on this
machine. Processors are in `tilefarm.processors`."""


def built_in_targets() -> dict[str, Target]:
    """All that have a name: TARGETS, then this machine's processor, and the known ones."""
    processors = (this_processor(), *PROCESSORS)
    return {**TARGETS, **{target.name: target for target in processors}}


def load_target(name_or_path: str) -> Target:
    """A built-in target by name, or the one that a JSON file describes.

    Behind a processor's name or file may stand how many threads compute together: cpu@2.
    The file has the layout that `Target.to_json` writes; a section that is absent has its defaults.
    Or it is the `vta_config.json` of the original hardware, see `tilefarm.vta_config`.

    Raises:
        TargetError: unknown name, unreadable file, unknown key, missing or impossible value. The
            message lists every reason.
    """
    if name_or_path in TARGETS:
        return TARGETS[name_or_path]
    name, _, threads = name_or_path.rpartition(THREADS)
    if name and threads.isdecimal():
        return with_threads(load_target(name), int(threads))
    path = Path(name_or_path)
    if not name_or_path.endswith(".json"):
        known = built_in_targets()
        if name_or_path in known:
            return known[name_or_path]
        raise TargetError(
            f"unknown target {name_or_path!r}", f"one of {', '.join(known)}, or a .json file"
        )
    try:
        document = read_json(path)
    except OSError as error:
        raise TargetError(f"cannot read target file {path}: {error.strerror}", _HINT) from None
    except ValueError as error:
        raise TargetError(f"target file {path} is not JSON: {error}", _HINT) from None
    return target_from_document(document, where=str(path))


def target_from_document(document: object, *, where: str) -> Target:
    """The target that a decoded JSON document describes; checked as `load_target` says."""
    reasons: list[str] = []
    if not isinstance(document, dict):
        raise TargetError(
            f"{where}: a target is a JSON object, not {type(document).__name__}", _HINT
        )
    if is_vta_config(document):
        return vta_config_target(document, where=where)
    name = document.get("name")
    if not isinstance(name, str) or not name:
        reasons.append("name: missing, or not a text")
    for key in sorted(document.keys() - {f.name for f in fields(Target)}):
        reasons.append(f"{key}: unknown key")
    described = document.get("machine")
    machine = None if described is None else machine_from_document(described, reasons)
    vta: dict[str, Any] = {}
    if described is None:
        vta = _section(VtaConfig, document.get("vta"), "vta", reasons, required=True)
    elif machine is not None and "vta" in document:
        machine = replace(machine, lanes=lanes_from_vta(document["vta"], reasons))
    timing = _section(BusTiming, document.get("timing", {}), "timing", reasons)
    host = _section(Host, document.get("host", {}), "host", reasons)
    limits = _section(Limits, document.get("limits", {}), "limits", reasons)
    board = _section(Board, document.get("board", {}), "board", reasons)
    if board.get("design") == "hls":
        limits = {"max_shift": HLS_MAX_SHIFT, **limits}
    if not reasons:
        target = Target(
            name=str(name),
            vta=VtaConfig(**vta) if machine is None else None,
            timing=BusTiming(**timing),
            host=Host(**host),
            limits=Limits(**limits),
            board=Board(**board),
            machine=machine,
        )
        reasons = impossibilities(target)
        if not reasons:
            return target
    raise TargetError(
        f"{where}: " + "; ".join(reasons),
        _HINT,
    )


def _section(
    kind: type, document: object, name: str, reasons: list[str], *, required: bool = False
) -> dict[str, Any]:
    """The fields of one section, checked for presence and type; problems go to `reasons`."""
    if document is None and required:
        reasons.append(f"{name}: missing section")
        return {}
    if not isinstance(document, dict):
        reasons.append(f"{name}: not a JSON object")
        return {}
    known = {f.name: str(f.type) for f in fields(kind)}
    reasons += [f"{name}.{key}: unknown key" for key in sorted(document.keys() - known.keys())]
    if required:
        reasons += [f"{name}.{key}: missing" for key in known if key not in document]
    for key, value in document.items():
        wanted = known.get(key)
        if wanted == "int" and (not isinstance(value, int) or isinstance(value, bool)):
            reasons.append(f"{name}.{key}: {value!r} is not an integer")
        elif wanted == "int" and not -(1 << 20) <= value <= 1 << 20:
            reasons.append(f"{name}.{key}: {value} is out of any sensible range")
        elif wanted == "str" and not isinstance(value, str):
            reasons.append(f"{name}.{key}: {value!r} is not a text")
        elif wanted == "bool" and not isinstance(value, bool):
            reasons.append(f"{name}.{key}: {value!r} is not true or false")
    return dict(document)
