"""The options that say which network: the same ones in every command that takes a model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from driver.commands.options.quantizing import add_quantization_options, quantization

if TYPE_CHECKING:
    from driver.network import NetworkSource

MODEL: Final = "MODEL.onnx|zoo:NAME"

SEEDED: Final = "no data were given: the samples are random, and their noise says little"
"""Said where a model gives every range and the user nothing."""


def add_network_options(parser: argparse.ArgumentParser) -> None:
    """The options beside the model itself."""
    parser.add_argument(
        "--calibrate",
        type=Path,
        metavar="DATA.npz",
        help="inputs whose ranges decide the int8 scales; zoo: networks have some,"
        " quantized models that give every scale need none",
    )
    add_shape_option(parser)
    add_plugin_option(parser)
    add_quantization_options(parser)


def add_plugin_option(parser: argparse.ArgumentParser) -> None:
    """The option `--plugin`; a file is loaded as soon as its name is read."""
    parser.add_argument(
        "--plugin",
        action="append",
        dest="plugins",
        default=[],
        type=_plugin,
        metavar="FILE.py|NAME",
        help="a Python file, or what an installed package brings by that name, with operators of"
        " your own (scripts with their numpy), rules of search spaces, passes that lower every"
        " kernel, and intrinsics; may be repeated",
    )


def _plugin(named: str) -> Path:
    from driver.network import load_plugin

    return load_plugin(named)


def add_shape_option(parser: argparse.ArgumentParser) -> None:
    """The option `--shape`."""
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=EXTENTS",
        help="fixes what the model leaves open: batch=1, or input=1x3x224x224; may be repeated",
    )


def source_of(args: argparse.Namespace) -> NetworkSource:
    """What `model` and the options say.

    Raises:
        SettingsError: an option is impossible.
    """
    from driver.network import NetworkSource, read_extents

    return NetworkSource(
        model=args.model,
        calibration=args.calibrate,
        extents=read_extents(args.shape),
        how=quantization(args),
    )
