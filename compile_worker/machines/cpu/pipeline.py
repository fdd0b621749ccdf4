"""How functions for the processor are lowered: from stages to plain loops and vectors."""

from __future__ import annotations

from typing import Final

from compile_worker.ir.verify import Stage
from compile_worker.passes.flatten import flatten
from compile_worker.passes.merge_loops import merge_loops
from compile_worker.passes.nest_passes import NEST_PASSES
from compile_worker.passes.partition_loops import partition_loops
from compile_worker.passes.rewrite_storage import rewrite_storage
from compile_worker.passes.skip_zeros import skip_zeros
from compile_worker.passes.unroll_loops import unroll_loops
from compile_worker.passes.vectorize_loops import vectorize_loops
from compile_worker.pipeline import Pass, simplify_pass

CPU_PASSES: Final[tuple[Pass, ...]] = (
    *NEST_PASSES,
    Pass("flatten", flatten, Stage.FLAT),
    Pass("simplify", simplify_pass, Stage.FLAT),
    Pass("merge_loops", merge_loops, Stage.FLAT),
    Pass("unroll_loops", unroll_loops, Stage.FLAT),
    Pass("skip_zeros", skip_zeros, Stage.FLAT),
    Pass("partition_loops", partition_loops, Stage.FLAT),
    Pass("vectorize_loops", vectorize_loops, Stage.FLAT),
    Pass("rewrite_storage", rewrite_storage, Stage.FLAT),
)
