"""`tilefarm targets`: the built-in machines, one as the JSON to start your own from, or fitted."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tilefarm.errors import SettingsError
from tilefarm.target import TARGETS, Target, built_in_targets

from driver.commands import add_actions, load

ACTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "fit": (
        "driver.commands.targets_actions.fit",
        "fit the timing of an accelerator to what runs have measured on it",
    ),
}
"""Name of the action: (module, caption)."""

_PLAYED_BY: Final = "sim"

_EPILOG: Final = """\
examples:
  tilefarm targets
  tilefarm targets --show sim > mine.json      then: tune --target mine.json
  tilefarm targets --show vta_config.json      the original hardware's file, as a target
  tilefarm targets --show cpu                  this machine's processor
  tilefarm targets fit RUN -o fitted.json      a board as its own measurements say it is

A target is an accelerator and its host, or a processor alone. `sim` ones are played by the
simulator on this machine: those without a board in exact cycles, with one as what they predict for
it. `pynq-z1` and the like are for devices of that board (--tracker); `sim-pynq-z1` is the same
beside this machine.
design: what the hardware was made from. chisel: cycles are exact. hls: cycles are an estimate, and
shifts are by 15 bits at most, in one instruction. runtime: the library below the programs; the
original one loads micro-ops again for each call site, tilefarm's shares them. Clocks and hosts are
those of the original's own builds.
cpu is the processor of this machine, as Linux describes it; the others are named by their level in
the x86-64 psABI, or as LLVM names them.
A file may be the JSON that --show prints, with sections left out that are as usual, or a
vta_config.json, whose TARGET names the board."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    parser.add_argument("--show", metavar="NAME|FILE.json", help="print one as JSON")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.epilog = _EPILOG
    add_actions(parser, ACTIONS, required=False)


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    if args.action is not None and args.show is not None:
        raise SettingsError(
            f"--show {args.show}: prints a target, and {args.action} makes one", "one of the two"
        )
    if args.action is not None:
        return load(ACTIONS[args.action][0]).run(args)
    if args.show is not None:
        from driver.targets import usable_target

        print(usable_target(args.show).to_json())
    elif args.json:
        print(json.dumps([_document(target) for target in built_in_targets().values()]))
    else:
        for line in _lines():
            print(line)
    return 0


def _document(target: Target) -> dict[str, Any]:
    return {**target.document, "digest": target.digest.hex}


def _lines() -> Iterator[str]:
    titles = ("accelerator", "bus", "burst", "clock", "design", "runtime", "host", "")
    yield from _table([titles, *(_row(target) for target in TARGETS.values())])
    vta = TARGETS[_PLAYED_BY].geometry
    yield ""
    yield (
        f"all: {vta.batch}x{vta.block}x{vta.block} int8, and on the chip {vta.inp_depth} vectors,"
        f" {vta.wgt_depth} weight tiles, {vta.acc_depth} accumulators, {vta.uop_depth} micro-ops"
    )
    yield ""
    processors = [each for each in built_in_targets().values() if not each.has_accelerator]
    yield from _table([("processor", "cores", "host", "caches"), *map(_processor_row, processors)])
    yield ""
    yield f"cpu has {processors[0].host.features.replace('+', '').replace(',', ', ') or 'no more'}"


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(cells).rstrip()


def _processor_row(target: Target) -> tuple[str, ...]:
    caches = (f"{each.name} {each.nbytes >> 10} KiB" for each in target.model.memories)
    return (
        target.name,
        str(sum(engine.instances for engine in target.model.engines)),
        f"{target.host.triple.partition('-')[0]} {target.host.cpu}",
        ", ".join(caches),
    )


def _row(target: Target) -> tuple[str, ...]:
    timing, board, limits = target.timing, target.board, target.limits
    more = ["ALU with MUL"] * limits.alu_mul
    more += [f"shifts to {limits.max_shift}"] * (board.design == "hls")
    return (
        target.name,
        f"{8 * timing.bus_nbytes} bit",
        str(1 << timing.log_burst_beats),
        f"{board.clock_mhz} MHz" if board.clock_mhz else "-",
        board.design,
        board.runtime,
        f"{target.host.triple.partition('-')[0]} {target.host.cpu}",
        ", ".join(more),
    )
