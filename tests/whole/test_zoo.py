"""The trained networks of the zoo, from file to device, against their gates."""

from __future__ import annotations

import pytest
from kit.shared import zoo_folder

from driver.benchmarks.zoo.attempt import attempt
from driver.benchmarks.zoo.recipes import RECIPES
from driver.benchmarks.zoo.records import Attempt, Tried
from driver.network.quantize.options import AS_USUAL


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", RECIPES)
def test_every_network_passes(name: str) -> None:
    folder = zoo_folder()
    task = Attempt(
        name=name,
        model=str(folder / "models" / f"{name}.onnx"),
        recipe=RECIPES[name],
        data=folder / "data",
        samples=None,
        how=AS_USUAL,
        target="sim",
        with_peer=False,
        says=False,
    )
    row = attempt(task)
    assert isinstance(row, Tried), row
    assert row.findings == ()
