"""Lines of AutoTVM's log, version 0.2, as records of ours.

    {"input": ["ext_dev ... -model=pynq_1x16_i8w8a32_15_15_18_17", "conv2d_packed.vta",
               [["TENSOR", [1, 4, 56, 56, 1, 16], "int8"], ["TENSOR", [4, 4, 3, 3, 16, 16], "int8"],
                [1, 1], [1, 1, 1, 1], [1, 1], "NCHW1n16c", "int32"], {}],
     "config": {"index": 828, "code_hash": null, "entity": [["tile_b", "sp", [-1, 1]], ...]},
     "result": [[0.0056], 0, 8.4, 1553127163.5], "version": 0.2, "tvm_version": "0.7.dev1"}

Its template has no bias and no record of what follows the sums, so a record's workload has none.
TopHub's VTA log holds such lines, some of which were edited by hand or copied from others: what
cannot be is refused, each with its reason.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final

from tilefarm.documents import decoded
from tilefarm.errors import TilefarmError
from tilefarm.measurement import WallTime
from tilefarm.target import Target
from tilefarm.vta_config import model_name

from compile_worker.space import generate
from driver.program.vta.layers import Convolution
from driver.tune.autotvm.template import (
    SPLITS,
    THREADS,
    TemplateChoice,
    TemplateLayer,
    breaks,
    same_choices,
)
from tuner.schedule_store import ScheduleRecord

TASK: Final = "conv2d_packed.vta"
VERSION: Final = 0.2
CLOCKS_MHZ: Final[Mapping[str, int]] = {
    "pynq": 100,
    "de10nano": 100,
    "ultra96": 333,
    "zcu104": 333,
}
"""Of the boards that the original names."""
_MODEL: Final = re.compile(r"-model=([A-Za-z0-9]+)_(\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """What one line says.

    Attributes:
        board: the first word of the target's model: pynq.
        choice: its configuration; convolution: what it was measured for.
        seconds: of each repetition.
        origin: what only a line that was measured by itself has.
    """

    board: str
    convolution: Convolution
    choice: TemplateChoice
    seconds: tuple[float, ...]
    ended: float
    origin: tuple[float, ...]


class LineError(ValueError):
    """A line is no record here; the words say why."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that is no record here, and why."""

    line: int
    why: str


def is_log_line(text: str) -> bool:
    """Whether a line is one of AutoTVM's, of whatever version."""
    try:
        document = decoded(text)
    except ValueError:
        return False
    return isinstance(document, dict) and bool({"input", "i"} & document.keys())


def records_of_log(
    lines: Iterable[tuple[int, str]], target: Target
) -> tuple[list[ScheduleRecord], list[Refused]]:
    """The records of a log's lines, each with its number, and the lines that are none.

    Args:
        target: a VTA; lines of other hardware are refused.
    """
    records: list[ScheduleRecord] = []
    refused: list[Refused] = []
    origins: dict[tuple[float, ...], int] = {}
    for number, text in lines:
        try:
            line = read_line(text, target)
            if line.origin in origins:
                raise LineError(f"its times are those of line {origins[line.origin]}")
            records.append(_record(line, target))
        except LineError as error:
            refused.append(Refused(number, str(error)))
        else:
            origins[line.origin] = number
    return records, refused


def read_line(text: str, target: Target) -> LogLine:
    """One line, checked against what its hardware can do.

    Raises:
        LineError: it is no record of a convolution on this target, or cannot be true; why.
    """
    try:
        document = decoded(text)
        if "input" not in document or document.get("version") != VERSION:
            raise LineError(f"version {document.get('version', document.get('v'))}, not {VERSION}")
        return _line(document, target)
    except LineError:
        raise
    except TilefarmError as error:
        raise LineError(error.what) from None
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError):
        raise LineError("not a whole line of an AutoTVM log") from None


