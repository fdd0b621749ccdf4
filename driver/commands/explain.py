"""`tilefarm explain`: where every layer of a network runs and why, its scales and its error."""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilefarm.printable import printable_lines
from tilefarm.quiet import quiet_libraries
from tilefarm.system_errors import unwritable

from driver.commands.options.networks import MODEL, SEEDED, add_network_options, source_of
from driver.commands.options.shared import add_number, add_target

if TYPE_CHECKING:
    from driver.commands.validation.explaining import ExplainedLayer, Explanation

_IMAGES = 32

_EPILOG = """\
examples:
  tilefarm explain zoo:digits
  tilefarm explain net.onnx --calibrate data.npz --html net.html
  tilefarm explain net.onnx --calibrate data.npz --data test.npz --json

The first lines say how the network became integers, and why so where options left that open. A row
is a layer of the integer network: its place (accelerator or cpu; - where there is nothing to do)
with the letter of its reason, multiply-accumulates and their share in %, signal to quantization
noise in dB against the float network, the real value of 1, how sums are shifted to int8, and the
operators of the file that it is made from. Below the rows where the noise of each layer comes from,
in % of its energy: what its operands had before; weights and biases, rounded to int8; sums,
rounded; sums, clipped to int8. Then the reasons, the subgraphs (layers that run one after the other
in one place) and what crosses between them. --json and --html say all in full.

exit codes: 0 done; 2 the model or the data cannot be used
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("model", metavar=MODEL, help="a network")
    option(
        "--data",
        type=Path,
        metavar="DATA.npz",
        help="samples to measure noise on (default: the calibration data)",
    )
    add_number(parser, "images", "samples of it to measure noise on", default=_IMAGES)
    option("--html", type=Path, metavar="OUT.html", help="a page with bars")
    add_target(parser)
    option("--json", action="store_true", help="one JSON document")
    add_network_options(parser)
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    quiet_libraries()
    from driver.commands.validation.explaining import explain
    from driver.commands.validation.text_report import lines
    from driver.network import forms_of, noise_sources
    from driver.targets import usable_target

    forms = forms_of(source_of(args), usable_target(args.target))
    seen = forms.samples(args.data, args.images)
    if forms.is_seeded and args.data is None:
        print(SEEDED, file=sys.stderr)
    told = explain(
        forms.quantized,
        forms.network,
        made_from=forms.made_from,
        noise=noise_sources(forms.graph, forms.quantized, seen.inputs),
        samples=seen.samples,
    )
    if args.html is not None:
        _write_page(args.html, told)
    if args.json:
        how = {"quantization": str(forms.how), "notes": list(forms.notes)}
        print(json.dumps({**_document(told), **how}))
        return 0
    for line in (*forms.quantized_words(), "", *lines(told)):
        print(printable_lines(line))
    return 0


def _document(told: Explanation) -> dict[str, Any]:
    return {
        "network": told.name,
        "target": told.target,
        "samples": told.samples,
        "macs": told.macs,
        "share_on_accelerator": told.share_on_accelerator,
        "crossings": list(told.crossings),
        "subgraphs": [asdict(subgraph) for subgraph in told.subgraphs],
        "layers": [_layer(layer) for layer in told.layers],
    }


def _layer(layer: ExplainedLayer) -> dict[str, Any]:
    """A layer as JSON can say it: no ratio where nothing differs."""
    document = asdict(layer)
    document |= document.pop("scales")
    ratio = layer.noise.ratio_db if layer.noise else math.inf
    document["sqnr_db"] = ratio if math.isfinite(ratio) else None
    document["noise_shares"] = layer.sources.shares() if layer.sources else None
    return document


def _write_page(path: Path, told: Explanation) -> None:
    from driver.commands.validation.page import page

    try:
        path.write_text(page(told), encoding="utf-8")
    except OSError as error:
        raise unwritable(path, error, "name a file in a folder that there is") from None
