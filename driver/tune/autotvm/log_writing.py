"""Records of ours as lines of AutoTVM's log, where its template has the same choices."""

from __future__ import annotations

from dataclasses import astuple
from typing import Final

from tilefarm.digest import canonical_json
from tilefarm.target import Target
from tilefarm.vta_config import model_name

from compile_worker.space import generate
from driver.tune.autotvm.log import CLOCKS_MHZ, TASK, VERSION
from driver.tune.autotvm.template import SPLITS, TemplateChoice, TemplateLayer, breaks, choice_of
from tuner.schedule_store import ScheduleRecord

_TVM: Final = "0.14.0"
"""Whose template and lowering are known here."""


def to_log_line(record: ScheduleRecord, target: Target) -> str | None:
    """A record as a line; None where the template has no configuration like it.

    Cycles become seconds at the clock of the target's board, or at 100 MHz if it has none.
    """
    layer = TemplateLayer.of(record.workload)
    if layer is None or record.target != target.digest:
        return None
    made = generate(record.workload, target)
    choice = choice_of(made.completed(dict(record.point)), made, layer)
    if choice is None or breaks(choice, layer, target.geometry):
        return None
    return canonical_json(
        {
            "input": [_hardware(target), TASK, _arguments(record, target), {}],
            "config": {
                "index": index_of(choice, layer),
                "code_hash": None,
                "entity": _entities(choice),
            },
            "result": [[_seconds(record, target)], 0, 0.0, record.ended],
            "version": VERSION,
            "tvm_version": _TVM,
        }
    )


def index_of(choice: TemplateChoice, layer: TemplateLayer) -> int:
    """Its number in AutoTVM's space: its knobs as digits, the first one counts fastest."""
    axes = (*layer.output, layer.ci, layer.co)
    digits = [[tile for tile in range(1, axis + 1) if axis % tile == 0] for axis in axes]
    index, place = 0, 1
    for value, choices in zip(astuple(choice), [*digits, [1, 2], [1, 2]], strict=True):
        index += place * choices.index(value)
        place *= len(choices)
    return index


def _entities(choice: TemplateChoice) -> list[list[object]]:
    splits: list[list[object]] = [
        [name, "sp", [-1, tile]] for name, tile in zip(SPLITS, astuple(choice), strict=False)
    ]
    return [
        ["tile_b", "sp", [-1, 1]],
        *splits,
        ["oc_nthread", "ot", choice.oc_nthread],
        ["h_nthread", "ot", choice.h_nthread],
    ]


def _hardware(target: Target) -> str:
    board = target.board.model.replace("-", "") or "sim"
    known = next((name for name in CLOCKS_MHZ if board.startswith(name)), "sim")
    return f"ext_dev -keys=vta,cpu -device=vta -model={model_name(known, target.geometry)}"


def _arguments(record: ScheduleRecord, target: Target) -> list[object]:
    tensors: list[object] = [
        ["TENSOR", [*spec.shape], "int8"] for spec in record.workload.inputs[:2]
    ]
    stride, pad = ([*record.workload.attr_ints(name)] for name in ("stride", "pad"))
    layout = f"NCHW{target.lanes.batch}n{target.lanes.block}c"
    return [*tensors, stride, pad, [1, 1], layout, "int32"]


def _seconds(record: ScheduleRecord, target: Target) -> float:
    if record.cycles is None:
        return record.cost
    return record.cycles / (1e6 * (target.board.clock_mhz or 100))
