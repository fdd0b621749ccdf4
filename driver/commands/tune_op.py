"""`tilefarm tune-op`: the fastest schedules of operators said in words, without an ONNX file."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tilefarm.documents import read_text
from tilefarm.errors import SettingsError
from tilefarm.system_errors import unreadable

from driver.commands.options.farm import add_farm_options
from driver.commands.options.networks import add_plugin_option
from driver.commands.options.quantizing import add_quantization_options
from driver.commands.tune import add_search_options
from driver.commands.tune import run as tune

_HINT = "a file with an operator a line, or an operator in words"
_EPILOG = """\
examples:
  tilefarm tune-op 'gemm m=64 n=64 k=64'
  tilefarm tune-op 'conv2d ci=64 co=64 h=56 w=56 pad=1 relu=1' --trials 100
  tilefarm tune-op 'depthwise2d c=64 h=28 w=28 pad=1' 'add c=64 h=28 w=28' --target cpu
  tilefarm tune-op 'com.example.Product a=96x256 b=256x192' --plugin mine.py --target cpu
  tilefarm tune-op layers.txt --tracker farm:9190 --token-file farm.token

A file has an operator a line; what follows a # is a remark. Several operators share the trials, and
are tuned side by side. Other commands take them where a network stands:
  tilefarm show 'op:gemm m=64 n=64 k=64' --workload dense
Weights are random, so answers mean nothing, and are checked against the reference all the same.
An operator of a plugin is said by its domain and name, the shape of each input, and its numbers.

operators, with what each needs and its defaults:
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    from driver.network import operator_lines

    parser.add_argument(
        "operators", nargs="+", metavar="OPERATOR|FILE", help="operators in words, or files of them"
    )
    add_search_options(parser)
    add_plugin_option(parser)
    add_quantization_options(parser)
    add_farm_options(parser)
    parser.epilog = _EPILOG + "\n".join(f"  {line}" for line in operator_lines())


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from driver.network import OPERATOR_PREFIX

    args.model = Path(OPERATOR_PREFIX + "; ".join(_said(args.operators)))
    args.calibrate, args.shape = None, []
    return tune(args)


def _said(given: Iterable[str]) -> Iterable[str]:
    """Operators in words; those of a file are its lines without remarks.

    Raises:
        SettingsError: a file cannot be read.
    """
    for words in given:
        if not _is_file(words):
            yield words
            continue
        try:
            text = read_text(Path(words))
        except OSError as error:
            raise unreadable(words, error, _HINT) from None
        except ValueError as error:
            raise SettingsError(f"{words}: {error}", "a file with an operator a line") from None
        yield from (line.split("#")[0] for line in text.splitlines())


def _is_file(words: str) -> bool:
    """Whether words name a file, or are to: what is there is one, whatever its name looks like."""
    from driver.network import is_operator

    with suppress(OSError, ValueError):  # Too long for a name, or not one at all.
        if Path(words).is_file():
            return True
    return "=" not in words and not is_operator(words)
