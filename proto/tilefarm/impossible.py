"""What no hardware can be: every reason why a target's parameters are impossible together."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from tilefarm.machine import DESIGNS, HLS_MAX_SHIFT, RUNTIMES, Limits, Target
from tilefarm.model import contradictions
from tilefarm.vta_isa import ALU, GEMM, TRANSFER, UOP, UOP_BITS, WORD_BITS, index_bits, width_of

_LOG_BATCH_MOST: Final = 8
_SRAM_INDEX_BITS: Final = TRANSFER.field("sram_base").width.bits
_OUTSTANDING_BURSTS_MOST: Final = 256
_PAGE_NBYTES: Final = 4096
"""Buffers begin at pages, and addresses count elements."""
_SHIFT_MOST: Final = 31
_CLOCK_MHZ_MOST: Final = 10_000
_HLS_DISTANCE: Final = 3
"""Micro-ops between two writes of an accumulator that its pipeline keeps apart."""
_CHISEL_UOPS: Final = 2048
"""uopMemDepth in core/Configs.scala, whatever vta_config.json says."""


def impossibilities(target: Target) -> list[str]:
    """Every reason why no hardware can have these parameters; empty when it can."""
    if target.machine is not None:
        twice = ["vta: this machine is no VTA"] if target.vta is not None else []
        return [*contradictions(target.machine), *twice]
    vta, timing, limits = target.geometry, target.timing, target.limits
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
    bits = index_bits(vta)
    if width_of(UOP, bits) > UOP_BITS:
        reasons.append("vta: buffer indices do not fit the 32 bits of a micro-op")
    if width_of(GEMM.low, bits) > WORD_BITS:
        reasons.append("vta.log_uop_buff_size: micro-op addresses do not fit an instruction")
    if width_of(ALU.high, bits) > WORD_BITS:
        reasons.append("vta: accumulator factors do not fit an ALU instruction")
    if width_of(GEMM.high, bits) > WORD_BITS:
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
    return [*reasons, *_contradictions(target)]


def _contradictions(target: Target) -> list[str]:
    """Where limits and board do not go together."""
    limits, board = target.limits, target.board
    reasons = []
    if board.design not in DESIGNS:
        reasons.append(f"board.design: {board.design!r} is none of {', '.join(DESIGNS)}")
    if board.runtime not in RUNTIMES:
        reasons.append(f"board.runtime: {board.runtime!r} is none of {', '.join(RUNTIMES)}")
    if not 0 <= board.clock_mhz <= _CLOCK_MHZ_MOST:
        reasons.append(f"board.clock_mhz: {board.clock_mhz} is not within 0..{_CLOCK_MHZ_MOST}")
    if not HLS_MAX_SHIFT <= limits.max_shift <= _SHIFT_MOST:
        reasons.append(
            f"limits.max_shift: {limits.max_shift} is not within {HLS_MAX_SHIFT}..{_SHIFT_MOST};"
            f" no network can be brought to int8 with less"
        )
    if board.design == "hls":
        reasons += _contradictions_of_hls(limits)
    elif board.runtime == "original":
        reasons += _contradictions_of_original(target)
    return reasons


def _contradictions_of_hls(limits: Limits) -> list[str]:
    """What the HLS design cannot do."""
    reasons = []
    if limits.max_shift > HLS_MAX_SHIFT:
        reasons.append(
            f"limits.max_shift: {limits.max_shift}, but the HLS design takes shifts above"
            f" {HLS_MAX_SHIFT} for shifts to the left"
        )
    if limits.alu_mul:
        reasons.append("limits.alu_mul: true, but the ALU of the HLS design has no MUL")
    if limits.acc_distance < _HLS_DISTANCE:
        reasons.append(
            f"limits.acc_distance: {limits.acc_distance}, but the HLS design loses updates of an"
            f" accumulator that are less than {_HLS_DISTANCE} micro-ops apart"
        )
    return reasons


def _contradictions_of_original(target: Target) -> list[str]:
    """What the Chisel design cannot do where the original runtime drives it."""
    reasons = []
    log_batch = target.geometry.log_batch
    if log_batch:
        reasons.append(
            f"vta.log_batch: {log_batch}, but the ALU of the Chisel design computes the"
            " first row of a batch only"
        )
    if target.limits.kernel_uops > _CHISEL_UOPS:
        reasons.append(
            f"limits.kernel_uops: {target.limits.kernel_uops}, but the Chisel design holds"
            f" {_CHISEL_UOPS} micro-ops and the original runtime does not know it"
        )
    return reasons
