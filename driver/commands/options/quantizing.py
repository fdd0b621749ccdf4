"""The options of `Quantization`: the same ones in every command that quantizes a network."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeAlias

from driver.commands.options.farm import given
from driver.network import AS_USUAL, DEFAULT_METHOD, DEFAULT_PERCENT, Quantization

_Option: TypeAlias = Callable[..., object]


def add_quantization_options(parser: argparse.ArgumentParser) -> None:
    """The options of `Quantization`."""
    option = parser.add_argument_group("quantization").add_argument
    option(
        "--float",
        dest="floats",
        action="store_true",
        default=None,
        help="quantize nothing: the network in float32, on a processor",
    )
    _add_scale_options(option)
    _add_rounding_options(option)
    _add_precision_options(option)


def _add_scale_options(option: _Option) -> None:
    """How tensors become int8."""
    option(
        "--calibration",
        metavar="METHOD",
        help="how ranges follow from the calibration data: minmax covers all values, percentile"
        f" {DEFAULT_PERCENT:g} %% of those that are not zero, percentile:P so many, entropy is"
        f" nearest to their distribution (default: {DEFAULT_METHOD}, or where that"
        " leaves much noise what leaves least on calibration data that were set aside)",
    )
    option(
        "--activations",
        metavar="SCHEME",
        help="symmetric; asymmetric: what a ReLU makes has twice the levels where layers read it,"
        " and the zero points of a model that was quantized before are kept there, even where the"
        " processor has to copy it into a border, because layers pad it differently; mixed: so, but"
        f" where nothing is copied (default: {AS_USUAL.activations})",
    )
    option(
        "--equalize",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="bring the channels of each tensor to like ranges first, between the weights of the"
        " layers around it (default: where there is much noise and it leaves less)",
    )
    option(
        "--share-shifts",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="the channels of a block share a shift, which is faster: always, or never (default:"
        " where no channel shows it, and where there is hardly any noise)",
    )
    option(
        "--requantize",
        metavar="SCHEME",
        help="shift, or mul: sums are multiplied before they are shifted, and weights use all of"
        f" int8; for targets whose ALU has MUL (default: {AS_USUAL.requantize})",
    )


def _add_rounding_options(option: _Option) -> None:
    """How rounding errors are made up for."""
    option(
        "--correct-bias",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="take from each bias what quantization adds to the mean of its sums over the"
        " calibration data (default: where there are any)",
    )
    option(
        "--fit-weights",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="round the weights of a layer to fit one another, by what they meet in the calibration"
        " data, instead of each to the nearest (default: where it shows)",
    )


def _add_precision_options(option: _Option) -> None:
    """Which layers have more than 8 bits, or stay in float."""
    option(
        "--keep-float",
        type=_names,
        metavar="NAME[,NAME...]",
        help="layers that stay in float32 on the processor, by the names that `tilefarm explain`"
        " shows; * stands for any letters",
    )
    option(
        "--wide-weights",
        dest="wide",
        type=_names,
        metavar="NAME[,NAME...]",
        help="layers with weights of 16 bits instead of 8, named in the same way: convolutions"
        " and dense layers. They stay on the accelerator and take up to twice the"
        " cycles; good where `tilefarm explain` says that noise comes from weights (default: where"
        " far too many answers would change, the fewest with which few do; and where a quantized"
        " model answers values, the fewest with which they are those of its own integers)",
    )
    option(
        "--no-wide-weights",
        dest="wide",
        action="store_const",
        const=(),
        help="all weights have 8 bits",
    )
    option(
        "--wide-activations",
        type=_names,
        metavar="NAME[,NAME...]",
        help="layers whose results have up to 16 bits instead of 8, named in the same way:"
        " convolutions and dense layers whose results only such layers read. They stay on the"
        " accelerator, and layers that read them take up to twice the cycles; good where"
        " `tilefarm explain` says that noise comes from rounding (default: as for weights)",
    )
    option(
        "--no-wide-activations",
        dest="wide_activations",
        action="store_const",
        const=(),
        help="all results have 8 bits",
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def quantization(args: argparse.Namespace) -> Quantization:
    """The record that the options say; an option that was not given keeps its default.

    Raises:
        SettingsError: an option is impossible.
    """
    return Quantization(**given(args, Quantization))