def _line(document: Mapping[str, Any], target: Target) -> LogLine:
    hardware, task, args, _ = document["input"]
    board = _board(str(hardware), target)
    if task != TASK:
        raise LineError(f"{task}: only {TASK} has the same choices here")
    seconds, error, took, ended = document["result"]
    if error:
        raise LineError(f"it failed there: error {error}")
    times = tuple(float(each) for each in seconds)
    if not times or not all(0 < each < math.inf for each in times):
        raise LineError(f"it took {', '.join(map(str, times)) or 'no time'} s")
    convolution = _convolution(args, target)
    layer = _layer(convolution, target)
    choice = _choice(document["config"]["entity"], layer)
    if broken := breaks(choice, layer, target.geometry):
        raise LineError(f"{broken}: broken by {_words(choice)}")
    clock = target.board.clock_mhz or CLOCKS_MHZ.get(board, 100)
    least = math.prod(layer.extents.values()) / (1e6 * clock)
    if min(times) < least:
        raise LineError(
            f"{1e6 * min(times):.0f} us, and its multiplications alone take {1e6 * least:.0f} us"
        )
    return LogLine(
        board=board,
        convolution=convolution,
        choice=choice,
        seconds=times,
        ended=float(ended),
        origin=(*times, float(took), float(ended)),
    )


def _board(hardware: str, target: Target) -> str:
    found = _MODEL.search(hardware)
    ours = model_name("", target.geometry).lstrip("_")
    if found is None or found[2] != ours:
        theirs = hardware if found is None else found[2]
        raise LineError(f"measured on {theirs}, and {target.name} is {ours}")
    return found[1]


def _convolution(args: Sequence[Any], target: Target) -> Convolution:
    (_, data, _), (_, weight, _), stride, pad, dilation, *_ = args
    batch, block = target.lanes.batch, target.lanes.block
    kernel = tuple(weight[2:4])
    is_square = kernel[0] == kernel[1] and len({*stride}) == 1 and len({*pad}) == 1
    if not is_square or {*dilation} != {1}:
        raise LineError("a window that is not square, or dilated")
    if [data[0], *data[4:]] != [1, batch, block] or [*weight[4:]] != [block, block]:
        raise LineError(f"its blocks are not {batch}x{block}")
    numbers = (block * data[1], block * weight[0], data[2], data[3], kernel[0], stride[0], pad[0])
    return Convolution.parse(",".join(str(int(number)) for number in numbers))


def _layer(convolution: Convolution, target: Target) -> TemplateLayer:
    layer = TemplateLayer.of(convolution.workload(target))
    if layer is None:
        raise LineError("no convolution of the template")
    return layer


def _choice(entities: Sequence[Sequence[Any]], layer: TemplateLayer) -> TemplateChoice:
    values = {name: value for name, _, value in entities}
    axes = {"tile_h": "oh", "tile_w": "ow", "tile_ci": "ci", "tile_co": "co"}
    tiles: dict[str, int] = {}
    for name, axis in axes.items():
        outer, tile = (int(each) for each in values[name])
        extent = layer.extents[axis]
        if tile < 1 or (extent % tile if outer == -1 else outer * tile != extent):
            raise LineError(f"{name} is {outer} x {tile}, and the axis has {extent}")
        tiles[name] = tile
    return TemplateChoice(**tiles, **{name: int(values[name]) for name in THREADS})


def _record(line: LogLine, target: Target) -> ScheduleRecord:
    workload = line.convolution.workload(target)
    made = generate(workload, target)
    same = same_choices(line.choice, made, _layer(line.convolution, target).extents)
    if not same:
        raise LineError(f"no schedule here chooses {_words(line.choice)}")
    tunables = {variable.name for variable in made.space.tunables}
    times = sorted(line.seconds)
    try:
        return ScheduleRecord(
            target=target.digest,
            target_name=target.name,
            workload=workload,
            trace=made.trace(same[0]).digest,
            point=tuple(
                sorted((name, value) for name, value in same[0].items() if name in tunables)
            ),
            wall_time=WallTime(
                minimum_seconds=times[0],
                p10_seconds=times[0],
                median_seconds=times[len(times) // 2],
                p90_seconds=times[-1],
                calls=1,
                regions=len(times),
            ),
            device=line.board,
            version="AutoTVM",
            ended=line.ended,
        )
    except ValueError as error:
        raise LineError(str(error)) from None


def _words(choice: TemplateChoice) -> str:
    return json.dumps(dict(zip((*SPLITS, *THREADS), astuple(choice), strict=True)))
