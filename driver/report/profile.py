"""What each layer of a program takes on a device, one after the other, beside the whole of it.

A layer is timed by the device's own clock: accelerator cycles where it counts them, else the host's
clock. Layers that wait for one another take more than the program, in which they overlap.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilefarm.measurement import CallTime


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTime:
    """A layer and what it took; `cost` is in cycles or seconds, None where nothing was told.

    Attributes:
        layer, kernel, entry, predicted_cycles: see `driver.program.model.LayerCall`.
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

    @property
    def cost(self) -> float | None:
        return cost_of(self.took)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The layers of one batch in order, and the whole program on the same device.

    Attributes:
        mhz: predicted cycles in a microsecond, where the host's clock tells the time: the board's,
            or what all predicted layers together take where nobody knows it; None without them.
    """

    layers: tuple[LayerTime, ...]
    network: CallTime
    mhz: float | None = None

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
    def layers_cost(self) -> float:
        """Of all layers, one by one."""
        return sum(layer.cost or 0.0 for layer in self.layers)


def cost_of(took: CallTime) -> float | None:
    """Cycles, else the median's seconds; None for what a counter does not see."""
    if took.cycles is not None:
        return float(took.cycles) or None
    return None if took.wall_time is None else took.wall_time.median_seconds
