"""A program's profile as lines of text and as a document for machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilefarm.measurement import CallTime

from driver.report.cost import microseconds
from driver.report.profile import LayerTime, Profile
from driver.report.terminal.tables import number, ratio, share
from driver.report.terminal.text_table import text_table


def profile_lines(profile: Profile) -> Iterator[str]:
    """A table with a row a layer, and what its columns do not say."""
    if profile.by_clock:
        titles = ["layer", "kernel", "median", "spread", "share", "predicted", "ratio"]
    else:
        titles = ["layer", "kernel", "cycles", "share", "predicted", "ratio"]
    rows = [list(_cells(profile, layer)) for layer in profile.layers]
    yield from text_table(titles, rows)
    yield ""
    yield against_the_whole(profile)
    if profile.remark:
        yield profile.remark
    if profile.by_clock:
        if profile.mhz:
            yield f"ratio: to the predicted cycles at {profile.mhz:.4g} MHz"
    elif any(layer.cost is None for layer in profile.layers):
        yield "-: on the processor, whose time the accelerator does not count"


def against_the_whole(profile: Profile) -> str:
    """The layers' sum beside what the network takes, in which they overlap."""
    parts, whole = profile.layers_cost, profile.network_cost
    words = f"layers one by one {_cost(profile, parts)}"
    if whole:
        words += f", {ratio(parts / whole)} the whole network's {_cost(profile, whole)}"
    return words


def profile_document(profile: Profile) -> dict[str, Any]:
    """The same for `--json`; times are in seconds."""
    return {
        "clock": "seconds" if profile.by_clock else "cycles",
        "mhz": profile.mhz,
        "layers": [
            {
                "layer": layer.layer,
                "kernel": layer.kernel,
                "entry": layer.entry,
                **_took(layer.took),
                "share": layer.share,
                "predicted_cycles": layer.predicted_cycles,
                "ratio": layer.ratio,
            }
            for layer in profile.layers
        ],
        "layers_cost": profile.layers_cost,
        "network": _took(profile.network),
        "remark": profile.remark,
    }


def _cells(profile: Profile, layer: LayerTime) -> Iterator[str]:
    yield layer.layer
    yield layer.kernel
    if layer.cost is None:
        yield "-"
    else:
        yield microseconds(layer.cost) if profile.by_clock else number(round(layer.cost))
    if profile.by_clock:
        time = layer.took.wall_time
        yield share(None if time is None else time.spread)
    yield share(layer.share)
    yield number(layer.predicted_cycles)
    yield ratio(layer.ratio)


def _cost(profile: Profile, cost: float) -> str:
    return microseconds(cost) if profile.by_clock else f"{number(round(cost))} cycles"


def _took(took: CallTime) -> dict[str, object]:
    time = took.wall_time
    if time is None:
        return {"cycles": took.cycles}
    return {
        "minimum_seconds": time.minimum_seconds,
        "p10_seconds": time.p10_seconds,
        "median_seconds": time.median_seconds,
        "p90_seconds": time.p90_seconds,
        "regions": time.regions,
        "rejected": time.rejected,
    }
