"""What a target is made of: its machine, bus, host, limits, and what its board really runs.

The VTA part has the keys of `vta_config.json` (apache/tvm-vta, hw/config) with the derived sizes of
`hw/include/vta/hw_spec_const.h`; the timing part describes the bus and the memory behind it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from tilefarm.digest import Digest
from tilefarm.dtype import DType
from tilefarm.errors import TargetError
from tilefarm.model import CPU, Engine, Lanes, MachineModel, Memory

DESIGNS: Final = ("chisel", "hls")
"""Descriptions of VTA that hardware is made from."""

RUNTIMES: Final = ("tilefarm", "original")
"""Libraries with the functions of VTA's runtime."""

VTA: Final = "vta"
"""The kind of machine whose geometry a `VtaConfig` says."""

VTA_COUNTERS: Final = (
    "cycles",
    "instructions",
    "gemm_uops",
    "alu_uops",
    "load_busy_cycles",
    "compute_busy_cycles",
    "store_busy_cycles",
    "inp_load_nbytes",
    "wgt_load_nbytes",
    "acc_load_nbytes",
    "uop_load_nbytes",
    "out_store_nbytes",
    "load_token_stall_cycles",
    "load_queue_stall_cycles",
    "load_memory_stall_cycles",
    "compute_token_stall_cycles",
    "compute_queue_stall_cycles",
    "compute_memory_stall_cycles",
    "store_token_stall_cycles",
    "store_queue_stall_cycles",
    "store_memory_stall_cycles",
)
"""What VTA's library counts, in the order of `tilefarm_vta_counters`.

Bytes moved by kind, padding excluded. Every cycle of a module (load, compute, store) is busy,
stalled by a cause, or idle: between two instructions or after the last one. Causes: `token`, the
next instruction waits for another module; `queue`, it is not fetched yet; `memory`, a started
instruction waits for DRAM. So busy + stalls + idle = cycles.
"""

