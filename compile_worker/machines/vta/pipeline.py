"""How functions for VTA are lowered: from annotated blocks to instructions, tokens and memories."""

from __future__ import annotations

from typing import Final

from compile_worker.ir.verify import Stage
from compile_worker.machines.vta.passes.chain_sums import chain_sums
from compile_worker.machines.vta.passes.check_guards import check_guards
from compile_worker.machines.vta.passes.check_instructions import check_instructions
from compile_worker.machines.vta.passes.insert_tokens import insert_tokens
from compile_worker.machines.vta.passes.keep_vectors import keep_vectors
from compile_worker.machines.vta.passes.lower_alu import lower_alu
from compile_worker.machines.vta.passes.lower_dma import lower_dma
from compile_worker.machines.vta.passes.lower_gemm import lower_gemm
from compile_worker.machines.vta.passes.merge_in_place import merge_in_place
from compile_worker.machines.vta.passes.part_stores import part_stores
from compile_worker.machines.vta.passes.rotate_slots import rotate_slots
from compile_worker.machines.vta.passes.rounded_starts import rounded_starts
from compile_worker.machines.vta.passes.skip_rows import skip_rows
from compile_worker.machines.vta.passes.spread_loads import spread_loads
from compile_worker.machines.vta.passes.stagger_stores import stagger_stores
from compile_worker.passes.check_memories import check_memories
from compile_worker.passes.flatten import flatten
from compile_worker.passes.nest_passes import NEST_PASSES
from compile_worker.passes.place_sram import place_sram
from compile_worker.passes.rewrite_storage import rewrite_storage
from compile_worker.passes.unroll_loops import unroll_loops
from compile_worker.pipeline import Pass, simplify_pass

VTA_PASSES: Final[tuple[Pass, ...]] = (
    *NEST_PASSES,
    Pass("skip_rows", skip_rows, Stage.DECOMPOSED),
    Pass("merge_in_place", merge_in_place, Stage.DECOMPOSED),
    Pass("chain_sums", chain_sums, Stage.DECOMPOSED),
    Pass("part_stores", part_stores, Stage.DECOMPOSED),
    Pass("check_guards", check_guards, Stage.DECOMPOSED),
    Pass("check_memories", check_memories, Stage.DECOMPOSED),
    Pass("lower_gemm", lower_gemm, Stage.DECOMPOSED),
    Pass("lower_alu", lower_alu, Stage.DECOMPOSED),
    Pass("lower_dma", lower_dma, Stage.EXPLICIT),
    Pass("rotate_slots", rotate_slots, Stage.EXPLICIT),
    Pass("stagger_stores", stagger_stores, Stage.EXPLICIT),
    Pass("spread_loads", spread_loads, Stage.EXPLICIT),
    Pass("insert_tokens", insert_tokens, Stage.EXPLICIT),
    Pass("check_instructions", check_instructions, Stage.EXPLICIT),
    Pass("place_sram", place_sram, Stage.PLACED),
    Pass("rounded_starts", rounded_starts, Stage.PLACED),
    Pass("flatten", flatten, Stage.FLAT),
    Pass("simplify", simplify_pass, Stage.FLAT),
    Pass("unroll_loops", unroll_loops, Stage.FLAT),
    Pass("keep_vectors", keep_vectors, Stage.FLAT),
    Pass("rewrite_storage", rewrite_storage, Stage.FLAT),
)
