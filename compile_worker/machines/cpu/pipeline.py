"""How functions for the processor are lowered: from stages to plain loops and vectors."""

from __future__ import annotations

from typing import Final

from compile_worker.ir.verify import Stage
from compile_worker.passes.compact_buffers import compact_buffers
from compile_worker.passes.decompose_reductions import decompose_reductions
from compile_worker.passes.flatten import flatten
from compile_worker.passes.fuse_reductions import fuse_reductions
from compile_worker.passes.inline_stages import inline_stages
from compile_worker.passes.merge_loops import merge_loops
from compile_worker.passes.partition_loops import partition_loops
from compile_worker.passes.rewrite_storage import rewrite_storage
from compile_worker.passes.sink_lanes import sink_lanes
from compile_worker.passes.skip_zeros import skip_zeros
from compile_worker.passes.unroll_loops import unroll_loops
from compile_worker.passes.vectorize_loops import vectorize_loops
from compile_worker.pipeline import Pass, simplify_pass

CPU_PASSES: Final[tuple[Pass, ...]] = (
    Pass("inline_stages", inline_stages, Stage.SCHEDULED),
    Pass("fuse_reductions", fuse_reductions, Stage.SCHEDULED),
    Pass("sink_lanes", sink_lanes, Stage.SCHEDULED),
    Pass("decompose_reductions", decompose_reductions, Stage.DECOMPOSED),
    Pass("compact_buffers", compact_buffers, Stage.DECOMPOSED),
    Pass("flatten", flatten, Stage.FLAT),
    Pass("simplify", simplify_pass, Stage.FLAT),
    Pass("merge_loops", merge_loops, Stage.FLAT),
    Pass("unroll_loops", unroll_loops, Stage.FLAT),
    Pass("skip_zeros", skip_zeros, Stage.FLAT),
    Pass("partition_loops", partition_loops, Stage.FLAT),
    Pass("vectorize_loops", vectorize_loops, Stage.FLAT),
    Pass("rewrite_storage", rewrite_storage, Stage.FLAT),
)