HLS_MAX_SHIFT: Final = 15
"""The HLS design takes shifts as signed numbers of five bits."""


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
    def lanes(self) -> Lanes:
        """The blocks that tensors lie in."""
        return Lanes(batch=self.batch, block=self.block)

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

    @property
    def model(self) -> MachineModel:
        """VTA as a machine: three modules that run side by side, and the memories between them."""
        return MachineModel(
            kind=VTA,
            lanes=self.lanes,
            counters=VTA_COUNTERS,
            engines=tuple(Engine(name=name) for name in ("load", "compute", "store")),
            memories=(
                Memory(
                    name="uop",
                    nbytes=1 << self.log_uop_buff_size,
                    alignment=self.uop_nbytes,
                    readers=("compute",),
                    writers=("compute",),
                ),
                Memory(
                    name="inp",
                    nbytes=1 << self.log_inp_buff_size,
                    alignment=self.inp_nbytes,
                    readers=("compute",),
                    writers=("load",),
                    dtypes=(DType.INT8,),
                ),
                Memory(
                    name="wgt",
                    nbytes=1 << self.log_wgt_buff_size,
                    alignment=self.wgt_nbytes,
                    readers=("compute",),
                    writers=("load",),
                    dtypes=(DType.INT8,),
                ),
                Memory(
                    name="acc",
                    nbytes=1 << self.log_acc_buff_size,
                    alignment=self.acc_nbytes,
                    readers=("compute", "store"),
                    writers=("compute",),
                    dtypes=(DType.INT32,),
                ),
            ),
        )

    def to_json(self) -> str:
        """The text of a `vta_config.json` with the same meaning."""
        upper = {key.upper(): value for key, value in asdict(self).items()}
        return json.dumps({"TARGET": "sim", **upper}, indent=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class BusTiming:
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
    specification says and its OpenCL design does; the Chisel and HLS designs lack it. `max_shift`:
    by how many bits one ALU instruction shifts to the right at most; the HLS design takes 16 to 31
    for shifts to the left.
    """

    acc_distance: int = 3
    kernel_uops: int = 2048
    buffers: int = 2
    alu_mul: bool = False
    max_shift: int = 31


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """What runs on the board, and how fast: it decides what programs may hold and what they take.

    `model`: which board it is; those of another model have another memory, so their times are not
    compared. `design`: the description that the hardware was made from. "chisel", the RTL of the
    simulator's exact cycles; "hls", which the bitstreams for Pynq, Ultra96 and ZCU104 come from:
    its time is an estimate, its programs are held to its rules. `runtime`: the library below the
    programs. Both keep micro-ops on the chip; "original" loads equal ones again for each call site.
    `clock_mhz`: cycles in a microsecond; 0 where nobody knows.
    """

    model: str = ""
    design: str = "chisel"
    runtime: str = "tilefarm"
    clock_mhz: int = 0

    def time_of(self, cycles: int) -> str:
        """What so many cycles take on the board, in words; empty where no clock is known.

        Cycles of the HLS design are an estimate, and so is this.
        """
        if not self.clock_mhz:
            return ""
        about = "about " if self.design == "hls" else ""
        return f"{about}{cycles / self.clock_mhz / 1000:.3g} ms at {self.clock_mhz} MHz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One machine with its host: everything that a compiled program depends on.

    The machine is a VTA of the geometry `vta`, or else what `machine` describes: another
    accelerator, or the host alone. A target of which neither is said is VTA as it is by default.
    `timing` is VTA's; `limits` are those of the arithmetic.
    """

    name: str
    vta: VtaConfig | None = None
    timing: BusTiming = field(default_factory=BusTiming)
    host: Host = field(default_factory=Host)
    limits: Limits = field(default_factory=Limits)
    board: Board = field(default_factory=Board)
    machine: MachineModel | None = None

    def __post_init__(self) -> None:
        if self.vta is None and self.machine is None:
            object.__setattr__(self, "vta", VtaConfig())

    @property
    def model(self) -> MachineModel:
        """The machine as data, whatever its kind."""
        return self.geometry.model if self.machine is None else self.machine

    @property
    def lanes(self) -> Lanes:
        """The blocks that tensors lie in."""
        return self.geometry.lanes if self.machine is None else self.machine.lanes

    @property
    def has_accelerator(self) -> bool:
        """Whether there is another machine than the host."""
        return self.machine is None or self.machine.kind != CPU

    @property
    def geometry(self) -> VtaConfig:
        """That of VTA, for what is made for VTA alone.

        Raises:
            TargetError: the machine is another one.
        """
        if self.vta is None:
            raise TargetError(
                f"target {self.name} has no VTA: its machine is a {self.model.kind}",
                "`tilefarm targets` lists those that have one",
            )
        return self.vta

    @property
    def digest(self) -> Digest:
        """Identity of everything but the name.

        Parameters that came later count where they are not what they always were: other targets
        keep the identity that is in their records.
        """
        document = self.document
        del document["name"]
        for section, usual in _LATER:
            kept = document.get(section, {})
            for key, value in usual.items():
                if kept.get(key) == value:
                    del kept[key]
            if not kept:
                document.pop(section, None)
        return Digest.of_json(document)

    def to_json(self) -> str:
        return json.dumps(self.document, indent=2)

    @property
    def document(self) -> dict[str, Any]:
        """The fields as JSON has them.

        What is VTA's first of all is told of another machine only where it is not as usual.
        """
        document = asdict(self)
        del document["machine"]
        if self.vta is None:
            del document["vta"]
        if self.machine is not None:
            for section, usual in (
                ("timing", BusTiming()),
                ("limits", Limits()),
                ("board", Board()),
            ):
                rows = document[section].items() - asdict(usual).items()
                document[section] = dict(sorted(rows))
                if not rows:
                    del document[section]
            document["machine"] = self.machine.document
        return document


_LATER: Final = (
    ("limits", {"alu_mul": False, "max_shift": 31}),
    ("board", asdict(Board())),
    ("machine", {"threads": 1}),
)
"""Parameters that targets had not from the start, and what holds where nothing is said."""
