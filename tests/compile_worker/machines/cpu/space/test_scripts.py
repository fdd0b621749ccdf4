"""Spaces of users' scripts: every point compiles and is right, and rules fire where they apply."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.kernels.runtime_double import call, outputs_like, runtime_double
from kit.kernels.scripts import HISTOGRAM, IN_LOCKSTEP, LATE, SCRIPTS, script_of
from kit.objects.hosts import X86, runs_here
from numpy.typing import NDArray
from tilefarm.artifact import Artifact, CompileJob
from tilefarm.processors import X86_64, processor, with_threads
from tilefarm.space import violations
from tilefarm.target import Host, Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.compiler import compile_kernel, lowered
from compile_worker.emit import kernel_text
from compile_worker.generated import Generated
from compile_worker.ir.affine import linear
from compile_worker.ir.expr import Load
from compile_worker.ir.interpret import interpret
from compile_worker.ir.stmt import For, LoopKind
from compile_worker.ir.visit import find
from compile_worker.machines.cpu.space import cpu_space
from compile_worker.te import nest_of
from driver.benchmarks.script_sources import GEMM
from tuner.sampler import Sampler

CPU = processor("cpu", Host(triple=X86_64, cpu="x86-64-v3"))
ALL = {**SCRIPTS, **IN_LOCKSTEP}
VNNI = replace(CPU, host=X86["avx512vnni"][0])


def space_of(work: Workload, target: Target = CPU) -> Generated:
    made = cpu_space(work, target)
    assert made is not None
    return made


def fired(made: Generated) -> set[str]:
    return {each.rule for each in made.rules if each.fired}


def arrays_of(work: Workload) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(0)

    def values(spec: Any) -> NDArray[Any]:
        drawn = rng.standard_normal(spec.shape, np.float32)
        return drawn if spec.dtype.is_float else np.asarray(drawn * 40).astype(spec.dtype.value)

    return {spec.name: values(spec) for spec in work.inputs}


def compare(work: Workload, target: Target, points: int, folder: Path) -> None:
    """Machine code of the default, and of some points, against the interpreter."""
    made, arrays = space_of(work, target), arrays_of(work)
    wanted = interpret(nest_of(work, target), arrays)["out"]
    sampled = Sampler(made.space).sample(points, np.random.default_rng(1))
    for number, point in enumerate([made.default, *sampled]):
        assert not violations(made.space, point)
        built = compile_kernel(
            CompileJob(workload=work, trace=made.trace(point), target=target, symbol="entry")
        )
        assert isinstance(built, Artifact), (built.why, point)
        kernel = folder / f"kernel{number}.so"
        kernel.write_bytes(built.code)
        out = outputs_like({"out": (wanted.shape, wanted.dtype)})["out"]
        assert call(runtime_double(folder), kernel, "entry", [*arrays.values(), out]) == 0
        np.testing.assert_array_equal(out, wanted, err_msg=str(point))


@pytest.mark.parametrize("name", [name for name in ALL if "long" not in name])
def test_the_default_and_another_point_are_right(name: str, tmp_path: Path) -> None:
    if not runs_here("avx2"):
        pytest.skip("this processor has no avx2")
    compare(ALL[name], CPU, 1, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("host", ["avx2", "avx512vnni"])
def test_many_points_are_right(name: str, host: str, tmp_path: Path) -> None:
    if not runs_here(host):
        pytest.skip(f"this processor has no {host}")
    compare(ALL[name], replace(CPU, host=X86[host][0]), 8, tmp_path)


def test_the_rules_fire_where_they_apply() -> None:
    fires = {name: fired(space_of(work, VNNI)) for name, work in SCRIPTS.items()}
    assert all("Multi-level-Tiling" in each for each in fires.values())
    inlined = {name for name, each in fires.items() if "Always-Inline" in each}
    assert inlined == {
        *("stencil", "softmax of long rows", "stages one after the other"),
        "rows in their output, long",
    }
    distributed = {name for name, each in fires.items() if "Distribute-Loops" in each}
    assert distributed == {*(n for n in SCRIPTS if n.startswith("rows")), "means of products"}
    chosen = {name for name, each in fires.items() if "If-Conversion" in each}
    assert chosen == {"rows with a condition", "sums with a condition", "branches"}
    cached = {name for name, each in fires.items() if "Add-Cache-Stage" in each}
    assert cached == {
        name
        for name in SCRIPTS
        if name.startswith(("gemm", "dot", "smooth", "conv", "strided")) and "itself" not in name
    } | {"rows with a condition", "sums with a condition"}
    staged = {name for name, each in fires.items() if "Add-Multi-Level-SPM" in each}
    assert staged == {"gemm, operands larger than a cache"}
    tensorized = {name for name, each in fires.items() if "Tensorize" in each}
    assert tensorized == {name for name in SCRIPTS if name.startswith("dot")}


def test_a_rule_that_does_not_fire_says_why() -> None:
    silent = [each for each in space_of(SCRIPTS["edges"]).rules if not each.fired]
    assert {each.rule for each in silent} == {
        *("If-Conversion", "Distribute-Loops", "Always-Inline", "Add-Cache-Stage", "Tensorize"),
        *("Lockstep", "Add-Multi-Level-SPM", "Add-Multi-Scope-SPM"),
    }
    assert all(each.why for each in silent)


def test_what_cannot_be_tiled_goes_in_lockstep() -> None:
    for name, work in IN_LOCKSTEP.items():
        made = space_of(work)
        assert fired(made) - {"If-Conversion"} == {"Lockstep"}, name
        assert "lockstep" in str(made.trace(made.default)) or name == "two nests"
    assert fired(space_of(IN_LOCKSTEP["states"])) == {"If-Conversion", "Lockstep"}


def test_buffers_of_states_lie_side_by_side_where_vectors_take_them() -> None:
    """One element of a buffer in all lanes is one load, where it had been a gather."""
    work = IN_LOCKSTEP["buffers of states"]
    made = space_of(work, VNNI)
    assert made.default["lanes_out"] > 1
    func = lowered(CompileJob(workload=work, trace=made.trace(made.default), target=VNNI))
    steps = {
        linear(at.index[0])[0][loop.var]
        for loop in find(func.body, For)
        if loop.kind is LoopKind.VECTORIZED
        for at in find(loop, Load)
        if at.buffer.name.startswith("h")
    }
    assert steps == {1}


def test_threads_share_rows_in_lockstep(tmp_path: Path) -> None:
    target = with_threads(CPU, 2)
    work = script_of(IN_LOCKSTEP["average"].attr_str("source"), (300, 500), x=(300, 500))
    assert space_of(work, target).default["shared_out"]
    assert "parallel" in str(space_of(work, target).trace({}))
    compare(work, target, 4, tmp_path)


def point_of(made: Generated, **chosen: int) -> dict[str, int]:
    """A valid point: the default with other values."""
    tunables = {each.name: made.default[each.name] for each in made.space.tunables}
    point = made.completed({**tunables, **chosen})
    assert not violations(made.space, point)
    return point


def steps_of(made: Generated, **chosen: int) -> list[str]:
    return [str(step) for step in made.trace(point_of(made, **chosen)).steps]


def test_what_the_rules_do_is_in_the_schedule() -> None:
    steps = steps_of(space_of(SCRIPTS["stencil"]))
    assert "compute_inline('twice')" in steps
    made = space_of(SCRIPTS["gemm, operands larger than a cache"])
    steps = steps_of(made, load_b=3, block_i=4, block_j=8, tile_i=96, tile_j=16)
    assert steps[:3] == [
        "cache_write('out', 'local')",
        "cache_read('b', 'local')",
        "cache_read('b_local', 'local')",
    ]
    assert "compute_at('b_local_local', 'out_local_back_i1_1_0')" in steps
    assert "compute_at('b_local', 'out_local_back_i1_0')" in steps


def test_copies_of_an_operand_are_right(tmp_path: Path) -> None:
    work = SCRIPTS["gemm, operands larger than a cache"]
    made, arrays = space_of(work), arrays_of(work)
    wanted = interpret(nest_of(work, CPU), arrays)["out"]
    for load in (1, 2, 3):
        chosen = {"load_b": load, "load_a": load, "block_i": 4, "block_j": 8, "tile_j": 16}
        point = point_of(made, **chosen)
        job = CompileJob(workload=work, trace=made.trace(point), target=CPU, symbol="entry")
        built = compile_kernel(job)
        assert isinstance(built, Artifact)
        kernel = tmp_path / f"kernel{load}.so"
        kernel.write_bytes(built.code)
        out = np.zeros_like(wanted)
        assert call(runtime_double(tmp_path), kernel, "entry", [*arrays.values(), out]) == 0
        np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("name", ["dot", "dot of what it rounds itself"])
def test_sums_of_products_of_8_bits_are_dot_products(name: str) -> None:
    func = lowered(CompileJob(workload=SCRIPTS[name], trace=Trace(), target=VNNI))
    assert "llvm.x86.avx512.vpdpbusd.512" in kernel_text(func, "entry", VNNI)


def test_threads_share_tiles_that_do_not_overlap() -> None:
    work = script_of(GEMM, (90, 90), a=(90, 40), b=(40, 90))
    made = space_of(work, with_threads(CPU, 2))
    assert made.default["shared"]
    func = lowered(CompileJob(workload=work, trace=Trace(), target=with_threads(CPU, 2)))
    assert any(loop.kind is LoopKind.PARALLEL for loop in find(func.body, For))
    tunables = {each.name: made.default[each.name] for each in made.space.tunables}
    whole = made.completed({**tunables, "tile_i": 90, "outermost": 0})
    assert violations(made.space, whole) == ["tiles_for_threads"]


def test_what_needs_all_of_itself_has_no_space() -> None:
    assert cpu_space(script_of(HISTOGRAM, (8,), x=(4000,)), CPU) is None


def test_large_rows_are_done_one_by_one(tmp_path: Path) -> None:
    """40 KB of each: two of them are more than a first-level cache."""
    text = """
