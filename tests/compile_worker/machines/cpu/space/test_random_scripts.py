"""Spaces of random scripts: every point compiles, and computes what was written."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from kit.kernels.random_rows import row_scripts
from kit.kernels.runtime_double import call, outputs_like, runtime_double
from kit.kernels.scripts import script_of
from kit.objects.hosts import runs_here
from tilefarm.artifact import Artifact, CompileJob
from tilefarm.processors import X86_64, processor
from tilefarm.space import violations
from tilefarm.target import Host
from tilefarm.trace import Trace

from compile_worker.compiler import compile_kernel
from compile_worker.ir.interpret import interpret
from compile_worker.machines.cpu.space import cpu_space
from compile_worker.te import nest_of
from tuner.sampler import Sampler

CPU: Final = processor("cpu", Host(triple=X86_64, cpu="x86-64-v3"))
POINTS: Final = 3


def explore(folder: Path, examples: int, *, derandomize: bool) -> Counter[str]:
    """How many scripts had a space, how many had none, and how many had but one row anyway."""
    found: Counter[str] = Counter()

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=derandomize,
        database=None,
        phases=(Phase.generate,),
    )
    @given(row_scripts(), st.sampled_from([(3, 17), (4, 8), (1, 40), (6, 5)]), st.integers(0, 99))
    def check(text: str, shape: tuple[int, int], seed: int) -> None:
        work = script_of(text, shape, x=shape, y=shape)
        rng = np.random.default_rng(seed)
        arrays = {name: rng.standard_normal(shape, np.float32) for name in ("x", "y")}
        wanted = interpret(nest_of(work, CPU), arrays)["out"]
        made = cpu_space(work, CPU)
        traces = [Trace()]
        if made is not None:
            points = [made.default, *Sampler(made.space).sample(POINTS, rng)]
            assert not any(violations(made.space, point) for point in points)
            traces += [made.trace(point) for point in points]
        found["one row" if shape[0] == 1 else "no space" if made is None else "space"] += 1
        for trace in traces:
            job = CompileJob(workload=work, trace=trace, target=CPU, symbol="entry")
            built = compile_kernel(job)
            assert isinstance(built, Artifact), (built.why, text)
            kernel = folder / f"{found.total()}.so"
            kernel.write_bytes(built.code)
            out = outputs_like({"out": (wanted.shape, wanted.dtype)})["out"]
            assert call(runtime_double(folder), kernel, "entry", [*arrays.values(), out]) == 0
            np.testing.assert_array_equal(out, wanted, err_msg=f"{text}\n{trace}")
            kernel.unlink()

    if not runs_here("avx2"):
        pytest.skip("this processor has no avx2")
    check()
    return found


def test_points_of_random_scripts_are_right(tmp_path: Path) -> None:
    explore(tmp_path, 8, derandomize=True)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_points_of_many_random_scripts_are_right(tmp_path: Path) -> None:
    found = explore(tmp_path, 200, derandomize=settings().derandomize)
    assert found["no space"] < 0.1 * found["space"], found
