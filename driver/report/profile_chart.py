"""A bar a layer: what the program's layers take on the device, and what was predicted for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tilefarm.printable import page_text as escape

from driver.report.cost import microseconds
from driver.report.profile import LayerTime, Profile
from driver.report.svg import AxisScale, box, colour, drawing, label, legend, rulers, short
from driver.report.tables import count, gmacs, share_bar, table, times

_LEFT: Final = 210.0
_RIGHT: Final = 880.0
_TOP: Final = 28.0
_LANE: Final = 20.0
_LONGEST: Final = 30
_KEY: Final = (("on the device", colour(0)), ("predicted", colour(1)))


def profile_section(profile: Profile) -> str:
    """The picture and its table. Names are escaped: models are untrusted text."""
    return _words(profile) + _chart(profile) + _table(profile)


def _words(profile: Profile) -> str:
    whole = _in_units(profile.network_cost or 0.0, by_clock=profile.by_clock)
    parts = _in_units(profile.layers_cost, by_clock=profile.by_clock)
    words = f"Layers one by one: {parts}; the whole network, in which they overlap: {whole}."
    if profile.peak:
        words += f" Peak: {gmacs(profile.peak)} GMAC/s, measured beside the layers."
    elif profile.mhz:
        words += f" Predictions are at {profile.mhz:.4g} MHz."
    return f"<p class=sub>{escape(words)}</p>"


def _chart(profile: Profile) -> str:
    bottom = _TOP + _LANE * len(profile.layers)
    x = AxisScale(0, _longest(profile) or 1.0, _LEFT, _RIGHT)
    scale = 1e6 if profile.by_clock else 1
    parts = list(legend(_KEY, _LEFT, apart=120, y=6)) if profile.has_predictions else []
    parts += rulers(x, _TOP, bottom, lambda value: short(scale * value))
    unit = "microseconds" if profile.by_clock else "cycles"
    parts.append(label(_RIGHT + 60, bottom + 18, unit, text_anchor="end", class_="name"))
    for row, layer in enumerate(profile.layers):
        parts += _bar(profile, layer, _TOP + _LANE * row, x)
    return drawing(1000, bottom + 30, *parts, words=f"{unit} of every layer")


def _longest(profile: Profile) -> float:
    costs = [layer.cost or 0.0 for layer in profile.layers]
    return max([*costs, *map(_expected, profile.layers)], default=0.0)


def _expected(layer: LayerTime) -> float:
    """What was predicted, in the units of the cost."""
    return layer.cost / layer.ratio if layer.cost and layer.ratio else 0.0


def _bar(profile: Profile, layer: LayerTime, y: float, x: AxisScale) -> Iterator[str]:
    name = layer.layer
    shown = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    yield label(_LEFT - 8, y + 14, shown, text_anchor="end", class_="tick")
    if layer.cost is None:
        time = layer.took.wall_time
        took = "" if time is None else f", {microseconds(time.median_seconds)}"
        yield label(_LEFT + 6, y + 14, f"on the processor{took}", class_="name")
        return
    words = _in_units(layer.cost, by_clock=profile.by_clock)
    tip = f"{name}: {words}; {layer.kernel}"
    yield box(_LEFT, y + 3, x(layer.cost) - _LEFT, 9, colour(0), tip)
    if expected := _expected(layer):
        tip = f"{name}: {count(layer.predicted_cycles)} cycles predicted"
        yield box(_LEFT, y + 13, x(expected) - _LEFT, 3, colour(1), tip)
    yield label(x(max(layer.cost, expected)) + 6, y + 14, words, class_="name")


def _table(profile: Profile) -> str:
    head = ["layer", "kernel", "took", "spread", "share"]
    head += ["GMAC/s"] if profile.has_speeds else []
    if profile.peak:
        head.append("of peak")
    elif profile.has_predictions:
        head += ["predicted cycles", "ratio"]
    return table(head, (_row(profile, layer) for layer in profile.layers), words=2)


def _row(profile: Profile, layer: LayerTime) -> tuple[str, ...]:
    time = layer.took.wall_time
    took = "–" if time is None else microseconds(time.median_seconds)
    if layer.cost is not None:
        took = f"<b>{_in_units(layer.cost, by_clock=profile.by_clock)}</b>"
    return (
        escape(layer.layer),
        escape(layer.kernel),
        took,
        "–" if time is None else f"{100 * time.spread:.1f} %",
        share_bar(layer.share),
        *([gmacs(profile.speed(layer))] if profile.has_speeds else []),
        *_compared(profile, layer),
    )


def _compared(profile: Profile, layer: LayerTime) -> Iterator[str]:
    """With the peak, or with what was predicted; nothing where neither is known."""
    if profile.peak:
        yield share_bar(profile.of_peak(layer))
    elif profile.has_predictions:
        yield count(layer.predicted_cycles)
        yield times(layer.ratio)


def _in_units(cost: float, *, by_clock: bool) -> str:
    return microseconds(cost) if by_clock else f"{count(round(cost))} cycles"
