"""Lanes of a vector in memory: read and written a run of neighbours at a time, or one by one."""

from __future__ import annotations

from collections.abc import Iterable

from tilefarm.dtype import DType

from compile_worker.codegen.interleave import shuffled
from compile_worker.codegen.lane_runs import LaneRun
from compile_worker.codegen.text import MEMORY_TYPES, FunctionText


class LaneMemory:
    """What vectors of so many lanes read and write."""

    def __init__(self, text: FunctionText, lanes: int) -> None:
        self._text = text
        self._lanes = lanes

    def read(self, dtype: DType, start: str, found: Iterable[LaneRun]) -> str:
        """The lanes of runs behind an address; other lanes are anything."""
        whole = "poison"
        for run in found:
            whole = self._with_run(whole, run, self._address(start, run, dtype), dtype)
        return whole

    def write(self, dtype: DType, start: str, value: str, found: Iterable[LaneRun]) -> None:
        """Store the lanes of runs behind an address."""
        kind, lanes = MEMORY_TYPES[dtype], self._lanes
        for run in found:
            address = self._address(start, run, dtype)
            if run.count == 1:
                one = self._text.op(f"extractelement <{lanes} x {kind}> {value}, i64 {run.lane}")
                self._text.do(f"store {kind} {one}, ptr {address}")
                continue
            part = value
            if run.count < lanes:
                order = range(run.lane, run.lane + run.count)
                part = shuffled(self._text, value, "poison", [*order], lanes, kind)
            self._text.do(
                f"store <{run.count} x {kind}> {part}, ptr {address}, align {dtype.nbytes}"
            )

    def gathered(self, dtype: DType, start: str, places: str, active: Iterable[int]) -> str:
        """Some lanes, each from its own place; `places` is a vector of indices."""
        kind, lanes = MEMORY_TYPES[dtype], self._lanes
        whole = "poison"
        for lane in active:
            place = self._text.op(f"extractelement <{lanes} x i64> {places}, i64 {lane}")
            address = self._text.op(f"getelementptr {kind}, ptr {start}, i64 {place}")
            one = self._text.op(f"load {kind}, ptr {address}")
            whole = self._text.op(
                f"insertelement <{lanes} x {kind}> {whole}, {kind} {one}, i64 {lane}"
            )
        return whole

    def _address(self, start: str, run: LaneRun, dtype: DType) -> str:
        if not run.offset:
            return start
        return self._text.op(f"getelementptr {MEMORY_TYPES[dtype]}, ptr {start}, i64 {run.offset}")

    def _with_run(self, whole: str, run: LaneRun, address: str, dtype: DType) -> str:
        """`whole` with the lanes of a run read from memory."""
        kind, lanes = MEMORY_TYPES[dtype], self._lanes
        if run.count == 1:
            one = self._text.op(f"load {kind}, ptr {address}")
            return self._text.op(
                f"insertelement <{lanes} x {kind}> {whole}, {kind} {one}, i64 {run.lane}"
            )
        part = self._text.op(f"load <{run.count} x {kind}>, ptr {address}, align {dtype.nbytes}")
        if run.count == lanes:
            return part
        place = [i - run.lane if 0 <= i - run.lane < run.count else None for i in range(lanes)]
        wide = shuffled(self._text, part, "poison", place, run.count, kind)
        if whole == "poison":
            return wide
        keep = [i if at is None else lanes + i for i, at in enumerate(place)]
        return shuffled(self._text, whole, wide, keep, lanes, kind)