def rows(x, out):
    for i in range(x.shape[0]):
        t = buffer(float32, x.shape[1])
        t[0] = x[i, 0]
        for k in range(x.shape[1] - 1):
            t[k + 1] = t[k] * 0.5 + x[i, k + 1]
        for k in range(x.shape[1]):
            out[i, k] = t[x.shape[1] - 1 - k]
"""
    work = script_of(text, (3, 10000), x=(3, 10000))
    built = compile_kernel(CompileJob(workload=work, trace=Trace(), target=CPU, symbol="entry"))
    assert isinstance(built, Artifact), built.why
    made = cpu_space(work, with_threads(CPU, 2))
    assert made is None or made.default["lanes_out"] == 1


def test_rows_that_fit_no_stack_as_they_are_written_have_no_lockstep() -> None:
    made = cpu_space(script_of(LATE, (300, 300), x=(300, 8), w=(8, 300)), CPU)
    assert made is None


def test_a_stage_that_fits_no_stack_is_computed_for_a_part_of_the_result() -> None:
    """As it is written, 300 KB would lie on the stack at once."""
    text = SCRIPTS["softmax"].attr_str("source")
    work = script_of(text, (4, 5000, 4), x=(4, 5000, 4))
    job = CompileJob(workload=work, trace=Trace(), target=CPU)
    assert isinstance(compile_kernel(job), Artifact)
