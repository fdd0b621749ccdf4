"""A program's profile as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from driver.report.cost import microseconds
from driver.report.profile import LayerTime, Profile
from driver.report.terminal.tables import gmacs, number, ratio, share
from driver.report.terminal.text_table import text_table


def profile_lines(profile: Profile) -> Iterator[str]:
    """A table with a row a layer, and what its columns do not say."""
    if profile.by_clock:
        titles = ["layer", "kernel", "median", "spread", "share"]
    else:
        titles = ["layer", "kernel", "cycles", "share"]
    titles += ["GMAC/s"] if profile.has_speeds else []
    if profile.peak:
        titles.append("of peak")
    elif profile.has_predictions:
        titles += ["predicted", "ratio"]
    rows = [list(_cells(profile, layer)) for layer in profile.layers]
    yield from text_table(titles, rows)
    yield ""
    yield against_the_whole(profile)
    if profile.remark:
        yield profile.remark
    if profile.peak:
        yield f"peak: {gmacs(profile.peak)} GMAC/s, measured beside the layers"
    elif profile.by_clock:
        if profile.mhz:
            yield f"ratio: to the predicted cycles at {profile.mhz:.4g} MHz"
    elif any(layer.cost is None and layer.took.wall_time is None for layer in profile.layers):
        yield "-: on the processor, whose time the accelerator does not count"
    elif any(layer.cost is None for layer in profile.layers):
        yield "layers that have a time are on the processor, which has no part in the cycles"


def against_the_whole(profile: Profile) -> str:
    """The layers' sum beside what the network takes, in which they overlap."""
    parts, whole = profile.layers_cost, profile.network_cost
    words = f"layers one by one {_cost(profile, parts)}"
    if whole:
        words += f", {ratio(parts / whole)} the whole network's {_cost(profile, whole)}"
    return words


def _cells(profile: Profile, layer: LayerTime) -> Iterator[str]:
    yield layer.layer
    yield layer.kernel
    time = layer.took.wall_time
    if layer.cost is None:
        yield "-" if time is None else microseconds(time.median_seconds)
    else:
        yield microseconds(layer.cost) if profile.by_clock else number(round(layer.cost))
    if profile.by_clock:
        yield share(None if time is None else time.spread)
    yield share(layer.share)
    if profile.has_speeds:
        yield gmacs(profile.speed(layer))
    if profile.peak:
        yield share(profile.of_peak(layer))
    elif profile.has_predictions:
        yield number(layer.predicted_cycles)
        yield ratio(layer.ratio)


def _cost(profile: Profile, cost: float) -> str:
    return microseconds(cost) if profile.by_clock else f"{number(round(cost))} cycles"
