"""What became of a network, as text: a table, the reasons, the subgraphs and the sums."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from string import ascii_lowercase
from typing import Final

from tilefarm.plural import plural

from driver.commands.validation.explaining import IN_PLACE, ExplainedLayer, Explanation, Subgraph
from driver.network import Origin
from driver.report.terminal.text_table import text_table

_WIDTHS: Final = (22, 6, 11, 5, 5, 9, 18, 17)
_WIDTH: Final = 100
_NAME: Final = 40
_SHORT: Final = {"accelerator": "acc", "cpu": "cpu", IN_PLACE: "-"}
_ASIDE: Final = frozenset(
    {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Identity", "Cast", "Reshape"}
    | {"Transpose", "Squeeze", "Unsqueeze", "Flatten"}
)
"""Operators that say little of a layer in which there are others."""

_DYNAMIC: Final = "DynamicQuantize"
"""How the names of operators begin that decide a scale while they run."""


def lines(told: Explanation) -> Iterator[str]:
    """Lines of at most 100 columns."""
    letters = {why: _letter(number) for number, why in enumerate(_reasons(told))}
    shift = "shift" if told.has_accelerator else ""  # a processor multiplies instead
    yield _row(("layer", "place", "MACs", "share", "SQNR", "scale", shift, "made from"))
    for layer in told.layers:
        yield _row(_cells(layer, told.macs, letters[layer.why]))
    yield ""
    yield from _noise(told)
    for why, letter in letters.items():
        yield f"{letter:>3}  {why}"
    yield ""
    yield "subgraphs, in order"
    for subgraph in told.subgraphs:
        yield from _wrapped(_subgraph_words(subgraph, letters))
    yield ""
    yield from _places(told)
    dynamic = sum(_is_dynamic(layer) for layer in told.layers)
    if dynamic and told.has_accelerator:
        yield f"layers whose scales data decide in the file, and calibration here: {dynamic}"
    if zeros := [f"{layer.name} {layer.scales.zero}" for layer in told.layers if layer.scales.zero]:
        yield from _wrapped(f"layers whose real 0 is another integer: {', '.join(zeros)}")
    if told.noise_rows:
        yield f"SQNR: signal to quantization noise in dB, over {plural(told.samples, 'sample')}"


def _places(told: Explanation) -> Iterator[str]:
    """How much runs where."""
    on = [layer.place for layer in told.layers]
    if not told.has_accelerator:
        yield f"{told.name} on {told.target}: {told.macs} MACs"
        yield f"{plural(on.count('cpu'), 'layer')}, and {on.count(IN_PLACE)} without work"
        return
    yield (
        f"{told.name} on {told.target}: {told.macs} MACs,"
        f" {100 * told.share_on_accelerator:.2f} % of them on the accelerator"
    )
    yield (
        f"{plural(on.count('accelerator'), 'layer')} on the accelerator,"
        f" {on.count('cpu')} on the processor,"
        f" {on.count(IN_PLACE)} without work"
    )
    crossing = ", ".join(told.crossings)
    yield from _wrapped(
        f"{plural(len(told.crossings), 'crossing')} between the two: {crossing or 'none'}"
    )


def _noise(told: Explanation) -> Iterator[str]:
    """The table of where noise comes from; nothing where that is not known of any layer."""
    known = [layer for layer in told.layers if layer.sources is not None and layer.noise]
    if not known:
        return
    yield "where the noise of a layer comes from, in % of its energy"
    rows = []
    for layer in known:
        shares = layer.sources.shares() if layer.sources else {}
        numbers = (f"{100 * share:.0f}" for share in shares.values())
        rows.append((_cut(layer.name, _NAME), _ratio(layer), *numbers))
    head = ("layer", "SQNR dB", "before", "weights", "rounding", "clipping")
    yield from text_table(head, rows)
    yield ""


def _ratio(layer: ExplainedLayer) -> str:
    """Signal to noise in dB, or that nothing differs."""
    ratio = layer.noise.ratio_db if layer.noise else math.inf
    return "exact" if math.isinf(ratio) and ratio > 0 else f"{ratio:.1f}"


def principal(made_from: Sequence[Origin]) -> tuple[Origin, ...]:
    """The nodes that a layer is named for: without those that only quantize, reshape or move."""
    return tuple(each for each in made_from if each.operator not in _ASIDE) or tuple(made_from)


def _is_dynamic(layer: ExplainedLayer) -> bool:
    """Whether the file has the scale of the layer's operand computed when it runs."""
    return any(origin.operator.startswith(_DYNAMIC) for origin in layer.made_from)


def _subgraph_words(subgraph: Subgraph, letters: Mapping[str, str]) -> str:
    what = subgraph.first
    if subgraph.layers > 1:
        what = f"{plural(subgraph.layers, 'layer')}, {subgraph.first} to {subgraph.last}"
    macs = f", {subgraph.macs} MACs" if subgraph.macs else ""
    why = ", ".join(letters[why] for why in subgraph.why)
    return f"{_SHORT[subgraph.place]}  {what}{macs}: {why}"


def _row(cells: Sequence[str]) -> str:
    """Cells in columns; numbers to the right, what is too long cut."""
    made = []
    for index, (cell, width) in enumerate(zip(cells, _WIDTHS, strict=True)):
        short = _cut(cell, width)
        made.append(short.rjust(width) if 2 <= index <= 5 else short.ljust(width))
    return " ".join(made).rstrip()


def _cells(layer: ExplainedLayer, macs: int, letter: str) -> tuple[str, ...]:
    return (
        layer.name,
        f"{_SHORT[layer.place]} {letter}",
        str(layer.macs or ""),
        f"{100 * layer.macs / macs:.1f}" if layer.macs else "",
        _ratio(layer) if layer.noise else "",
        "" if layer.scales.scale is None else f"{layer.scales.scale:.3g}",
        layer.scales.shift,
        "+".join(origin.operator for origin in principal(layer.made_from)),
    )


def _reasons(told: Explanation) -> list[str]:
    return list(dict.fromkeys(layer.why for layer in told.layers))


def _letter(number: int) -> str:
    """A to z, then aa to zz."""
    first, last = divmod(number, len(ascii_lowercase))
    return (ascii_lowercase[first - 1] if first else "") + ascii_lowercase[last]


def _wrapped(text: str) -> Iterator[str]:
    """Lines of at most the table's width, broken at spaces."""
    line = ""
    for word in (_cut(word, _WIDTH - 2) for word in text.split(" ")):
        if line and len(line) + 1 + len(word) > _WIDTH:
            yield line
            line = " "
        line = f"{line} {word}" if line else word
    yield line


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}~"
