"""The page of `tilefarm explain`: a bar of work and a bar of noise for each layer."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilefarm.plural import plural
from tilefarm.printable import page_text as escape

from driver.commands.validation.explaining import ExplainedLayer, Explanation, LayerScales
from driver.commands.validation.text_report import principal
from driver.report.html import html_page
from driver.report.noise_chart import noise_chart
from driver.report.tables import bar, count, share_bar, table

_BEST_DB = 60.0
"""A full bar: int8 cannot do much better."""


def page(told: Explanation) -> str:
    """The whole page. Every name in it is escaped: models are untrusted text."""
    name = escape(told.name)
    head = ("layer", "place", "why", "made from", "MACs", "share", "SQNR, dB", "scale", "shift")
    rows = table(head, [_cells(layer, told.macs) for layer in told.layers], words=4)
    crossing = ", ".join(map(escape, told.crossings)) or "none"
    return html_page(
        name,
        f"<h1>{name}</h1><p class=sub>target {escape(told.target)} · noise over "
        f"{plural(told.samples, 'sample')}</p>{_tiles(told)}"
        f"<h2>Noise, and where it comes from</h2>{noise_chart(told.noise_rows)}"
        f"<h2>Layers</h2>{rows}"
        f"<h2>Subgraphs, in order</h2>{_subgraphs(told)}"
        f"<h2>Crossings between accelerator and processor</h2><p>{crossing}</p>",
        more_style="td{white-space:normal}",
    )


def _subgraphs(told: Explanation) -> str:
    head = ("place", "from", "to", "why", "layers", "MACs")
    rows = [
        (
            f'<span class="{each.place}">{each.place}</span>',
            escape(each.first),
            escape(each.last),
            escape("; ".join(each.why)),
            str(each.layers),
            count(each.macs) if each.macs else "",
        )
        for each in told.subgraphs
    ]
    return table(head, rows, words=4)


def _tiles(told: Explanation) -> str:
    on = [layer.place for layer in told.layers]
    everywhere = (count(told.macs), "MACs")
    if not told.has_accelerator:
        return _tiled((everywhere, (str(on.count("cpu")), "layers")))
    tiles = (
        (f"{100 * told.share_on_accelerator:.2f} %", "of the MACs on the accelerator"),
        everywhere,
        (str(on.count("accelerator")), "layers on the accelerator"),
        (str(on.count("cpu")), "on the processor"),
        (str(len(told.crossings)), "crossings"),
    )
    return _tiled(tiles)


def _tiled(tiles: Sequence[tuple[str, str]]) -> str:
    cells = "".join(f"<div class=tile><b>{b}</b><span>{s}</span></div>" for b, s in tiles)
    return f"<div class=tiles>{cells}</div>"


def _scale(scales: LayerScales) -> str:
    zero = f"<small>real 0 is {scales.zero}</small>" if scales.zero else ""
    return "" if scales.scale is None else f"{scales.scale:.4g}{zero}"


def _cells(layer: ExplainedLayer, macs: int) -> tuple[str, ...]:
    ratio = layer.noise.ratio_db if layer.noise else None
    made_from = ", ".join(f"{each.name} ({each.operator})" for each in principal(layer.made_from))
    exact = ratio is not None and math.isinf(ratio) and ratio > 0
    kind = {"accelerator": "accelerator", "cpu": "cpu"}.get(layer.place, "sub")
    return (
        f"{escape(layer.name)}<small>{escape(layer.operator)}</small>",
        f'<span class="{kind}">{escape(layer.place)}</span>',
        escape(layer.why),
        escape(made_from),
        count(layer.macs) if layer.macs else "",
        share_bar(layer.macs / macs if layer.macs else None),
        "" if ratio is None else bar(ratio / _BEST_DB, "exact" if exact else f"{ratio:.1f}"),
        _scale(layer.scales),
        escape(layer.scales.shift),
    )
