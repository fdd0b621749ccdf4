"""Hardware parameters of one accelerator and its host: the declarative target.

The VTA part has the keys of `vta_config.json` (apache/tvm-vta, hw/config) with the derived sizes of
`hw/include/vta/hw_spec_const.h`; the timing part describes the bus and the memory behind it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from tilefarm.digest import Digest
from tilefarm.errors import TargetError

_HINT: Final = "`tilefarm targets --show sim` prints a complete target to start from"
_VTA_WORD_BITS: Final = 32
_INSTRUCTION_INDEX_BITS: Final = 64
_ALU_FIXED_BITS: Final = 20
_LOG_UOP_BUFF_MOST: Final = 15
_LOG_BATCH_MOST: Final = 8
_SRAM_INDEX_BITS: Final = 16
_OUTSTANDING_BURSTS_MOST: Final = 256
_PAGE_NBYTES: Final = 4096
"""Buffers begin at pages, and addresses count elements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VtaConfig:
    """The accelerator's geometry, as powers of two; elements are int8 in, int32 accumulated."""

    log_batch: int = 0
    log_block: int = 4
    log_inp_width: int = 3
    log_wgt_width: int = 3
    log_acc_width: int = 5
    log_uop_buff_size: int = 15
    log_inp_buff_size: int = 15
    log_wgt_buff_size: int = 18
    log_acc_buff_size: int = 17

    @property
    def batch(self) -> int:
        """Rows of one input vector."""
        return 1 << self.log_batch

    @property
    def block(self) -> int:
        """Lanes of one vector: input and output channels of one GEMM tile."""
        return 1 << self.log_block

    @property
    def uop_nbytes(self) -> int:
        return 4

    @property
    def inp_nbytes(self) -> int:
        """Bytes of one INP element: a batch x block tile of int8."""
        return (self.batch * self.block << self.log_inp_width) // 8

    @property
    def wgt_nbytes(self) -> int:
        """Bytes of one WGT element: a block x block tile of int8."""
        return (self.block * self.block << self.log_wgt_width) // 8

    @property
    def acc_nbytes(self) -> int:
        """Bytes of one ACC element: a batch x block tile of int32."""
        return (self.batch * self.block << self.log_acc_width) // 8

    @property
    def out_nbytes(self) -> int:
        """Bytes of one OUT element: a batch x block tile of int8."""
        return self.inp_nbytes

    @property
    def uop_depth(self) -> int:
        return (1 << self.log_uop_buff_size) // self.uop_nbytes

    @property
    def inp_depth(self) -> int:
        return (1 << self.log_inp_buff_size) // self.inp_nbytes

    @property
    def wgt_depth(self) -> int:
        return (1 << self.log_wgt_buff_size) // self.wgt_nbytes

    @property
    def acc_depth(self) -> int:
        return (1 << self.log_acc_buff_size) // self.acc_nbytes

    def to_json(self) -> str:
        """The text of a `vta_config.json` with the same meaning."""
        upper = {key.upper(): value for key, value in asdict(self).items()}
        return json.dumps({"TARGET": "sim", **upper}, indent=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The bus and the DRAM behind it, as the cycle model needs them."""

    bus_nbytes: int = 8
    log_burst_beats: int = 8
    dram_delay_cycles: int = 16
    queue_entries: int = 512
    outstanding_bursts: int = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The processor next to the accelerator, for which objects are made."""

    triple: str = "x86_64-unknown-linux-gnu"
    cpu: str = "x86-64-v2"
    features: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the accelerator's programs must respect beyond buffer depths.

    `acc_distance`: an accumulator may be written again by the third micro-op at the earliest
    (runtime recorder, HLS pipeline). `kernel_uops`: micro-ops that may be resident at once; the RTL
    wraps its index at 2048 whatever the configuration says. `alu_mul`: the ALU has MUL, as VTA's
    specification says and its OpenCL design does; the Chisel and HLS designs lack it.
    """

    acc_distance: int = 3
    kernel_uops: int = 2048
    buffers: int = 2
    alu_mul: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One accelerator with its host: everything that a compiled program depends on."""

    name: str
    vta: VtaConfig = field(default_factory=VtaConfig)
    timing: Timing = field(default_factory=Timing)
    host: Host = field(default_factory=Host)
    limits: Limits = field(default_factory=Limits)

    @property
    def digest(self) -> Digest:
        """Identity of everything but the name.

        MUL counts where there is one: other targets keep the identity that is in their records.
        """
        document = asdict(self)
        del document["name"]
        if not self.limits.alu_mul:
            del document["limits"]["alu_mul"]
        return Digest.of_json(document)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)


TARGETS: Final[Mapping[str, Target]] = {
    t.name: t
    for t in (
        Target(name="sim"),
        Target(name="sim-de10", timing=Timing(log_burst_beats=4)),
        Target(name="sim-mul", limits=Limits(alu_mul=True)),
    )
}
"""Built-in targets by name: VTA's default geometry with the bursts of the Pynq and De10 shells, and
the former with MUL in its ALU."""


