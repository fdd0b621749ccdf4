"""What runs in this process give: counters, memory, findings, recorded programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from tilefarm.measurement import Counters, TimelineEvent

from device_server.vta.library.native import TimingBasis


@dataclass(frozen=True, slots=True)
class HardwareFinding:
    """Where a program goes wrong, or may, on the hardware that the strictness names.

    `rule` is a short name ("mul", "stale-out"); `instruction` a position in the stream.
    """

    severity: Literal["error", "warning"]
    rule: str
    instruction: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamResult:
    """A raw run: counters, memory afterwards (uint8), and the instruction timeline if asked for.

    `spans` is int64[n, 2]: first cycle of every instruction in its module, first cycle after it.
    With errors among the findings, the rest is what the functional rules say.
    """

    counters: Counters
    dram: npt.NDArray[np.uint8]
    timeline: tuple[TimelineEvent, ...] = ()
    spans: npt.NDArray[np.int64] | None = None
    findings: tuple[HardwareFinding, ...] = ()
    basis: TimingBasis = TimingBasis.RTL


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryResult:
    """One call of a compiled entry: every buffer afterwards, in the order given."""

    buffers: tuple[bytes, ...]
    counters: Counters


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStream:
    """One synchronization as a program.

    `instructions` is uint64[n, 2], low word first; `before` and `after` are the whole memory as
    uint8 with address 0 first, unused parts 0.
    """

    instructions: npt.NDArray[np.uint64]
    before: npt.NDArray[np.uint8]
    after: npt.NDArray[np.uint8]
    counters: Counters
