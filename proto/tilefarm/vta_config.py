"""The original hardware's `vta_config.json` as a target.

    {"TARGET": "pynq", "HW_VER": "0.0.2", "LOG_INP_WIDTH": 3, ..., "LOG_ACC_BUFF_SIZE": 17}

TARGET says which board it is, and so its bus, host, design and runtime; the LOG_* keys are the
geometry. As in the original, none of them has a default. HW_VER names a folder of bitstreams.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final

from tilefarm.boards import DE10_NANO, PYNQ_Z1, ULTRA96, ZCU104
from tilefarm.errors import TargetError
from tilefarm.impossible import impossibilities
from tilefarm.machine import Board, BusTiming, Target, VtaConfig

_KINDS: Final[Mapping[str, Target]] = {
    "sim": Target(name="sim"),
    "tsim": Target(
        name="tsim", timing=BusTiming(log_burst_beats=4), board=Board(runtime="original")
    ),
    "pynq": PYNQ_Z1,
    "de10nano": DE10_NANO,
    "ultra96": ULTRA96,
    "zcu104": ZCU104,
}
"""What TARGET means. tsim is built with the De10 shell and called by the original runtime."""

_GEOMETRY: Final = {f.name.upper(): f.name for f in fields(VtaConfig)}
_DERIVED: Final[Mapping[str, str]] = {
    "LOG_BLOCK_IN": "LOG_BLOCK",
    "LOG_BLOCK_OUT": "LOG_BLOCK",
    "LOG_OUT_WIDTH": "LOG_INP_WIDTH",
    "LOG_OUT_BUFF_SIZE": "LOG_ACC_BUFF_SIZE",
}
_HINT: Final = (
    "TARGET, HW_VER and the nine LOG_* keys of the original's vta_config.json;"
    " `tilefarm targets --show sim` prints a target with everything"
)
_MOST_LOG: Final = 28


def is_vta_config(document: Mapping[str, Any]) -> bool:
    """Whether a decoded JSON object has the keys of a `vta_config.json`."""
    return "TARGET" in document or not document.keys().isdisjoint(_GEOMETRY)


def vta_config_target(document: Mapping[str, Any], *, where: str) -> Target:
    """The target that a `vta_config.json` describes; named as the original names its models.

    Raises:
        TargetError: a key is missing, unknown or derived, or has an impossible value; the message
            lists every reason.
    """
    reasons = [*_unknown(document), *_wrong_values(document)]
    kind = document.get("TARGET")
    if kind == "intelfocl":
        reasons.append(
            "TARGET: 'intelfocl' is no target here, for nothing is known of its time; the"
            " built-in sim-mul has its MUL"
        )
    elif not isinstance(kind, str) or kind not in _KINDS:
        found = "missing" if kind is None else f"{kind!r}"
        reasons.append(f"TARGET: {found}; one of {', '.join(_KINDS)}")
    if not reasons:
        vta = VtaConfig(**{name: document[key] for key, name in _GEOMETRY.items()})
        target = replace(_KINDS[str(kind)], name=model_name(str(kind), vta), vta=vta)
        reasons = impossibilities(target)
        if not reasons:
            return target
    raise TargetError(f"{where}: " + "; ".join(reasons), _HINT)


def _unknown(document: Mapping[str, Any]) -> list[str]:
    known = {"TARGET", "HW_VER", *_GEOMETRY}
    return [
        f"{key}: follows from {_DERIVED[key]}, leave it out"
        if key in _DERIVED
        else f"{key}: unknown key"
        for key in sorted(document.keys() - known)
    ]


def _wrong_values(document: Mapping[str, Any]) -> list[str]:
    reasons = []
    for key in _GEOMETRY:
        value = document.get(key)
        if key not in document:
            reasons.append(f"{key}: missing")
        elif not isinstance(value, int) or isinstance(value, bool):
            reasons.append(f"{key}: {value!r} is not an integer")
        elif not 0 <= value <= _MOST_LOG:
            reasons.append(f"{key}: {value} is not within 0..{_MOST_LOG}; it is a power of two")
    if not isinstance(document.get("HW_VER", ""), str):
        reasons.append(f"HW_VER: {document['HW_VER']!r} is not a text")
    return reasons


def model_name(kind: str, vta: VtaConfig) -> str:
    """The original's name of a configuration, `pynq_1x16_i8w8a32_15_15_18_17` for example."""
    widths = f"i{1 << vta.log_inp_width}w{1 << vta.log_wgt_width}a{1 << vta.log_acc_width}"
    logs = (
        vta.log_uop_buff_size,
        vta.log_inp_buff_size,
        vta.log_wgt_buff_size,
        vta.log_acc_buff_size,
    )
    return f"{kind}_{vta.batch}x{vta.block}_{widths}_{'_'.join(map(str, logs))}"