def load_target(name_or_path: str) -> Target:
    """A built-in target by name, or the one that a JSON file describes.

    The file has the layout that `Target.to_json` writes; a section that is absent has its defaults.

    Raises:
        TargetError: unknown name, unreadable file, unknown key, missing or impossible value. The
            message lists every reason.
    """
    if name_or_path in TARGETS:
        return TARGETS[name_or_path]
    path = Path(name_or_path)
    if not name_or_path.endswith(".json"):
        known = ", ".join(TARGETS)
        raise TargetError(f"unknown target {name_or_path!r}", f"one of {known}, or a .json file")
    try:
        document = json.loads(path.read_text())
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
    name = document.get("name")
    if not isinstance(name, str) or not name:
        reasons.append("name: missing, or not a text")
    for key in sorted(document.keys() - {f.name for f in fields(Target)}):
        reasons.append(f"{key}: unknown key")
    vta = _section(VtaConfig, document.get("vta"), "vta", reasons, required=True)
    timing = _section(Timing, document.get("timing", {}), "timing", reasons)
    host = _section(Host, document.get("host", {}), "host", reasons)
    limits = _section(Limits, document.get("limits", {}), "limits", reasons)
    if not reasons:
        target = Target(
            name=str(name),
            vta=VtaConfig(**vta),
            timing=Timing(**timing),
            host=Host(**host),
            limits=Limits(**limits),
        )
        reasons = impossibilities(target)
        if not reasons:
            return target
    raise TargetError(
        f"{where}: " + "; ".join(reasons),
        _HINT,
    )


def impossibilities(target: Target) -> list[str]:
    """Every reason why no hardware can have these parameters; empty when it can."""
    vta, timing, limits = target.vta, target.timing, target.limits
    reasons = [
        f"vta.{f.name}: {getattr(vta, f.name)} is negative"
        for f in fields(vta)
        if getattr(vta, f.name) < 0
    ]
    if reasons:
        return reasons
    if (vta.log_inp_width, vta.log_wgt_width, vta.log_acc_width) != (3, 3, 5):
        reasons.append("vta: element widths other than int8, int8 and int32 are not supported")
    logs = {
        "log_inp_buff_size": vta.log_inp_buff_size - vta.inp_nbytes.bit_length() + 1,
        "log_wgt_buff_size": vta.log_wgt_buff_size - vta.wgt_nbytes.bit_length() + 1,
        "log_acc_buff_size": vta.log_acc_buff_size - vta.acc_nbytes.bit_length() + 1,
        "log_uop_buff_size": vta.log_uop_buff_size - 2,
    }
    reasons += [
        f"vta.{key}: the buffer holds less than one element" for key, log in logs.items() if log < 0
    ]
    if vta.log_batch > _LOG_BATCH_MOST:
        reasons.append(f"vta.log_batch: {vta.log_batch}, at most {_LOG_BATCH_MOST}")
    if max(vta.inp_nbytes, vta.wgt_nbytes, vta.acc_nbytes) > _PAGE_NBYTES:
        reasons.append(f"vta: an element is larger than {_PAGE_NBYTES} bytes, a page")
    inp, wgt, acc, uop = logs.values()
    if max(inp, wgt, acc, uop) > _SRAM_INDEX_BITS:
        reasons.append(f"vta: a buffer has more than 2^{_SRAM_INDEX_BITS} elements")
    if acc + max(acc, inp) + wgt > _VTA_WORD_BITS:
        reasons.append("vta: buffer indices do not fit the 32 bits of a micro-op")
    if vta.log_uop_buff_size > _LOG_UOP_BUFF_MOST:
        reasons.append("vta.log_uop_buff_size: micro-op addresses do not fit an instruction")
    if 4 * acc + _ALU_FIXED_BITS > _INSTRUCTION_INDEX_BITS:
        reasons.append("vta: accumulator factors do not fit an ALU instruction")
    if 2 * (acc + inp + wgt) > _INSTRUCTION_INDEX_BITS:
        reasons.append("vta: index factors do not fit the 128 bits of an instruction")
    if timing.bus_nbytes not in (8, 16, 32, 64):
        reasons.append(f"timing.bus_nbytes: {timing.bus_nbytes} is not 8, 16, 32 or 64")
    if not 1 <= timing.log_burst_beats <= 8:
        reasons.append(f"timing.log_burst_beats: {timing.log_burst_beats} is not within 1..8")
    if timing.dram_delay_cycles < 0:
        reasons.append("timing.dram_delay_cycles: negative")
    if timing.queue_entries < 1 or timing.outstanding_bursts < 1:
        reasons.append("timing: queue_entries and outstanding_bursts are at least 1")
    if timing.outstanding_bursts > _OUTSTANDING_BURSTS_MOST:
        reasons.append(f"timing.outstanding_bursts: at most {_OUTSTANDING_BURSTS_MOST}")
    if limits.acc_distance < 1 or limits.kernel_uops < 1 or limits.buffers not in (1, 2):
        reasons.append("limits: acc_distance and kernel_uops are at least 1, buffers is 1 or 2")
    return reasons


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
