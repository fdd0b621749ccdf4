"""What each layer of a program takes on a device, one after the other, beside the whole of it.

A layer is timed by the device's own clock: accelerator cycles where it counts them, else the host's
clock. Layers that wait for one another take more than the program, in which they overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilefarm.measurement import CallTime

from driver.report.cost import gain


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTime:
    """A layer and what it took; `cost` is in cycles or seconds, None where nothing was told.

    Attributes:
        layer, kernel, entry, predicted_cycles, macs: see `driver.program.model.LayerCall`.
        share: of the cost of all layers.
        ratio: of the cost to what the layer's schedule predicts, at the clock of the profile.
    """

    layer: str
    kernel: str
    entry: str
    predicted_cycles: int | None
    took: CallTime
    share: float | None = None
    ratio: float | None = None
    macs: int = 0

    @property
    def cost(self) -> float | None:
        return cost_of(self.took)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The layers of one batch in order, and the whole program on the same device.

    Attributes:
        mhz: predicted cycles in a microsecond, where the host's clock tells the time: the board's,
            or what all predicted layers together take where nobody knows it; None without them.
        peak: multiply-accumulates a second that the device can make, all threads together; measured
            beside the layers, on processors only.
        device: its name.
    """

    layers: tuple[LayerTime, ...]
    network: CallTime
    mhz: float | None = None
    peak: float | None = None
    device: str = ""

    @property
    def by_clock(self) -> bool:
        """Whether costs are seconds of a host's clock, and not cycles."""
        return self.network.cycles is None

    @property
    def network_cost(self) -> float | None:
        """Of the whole program; None where all of it is the processor's."""
        return cost_of(self.network)

    @property
    def network_seconds(self) -> float | None:
        """Of the whole program by the host's clock, where that tells the time."""
        return self.network_cost if self.by_clock else None

    @property
    def has_speeds(self) -> bool:
        """Whether it is known how fast layers multiply: seconds are told, and products counted."""
        return self.by_clock and any(layer.macs for layer in self.layers)

    @property
    def has_predictions(self) -> bool:
        """Whether cycles were predicted for a layer; for processors none are."""
        return any(layer.predicted_cycles for layer in self.layers)

    def speed(self, layer: LayerTime) -> float | None:
        """Multiply-accumulates a second of a layer."""
        return layer.macs / layer.cost if self.by_clock and layer.macs and layer.cost else None

    def of_peak(self, layer: LayerTime) -> float | None:
        """A layer's speed as a share of the device's peak."""
        speed = self.speed(layer)
        return speed / self.peak if speed and self.peak else None

    @property
    def remark(self) -> str:
        """What is odd about the whole program's time; see `remark_on_whole`."""
        return remark_on_whole(gain(self.network_cost, self.layers_cost))

    @property
    def layers_cost(self) -> float:
        """Of all layers, one by one."""
        return sum(layer.cost or 0.0 for layer in self.layers)


MOST_BY_PARTS: Final = 2.0
"""How many times its parts a program can take. One by one, each of them begins and ends with an
accelerator that is idle; together they overlap, so that a program takes less than its parts. What
it has beyond them, micro-ops that are loaded anew, was a tenth at most wherever it was measured."""


def remark_on_whole(by_parts: float | None) -> str:
    """What is odd about a program's time, in words; empty if nothing is, or nobody knows.

    Args:
        by_parts: its time by that of its parts, one by one.
    """
    if by_parts is None or by_parts <= MOST_BY_PARTS:
        return ""
    return (
        f"the whole program takes {by_parts:.1f} times what its parts take one by one: one of these"
        " times is wrong, or something else keeps the device busy"
    )


def cost_of(took: CallTime) -> float | None:
    """Cycles, else the median's seconds; None for what a counter does not see."""
    if took.cycles is not None:
        return float(took.cycles) or None
    return None if took.wall_time is None else took.wall_time.median_seconds
