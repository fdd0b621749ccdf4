"""How lowering begins for every machine: from scheduled stages to nests of plain blocks."""

from __future__ import annotations

from typing import Final

from compile_worker.ir.verify import Stage
from compile_worker.passes.compact_buffers import compact_buffers
from compile_worker.passes.decompose_reductions import decompose_reductions
from compile_worker.passes.fuse_reductions import fuse_reductions
from compile_worker.passes.inline_stages import inline_stages
from compile_worker.passes.sink_lanes import sink_lanes
from compile_worker.pipeline import Pass

NEST_PASSES: Final[tuple[Pass, ...]] = (
    Pass("inline_stages", inline_stages, Stage.SCHEDULED),
    Pass("fuse_reductions", fuse_reductions, Stage.SCHEDULED),
    Pass("sink_lanes", sink_lanes, Stage.SCHEDULED),
    Pass("decompose_reductions", decompose_reductions, Stage.DECOMPOSED),
    Pass("compact_buffers", compact_buffers, Stage.DECOMPOSED),
)
