"""Every operator's nest means what numpy says, and prints as its golden text."""

import math
import re
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from kit.examples import examples
from kit.golden import Golden
from kit.kernels import nests, numpy_operators
from kit.recipes import RECIPES, ROOT
from tilefarm.real import COMBINATIONS
from tilefarm.real_arrays import combined
from tilefarm.workload import OPERATORS, Workload

from compile_worker.ir.interpret import interpret
from compile_worker.ir.printer import show
from compile_worker.lowering import lower
from compile_worker.machines.cpu.features import features_of
from compile_worker.te import nest_of
from compile_worker.te.nest import nest
from compile_worker.te.operators import STAGES
from compile_worker.te.tensor import placeholder

RECIPE: Final = RECIPES["compile_worker: operator"]


def agrees_with_numpy(work: Workload, seed: int = 0) -> None:
    arrays = nests.inputs_of(work, seed)
    found = interpret(nest_of(work, nests.SIM), arrays | nests.begun(work))["out"]
    wanted = numpy_operators.run(work, arrays)
    assert found.dtype == wanted.dtype
    assert found.size == wanted.size
    assert found.tobytes() == wanted.tobytes()


def test_every_operator_has_a_nest_and_an_example() -> None:
    assert STAGES.keys() == OPERATORS.keys()
    assert {work.operator for work in nests.EXAMPLES.values()} == OPERATORS.keys()


def test_an_operator_stands_where_the_readme_says() -> None:
    rows = re.findall(r"^\| (`[^|]+`) \|", RECIPE.text, re.MULTILINE)
    files = re.findall(r"`(.+?)`", " ".join(rows))
    assert len(files) > 10
    for name in files:
        (file,) = [
            path
            for path in (ROOT / top / name for top in (".", "proto", "compile_worker"))
            if path.is_file()
        ]
        assert re.search("lookup", file.read_text(), re.IGNORECASE), f"{name} has no lookup"


def test_the_stages_that_the_readme_shows_are_those_of_the_operator(tmp_path: Path) -> None:
    stages = RECIPE.run(tmp_path)["lookup"]
    work = nests.EXAMPLES["lookup"]
    inputs = [placeholder(spec) for spec in work.inputs]
    assert nest(work.name, inputs, stages(work, inputs)).body is nest_of(work, nests.SIM).body


@pytest.mark.parametrize("name", nests.EXAMPLES)
def test_text(name: str, golden: Golden) -> None:
    golden(show(nests.nest(name)))


@pytest.mark.parametrize("name", nests.EXAMPLES)
@pytest.mark.parametrize("seed", [0, 1])
def test_means_what_numpy_says(name: str, seed: int) -> None:
    agrees_with_numpy(nests.EXAMPLES[name], seed)


@pytest.mark.parametrize("name", nests.REAL_VARIANTS)
def test_variants_on_floats_mean_what_numpy_says(name: str) -> None:
    agrees_with_numpy(nests.REAL_VARIANTS[name])


@pytest.mark.parametrize("function", COMBINATIONS)
def test_two_values_are_combined_as_everywhere(function: str) -> None:
    shape = (2, 9)
    work = nests.real("real_zip", shape, {"function": function}, a=shape, b=shape)
    arrays = nests.inputs_of(work)
    found = interpret(nest_of(work, nests.SIM), arrays)["out"]
    assert found.tobytes() == combined(function, arrays["a"], arrays["b"]).tobytes()


@given(nests.convolutions())
@settings(max_examples=examples(25), deadline=None)
def test_any_convolution_means_what_numpy_says(work: Workload) -> None:
    agrees_with_numpy(work)


@given(nests.denses())
@settings(max_examples=examples(10), deadline=None)
def test_any_dense_means_what_numpy_says(work: Workload) -> None:
    agrees_with_numpy(work)


@given(nests.fills())
@settings(max_examples=examples(40), deadline=None)
def test_any_border_means_what_numpy_says_and_every_byte_is_written_once(work: Workload) -> None:
    agrees_with_numpy(work)
    func = nest_of(work, nests.SIM)
    lowered = lower(func, nests.SIM)
    assert interpret(lowered, {})["out"].tobytes() == interpret(func, {})["out"].tobytes()
    around = work.outputs[0].nbytes - math.prod(work.within)
    assert features_of(lowered, nests.SIM)["stores"] == around


def test_parameters_are_the_workloads_tensors_in_order() -> None:
    work = nests.EXAMPLES["conv2d"]
    func = nest_of(work, nests.SIM)
    assert [(p.name, p.shape, p.dtype) for p in func.params] == [
        (t.name, t.shape, t.dtype) for t in work.tensors
    ]
    assert {p.scope for p in func.params} == {"dram"}


def test_equal_workloads_have_the_same_nest() -> None:
    assert nest_of(nests.conv2d(), nests.SIM) is nest_of(nests.conv2d(), nests.SIM)


def test_a_relayout_keeps_the_number_of_elements() -> None:
    work = nests.EXAMPLES["relayout"]
    attrs = tuple({**dict(work.attrs), "logical_out": (1, 119)}.items())
    odd = Workload(work.operator, work.inputs, work.outputs, attrs)
    with pytest.raises(ValueError, match="as many elements"):
        nest_of(odd, nests.SIM)
