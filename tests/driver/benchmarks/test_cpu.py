"""`tilefarm bench cpu`: kernels are measured and checked, ratios shown."""

from __future__ import annotations

import json

import pytest
from kit.golden import Golden
from tilefarm.target import TARGETS

from driver import cli
from driver.benchmarks.cpu import OperatorFigures, measure_operator, table
from driver.benchmarks.cpu_operators import OPERATORS


def test_a_kernel_is_measured_with_and_without_vectors() -> None:
    target = TARGETS["sim"]
    work = OPERATORS["softmax"]()
    figures = measure_operator("softmax", work, target, [target.host], threads=2, repeats=3)
    assert figures.scalar_seconds > 0
    assert list(figures.seconds) == [target.host.cpu]


def test_figures_as_a_table(golden: Golden) -> None:
    rows = [
        OperatorFigures(name="add", scalar_seconds=4e-4, seconds={"a": 1e-4, "b": 5e-5}, threads=2),
        OperatorFigures(
            name="softmax",
            scalar_seconds=2e-6,
            seconds={"a": 1e-6, "b": 9e-7},
            threads_seconds=6e-7,
        ),
    ]
    golden("\n".join(table(rows)))
    assert json.dumps(rows[0].document()["times_scalar"]) == '{"a": 4.0, "b": 8.0}'


def test_unknown_operators_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "cpu", "--operators", "add,sofmax"]) == 2
    assert "--operators: no 'sofmax'" in capsys.readouterr().err


def test_a_processor_that_llvm_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "cpu", "--operators", "add", "--cpu", "x86-64-v9"]) == 2
    assert "no processor 'x86-64-v9'" in capsys.readouterr().err
